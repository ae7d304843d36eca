"""What is missing, empty or wrong in a call is refused as a real Hive 4.2 refuses it, by the same
class of exception, but for what is known (DIFFERENCES)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.wire.methods import method
from tests.support.odd_calls import HEADER, make, odd_calls, recorded_lines
from tests.support.served_metastore import served_metastore
from tests.support.wire_answers import CLOSED, WireClient

pytestmark = pytest.mark.golden

JAVA_FAILED = ("TApplicationException 6", "TApplicationException 7", CLOSED)
"""Hive met a null that it had not looked for. Here an exception says what is wrong."""

DIFFERENCES: Mapping[str, str] = {
    "get_table and get_table_objects_by_name, which Hive 4 has no more, are still there": """
        get_table: *
        get_table_objects_by_name: *
    """,
    "a column needs a name and a type: nothing could read it": """
        add_partition*: column of no type
        create_table*: * of empty name
        alter_table*: column of empty name
    """,
    "a change that says no place leaves it as it is": """
        alter_partition*: no sd.location
        alter_partition*: empty location
        alter_table*: no sd.location
        alter_table_req: no catName
    """,
    "keys that a change leaves out are those that the table has": """
        alter_table*: no partitionKeys
    """,
    "no catalog is the default one, and so is an empty one": """
        get_database_req: no catalogName
        drop_partition_req: no catName
        *: empty catName
        *: empty catalogName
    """,
    "a catalog of a partition is that of its table": """
        alter_partition: catalog nope
        add_partition: catalog nope
    """,
    "a call is looked at as it was sent, before what it is about": """
        alter_table*: key of *
        alter_partition*: empty db_name
        alter_partition*: empty tbl_name
        rename_partition*: *
        get_partition_by_name: of plain
        append_partition_by_name: *
    """,
    "an unknown table is told as such, and so is an empty name": """
        get_partitions*: of nope
        *get_partition_names*: of nope
        fetch_partition_names_req: of nope
        get_partition_names: empty *
        get_partitions_by_names*: empty *
    """,
    "what is no name of a partition has no values": """
        partition_name_to_*: *
    """,
    "names the field that was not sent": """
        drop_table: no dbname
    """,
    "an empty class is none": """
        create_function: className ''
    """,
    "Java closes the connection over a flag that was not sent": """
        drop_partitions_req: no ifExists
    """,
}
"""By the reason, patterns of ``method: call``."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """The call, what Hive 4.2.0 did, what is done here."""
    header, *lines = recorded_lines()
    assert header == HEADER
    return list(_played(tmp_path_factory.mktemp("odd"), [line.split("\t") for line in lines]))


def _played(folder: Path, rows: list[list[str]]) -> Iterator[tuple[str, str, str]]:
    def send(name: str, /, **arguments: Any) -> Any:
        return client.call(name, method(name).arguments(**arguments))

    with served_metastore(folder) as served, WireClient(served.port) as client:
        make(send)
        calls = odd_calls(f"file:{folder}/warehouse-ext/odd")
        for call, (name, label, _, theirs) in zip(calls, rows, strict=True):
            assert (call.method, call.label) == (name, label)
            yield f"{name}: {label}", theirs, call.outcome(send)


def _known() -> list[str]:
    return [line.strip() for lines in DIFFERENCES.values() for line in lines.strip().splitlines()]


def test_each_is_refused_as_hive_does(outcomes: list[tuple[str, str, str]]) -> None:
    different = {
        call: (theirs, ours) for call, theirs, ours in outcomes
        if theirs != ours and (theirs not in JAVA_FAILED or ours == "answered")
    }  # fmt: skip
    known = _known()
    assert len(known) == len(set(known))
    unknown = {
        call: both for call, both in different.items()
        if not any(fnmatchcase(call, pattern) for pattern in known)
    }  # fmt: skip
    assert unknown == {}, "mend it, or add it to DIFFERENCES with the reason"
    unused = [pattern for pattern in known if not fnmatch.filter(different, pattern)]
    assert unused == [], "is so no more: take it out"
