"""What a real Hive was asked is asked of us: the same outcomes, but for differences that we know.

Up to call 489 the transaction ids are Hive's; later ones depend on calls that were not recorded.
From 627 on no call is about transactions again, until what was made is taken away.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import HmsBridgeError, MetaError
from hms_bridge.server.serve import offered_names
from hms_bridge.wire.exceptions import error_from_exception
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.support.golden_wire import RecordedCall, recorded_calls, request_of, response_of
from tests.support.served_metastore import served_metastore

pytestmark = pytest.mark.golden

LAST = 489
WITHOUT_TRANSACTIONS = range(627, 671)
FIRST_OF_MANY_PARTITIONS = 301

# Ours succeeds, or fails in another class.
OTHER_OUTCOME: dict[str, tuple[int, ...]] = {
    "the database's id exists only if it was given": (4,),
    "a longer name than can be stored is an invalid object, not a database's failure": (52, 101),
    "as invalid is a column that is there twice": (102,),
    "a missing name or value is an invalid object, not a Java exception": (53, 99, 200),
    "ignoreUnknownDb is obeyed": (78,),
    "a managed ACID table needs no capabilities of its client": (80,),
    "a missing database is told as such": (100,),
    "get_table is still there": (126,),
    "no table has an unknown type": (154,),
    "partitions that are there twice in a call are an invalid object": (207,),
    "a partition of another table is told as such": (211,),
    "a table without partition columns does not allow the operation": (219,),
    "an empty name is that of no partition": (228,),
    "keys in upper case are understood": (229,),
    "an unknown table is told as such": (187, 236, 241, 300),
    "a transactional table is truncated in a transaction only": (186,),
    "no expression means all": (242,),
    "no values mean all": (253,),
    "filters allow more: in, not, is null": (270, 271, 274, 275, 290, 291),
    "concat is no function of a partition condition": (309,),
    "a key that is no partition column is told as such": (333,),
    "an unknown column of a key, or constraint, is told as such": (387, 402),
    "a column without statistics is told as such": (407,),
    "what lies in no table's directory is not archived": (666,),
    "create_dataconnector is still there": (654, 655),
    "a resource plan without a namespace is found again": (641, 644),
}  # fmt: skip

# Ours succeeds too, with another value.
OTHER_VALUE: dict[str, tuple[int, ...]] = {
    "who we are": (1, 2),
    "an owner that was not given is not made up": (37, 76),
    "call 80 made a table here": (
        139, 140, 141, 143, 146, 148, 155, 156, 161, 162),
    "managed tables stay managed": (150, 151),
    "concat is no function of a partition condition: all, perhaps": (307, 308),
    "a list of write ids never ends early": (466, 469),
    "statistics that were merged are said to be": (422,),
    "create_dataconnector is still there": (656,),
    "a resource plan without a namespace is found again": (642,),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[RecordedCall, Any, Any]]:
    """Of each call that we answer: Hive's outcome and ours, errors as classes of ours."""
    folder = tmp_path_factory.mktemp("replay")
    found = []
    with served_metastore(folder) as served:
        for call in _calls():
            if call.number == FIRST_OF_MANY_PARTITIONS:
                _add_many_partitions(served.call)
            arguments = _moved(request_of(call), folder)
            ours: Any
            try:
                ours = served.call(call.method, **vars(arguments))
            except HmsBridgeError as error:
                ours = type(error)
            found.append((call, _recorded(call, folder), ours))
    return found


def _add_many_partitions(call: Callable[..., Any]) -> None:
    """These calls were not recorded; their answers show what was there."""
    table = call("get_table", dbname="gdb", tbl_name="pp")
    parts = []
    for number in range(0, 1000, 5):
        storage = hive.StorageDescriptor(**vars(table.sd))
        storage.location = f"{table.sd.location}/p={number:04}"
        parts.append(
            hive.Partition(values=[f"{number:04}"], dbName="gdb", tableName="pp", sd=storage)
        )
    call("add_partitions", new_parts=parts)


