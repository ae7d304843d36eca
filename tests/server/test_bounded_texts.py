"""SQLite holds texts of any length, where Hive's columns on a server do not: no method may store
what another database would refuse.

Which column a field of a request comes to is found by a word that is sent in it; how long it may be
says the schema. So no field has a line here, and a new one is tried as soon as a call stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import String, Table
from thrift.Thrift import TType

from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.errors import BackendError, HmsBridgeError, MetaError
from hms_bridge.model.ids import SEED_MAX
from hms_bridge.server.answers import Answer
from hms_bridge.server.serve import answers_of, offered_names
from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct, hive
from tests.support.databases import sqlite_connection
from tests.support.engines import MEMORY
from tests.support.golden_wire import recorded_calls, request_of
from tests.support.installation import Installation
from tests.support.killed_server import commits
from tests.support.recorded_places import RecordedPlaces
from tests.support.unrecorded_calls import CASES, prepare

pytestmark = pytest.mark.golden

WORD = "zqzqzqzq"
DIGITS = {"COMPACTION_QUEUE.CQ_TBLPROPERTIES": 3}
"""By how much a text may be shorter, and why: it stands behind its length there."""
BOUNDED_MIN = 200
"""How many fields of calls come to a column with a bound, at the least."""
NO_FILE = "File name too long"
"""What a file system takes besides, where a name is one of a directory."""
Way = tuple[str | int, ...]


@dataclass(frozen=True)
class Column:
    """A column with a bound, and what stands in it besides a field of a request."""

    name: str
    bound: int
    besides: int

    @property
    def most(self) -> int:
        """How long the field may be."""
        return self.bound - self.besides


class Metastore:
    """In memory, brought back after each try; ``bounded`` are fields that came to a column with a
    bound."""

    def __init__(self, folder: Path) -> None:
        self.bounded: set[str] = set()
        self.world = Installation(folder, url=MEMORY, resolve=RecordedPlaces(folder))
        config = {"hive.metastore.warehouse.dir": str(self.world.warehouse)}
        self._answers: dict[str, Answer] = answers_of(self.world.metastore, config)
        self._columns = {
            table.name: bounds for table in TABLES.tables.values() if (bounds := _bounds(table))
        }
        self._statements = {
            table: _with_a_word(table, bounds) for table, bounds in self._columns.items()
        }

    def call(self, name: str, /, **arguments: Any) -> Any:
        return self._answers[name](method(name).arguments(**arguments))

    def ask(self, name: str, request: Struct) -> None:
        self._answers[name](request)

    def columns_with(self, word: str) -> Iterator[Column]:
        """Those with a bound in which the word stands."""
        if word.encode() not in self.world.backup():
            return
        for table, bounds in self._columns.items():
            for name, value in self._values(table, word):
                if value.count(word) == 1:
                    besides = len(value) - len(word)
                    yield Column(f"{table}.{name}", bounds[name], besides)

    def _values(self, table: str, word: str) -> list[tuple[str, str]]:
        with sqlite_connection(self.world.engine) as raw:
            rows = raw.execute(self._statements[table], {"word": word}).fetchall()
        return [
            (name, value)
            for row in rows
            for name, value in zip(self._columns[table], row, strict=True)
            if isinstance(value, str) and word in value
        ]

    def too_long(self, word: str) -> list[str]:
        return [column.name for column in self.columns_with(word) if column.most < len(word)]


def _bounds(table: Table) -> dict[str, int]:
    """How long the texts of its columns may be."""
    return {
        column.name: column.type.length
        for column in table.columns
        if isinstance(column.type, String) and column.type.length
    }


def _with_a_word(table: str, columns: Iterable[str]) -> str:
    """The statement for rows in which a word stands; Core would make it thousands of times."""
    quoted = [f'"{name}"' for name in columns]
    where = " OR ".join(f"instr({name}, :word) > 0" for name in quoted)
    return f'SELECT {", ".join(quoted)} FROM "{table}" WHERE {where}'


def texts(value: Any, path: Way = ()) -> Iterator[Way]:
    """Where the texts of a request stand: in fields, lists, sets and maps."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, list):
        for place, part in enumerate(value[:1]):
            yield from texts(part, (*path, place))
    elif isinstance(value, dict):
        for key in list(value)[:1]:
            yield from texts(value[key], (*path, key))
    elif isinstance(value, Struct):
        for entry in filter(None, value.thrift_spec):
            is_text = entry[1] == TType.STRING and entry[3] == "UTF8"
            held = getattr(value, entry[2])
            if is_text:
                yield (*path, entry[2])
            elif entry[1] != TType.STRING:
                yield from texts(held, (*path, entry[2]))