def _calls() -> Iterator[RecordedCall]:
    for call in recorded_calls():
        is_answered = call.method in offered_names() - {"get_config_value"}
        is_played = call.number <= LAST or call.number in WITHOUT_TRANSACTIONS
        if is_answered and is_played and call.request and call.response:
            yield call


def played_methods() -> frozenset[str]:
    """The methods that are called here, with what a real Hive answered."""
    return frozenset(call.method for call in _calls())


def _recorded(call: RecordedCall, folder: Path) -> Any:
    response = response_of(call)
    if response is None:
        return MetaError  # a TApplicationException
    for field in method(call.method).exceptions.values():
        thrown = getattr(response, field)
        if thrown is not None:
            return type(error_from_exception(thrown))
    return None if method(call.method).is_void else _moved(response.success, folder)


def _moved(value: Any, folder: Path) -> Any:
    """With locations below the test's own folder."""
    if isinstance(value, str):
        return value.replace("/warehouse/golden", f"{folder}/warehouse")
    if isinstance(value, Struct):
        for name, field in list(vars(value).items()):
            setattr(value, name, _moved(field, folder))
        return value
    if isinstance(value, list):
        return [_moved(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: _moved(item, folder) for key, item in value.items()}
    return value


def _is_error(outcome: Any) -> bool:
    return isinstance(outcome, type) and issubclass(outcome, HmsBridgeError)


def _essence(value: Any) -> Any:
    """What must be equal: names, numbers, texts; not times or ids."""
    if isinstance(value, hive.Partition):
        return tuple(value.values or ())
    if isinstance(value, hive.Table):
        return (value.dbName, value.tableName)
    if isinstance(value, hive.Database):
        return (value.name, value.description, value.parameters, value.ownerName)
    if isinstance(value, list):
        items = [_essence(item) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    if isinstance(value, Struct):
        first = next((field for field in vars(value).values() if isinstance(field, list)), None)
        return None if first is None else _essence(first)
    return value


def test_outcomes_are_hives(outcomes: list[tuple[RecordedCall, Any, Any]]) -> None:
    different = {
        call.number: (call.method, theirs, ours)
        for call, theirs, ours in outcomes
        if (_is_error(theirs) or _is_error(ours)) and theirs != ours
    }
    known = {number for numbers in OTHER_OUTCOME.values() for number in numbers}
    assert different.keys() == known, (
        "mend it, or add it to OTHER_OUTCOME with the reason",
        {n: different.get(n) for n in different.keys() ^ known},
    )
    assert len(outcomes) - len(different) > 330


def test_values_are_hives(outcomes: list[tuple[RecordedCall, Any, Any]]) -> None:
    different = {}
    for call, theirs, ours in outcomes:
        if not _is_error(theirs) and not _is_error(ours) and _essence(theirs) != _essence(ours):
            different[call.number] = (call.method, _essence(theirs), _essence(ours))
    known = {number for numbers in OTHER_VALUE.values() for number in numbers}
    assert different.keys() == known, (
        "mend it, or add it to OTHER_VALUE with the reason",
        {n: different.get(n) for n in different.keys() ^ known},
    )


def test_tables_come_with_the_access_that_hive_tells(
    outcomes: list[tuple[RecordedCall, Any, Any]],
) -> None:
    told = {
        call.number: (theirs.table.accessType, ours.table.accessType)
        for call, theirs, ours in outcomes
        if call.method == "get_table_req" and not _is_error(theirs) and not _is_error(ours)
    }
    assert len(told) > 10
    assert {None, 2, 8} == {theirs for theirs, _ in told.values()}
    assert {n: pair for n, pair in told.items() if pair[0] != pair[1]} == {}


def test_serdes_of_acid_tables_come_without_parameters(
    outcomes: list[tuple[RecordedCall, Any, Any]],
) -> None:
    different = {
        call.number: (theirs.table.sd.serdeInfo, ours.table.sd.serdeInfo)
        for call, theirs, ours in outcomes
        if call.method == "get_table_req" and not _is_error(theirs) and not _is_error(ours)
        if theirs.table.sd.serdeInfo != ours.table.sd.serdeInfo
    }
    assert different == {}