def put(value: Any, path: Way, text: str) -> None:
    for part in path[:-1]:
        value = value[part] if isinstance(value, (list, dict)) else getattr(value, str(part))
    if isinstance(value, (list, dict)):
        value[path[-1]] = text  # type: ignore[index]
    else:
        setattr(value, str(path[-1]), text)


def sent(
    metastore: Metastore, before: bytes, name: str, request: Struct, way: Way, text: str
) -> HmsBridgeError | None:
    """What a call with this text is refused with, in the state of before."""
    metastore.world.restore(before)
    put(request, way, text)
    try:
        metastore.ask(name, request)
    except HmsBridgeError as error:
        return error
    return None


def wrong_fields(metastore: Metastore, name: str, make: Callable[[], Struct]) -> Iterator[str]:
    """Which fields of a call take too much or too little; the state is as before."""
    before = metastore.world.backup()
    for way in list(texts(make())):
        if sent(metastore, before, name, make(), way, WORD) is not None:
            continue
        columns = list(metastore.columns_with(WORD))
        if not columns:
            continue
        column = min(columns, key=lambda found: found.most)
        where = f"{name}, {'.'.join(map(str, way))} in {column.name}"
        metastore.bounded.add(where)
        fits, longer = "z" * column.most, "z" * (column.most + 1)
        refusal = sent(metastore, before, name, make(), way, fits[DIGITS.get(column.name, 0) :])
        if refusal is not None and NO_FILE not in str(refusal):
            yield f"{where}: {len(fits)} are refused: {refusal}"
        refusal = sent(metastore, before, name, make(), way, longer)
        if isinstance(refusal, BackendError):
            yield f"{where}: an error of the database: {refusal}"
        elif refusal is None and (held := metastore.too_long(longer)):
            yield f"{where}: {len(longer)} are held by {held}"
    metastore.world.restore(before)


def test_no_text_is_stored_that_is_longer_than_its_column(fast_folder: Path) -> None:
    metastore = Metastore(fast_folder)
    wrong: list[str] = []
    tried: set[str] = set()
    for call in recorded_calls():
        if call.method not in offered_names() or not call.request:
            continue
        before = metastore.world.backup() if call.method not in tried else b""
        with commits() as changes, suppress(HmsBridgeError):  # Hive refused many, too
            metastore.ask(call.method, request_of(call))
        if changes.count and call.method not in tried:
            tried.add(call.method)
            after = metastore.world.backup()
            metastore.world.restore(before)
            wrong += wrong_fields(metastore, call.method, partial(request_of, call))
            metastore.world.restore(after)
    prepare(metastore.call)
    for name, case in CASES.items():
        given = case(metastore.call)
        wrong += wrong_fields(metastore, name, partial(_request, name, given))
        metastore.call(name, **given)
    metastore.world.close()
    assert wrong == []
    assert len(metastore.bounded) > BOUNDED_MIN


def _request(name: str, given: dict[str, Any]) -> Struct:
    request: Struct = method(name).arguments(**deepcopy(given))
    return request


@pytest.mark.parametrize("seed", [-1, 0, SEED_MAX + 1, 2**63 - 1])
def test_a_seed_of_transactions_out_of_its_range_is_refused(tmp_path: Path, seed: int) -> None:
    metastore = Metastore(tmp_path)
    before = metastore.world.backup()
    with pytest.raises(MetaError, match="transaction"):
        metastore.call("seed_txn_id", rqst=hive.SeedTxnIdRequest(seedTxnId=seed))
    assert metastore.world.backup() == before


@pytest.mark.parametrize("seed", [-1, SEED_MAX + 1, 2**63 - 1])
def test_a_seed_of_write_ids_out_of_its_range_is_refused(tmp_path: Path, seed: int) -> None:
    metastore = Metastore(tmp_path)
    request = hive.SeedTableWriteIdsRequest(dbName="d", tableName="t", seedWriteId=seed)
    with pytest.raises(MetaError, match=rf"cannot seed write ids of d.t with {seed}; give 0 to"):
        metastore.call("seed_write_id", rqst=request)


@pytest.mark.parametrize(("field", "most"), [("dbName", 128), ("tableName", 256)])
def test_names_of_a_seed_are_bounded(tmp_path: Path, field: str, most: int) -> None:
    metastore = Metastore(tmp_path)
    for length in (most + 1, most):
        names = {"dbName": "d", "tableName": "t", field: "z" * length}
        request = hive.SeedTableWriteIdsRequest(**names, seedWriteId=7)
        if length > most:
            with pytest.raises(MetaError, match=f"has {length} characters; at most {most} fit"):
                metastore.call("seed_write_id", rqst=request)
        else:
            metastore.call("seed_write_id", rqst=request)
