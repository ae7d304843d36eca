"""What stands in many rows is answered as it was at one moment, and changed as it is: there are two
metastores on one database, and the other one acts between two statements of the first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import Column, Database, Partition, Table
from hms_bridge.model.event import EventType, InsertNotification
from hms_bridge.model.partition_name import partition_name
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import DS, events_after, new_database, new_table, partition
from tests.support.crowd import wait_until
from tests.support.databases import SERVER_URL, WHO_WAIT, fresh_url
from tests.support.event_messages import read_message

ONE_WRITER = pytest.mark.skipif(SERVER_URL is None, reason="SQLite has one writer at a time")
MORE = (Column(name="id", type="int"), Column(name="name", type="string"))


@dataclass(kw_only=True)
class Pair:
    """Two metastores on one database that has a table and a partitioned one."""

    one: MetastoreService
    other: MetastoreService
    database: str

    def meanwhile(
        self, mark: str, act: Callable[[], object], of: MetastoreService | None = None
    ) -> None:
        """The other one acts once, after the first's next statement that has this text; ``of``:
        after one of that metastore's."""
        engine, left = (of or self.one)._transactions.database.engine, [act]

        @event.listens_for(engine, "after_cursor_execute")
        def hear(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            if left and mark in statement.replace('"', "").replace("`", ""):
                left.pop()()

    def beside(self, thread: ThreadPoolExecutor, act: Callable[[], object]) -> None:
        """Returns when the other one has acted, or waits for a row that the first one holds."""
        acting = thread.submit(act)
        wait_until(lambda: acting.done() or somebody_waits(self.other))

    def add(self, value: str = "x") -> Partition:
        made = partition(self.database, "p", value, parameters={"made": "so"})
        self.other.add_partitions(self.database, "p", [made])
        return self.other.get_partition(self.database, "p", [value])

    def drop(self, value: str = "x") -> None:
        name = partition_name(DS, [value])
        self.other.drop_partitions(self.database, "p", [name], is_data_deleted=False)

    def widen(self) -> Table:
        """The other one gives the table other columns and parameters."""
        table = self.other.get_table(self.database, "t")
        wider = replace(
            table,
            storage=replace(table.storage, columns=MORE),
            parameters=table.parameters | {"is": "wider"},
        )
        self.other.alter_table(self.database, "t", wider)
        return self.other.get_table(self.database, "t")


def somebody_waits(metastore: MetastoreService) -> bool:
    return bool(metastore._transactions.read(lambda connection: connection.scalar(WHO_WAIT)))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    url, warehouse = fresh_url(tmp_path), str(tmp_path / "warehouse")
    one = open_local_metastore(url, warehouse=warehouse)
    other = open_local_metastore(url, warehouse=warehouse)
    database = new_database(one)
    new_table(one, database)
    new_table(one, database, "p", partition_columns=DS)
    yield Pair(one=one, other=other, database=database)
    other.close()
    one.close()


def test_a_table_that_is_altered_meanwhile_is_read_as_it_was(pair: Pair) -> None:
    before = pair.one.get_table(pair.database, "t")
    pair.meanwhile("FROM TBLS", pair.widen)

    assert pair.one.get_table(pair.database, "t") == before
    assert pair.one.get_table(pair.database, "t").storage.columns == MORE


def test_a_partition_that_is_dropped_meanwhile_is_read_as_it_was(pair: Pair) -> None:
    before = pair.add()
    pair.meanwhile("FROM PARTITIONS", pair.drop)

    assert pair.one.get_partitions(pair.database, "p") == [before]
    assert pair.one.get_partitions(pair.database, "p") == []


@ONE_WRITER
def test_a_partition_that_two_drop_is_dropped_once_and_may_come_again(pair: Pair) -> None:
    pair.add()
    first = pair.one.get_current_event_id()
    pair.meanwhile("PARTITIONS.PART_NAME IN", pair.drop)

    with pytest.raises(NoSuchObjectError):
        pair.one.drop_partitions(pair.database, "p", ["ds=x"], is_data_deleted=False)
    pair.add()

    told = [told.type for told in events_after(pair.one, first)]
    assert told == [EventType.DROP_PARTITION, EventType.ADD_PARTITION]


@ONE_WRITER
def test_who_drops_a_partition_keeps_others_from_dropping_it(pair: Pair) -> None:
    """Else the second event of a drop would stand behind that of a partition that came again."""
    pair.add()
    first = pair.one.get_current_event_id()

    def again() -> None:
        with suppress(NoSuchObjectError):
            pair.drop()
        pair.add()

    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("SDS ON PARTITIONS", lambda: pair.beside(beside, again))
        pair.one.drop_partitions(pair.database, "p", ["ds=x"], is_data_deleted=False)

    assert pair.one.get_partition_names(pair.database, "p") == ("ds=x",)
    told = [told.type for told in events_after(pair.one, first)]
    assert told == [EventType.DROP_PARTITION, EventType.ADD_PARTITION]


@ONE_WRITER
def test_an_insert_names_the_partition_that_is_dropped_after_it(pair: Pair) -> None:
    pair.add()
    first = pair.one.get_current_event_id()
    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("SDS ON PARTITIONS", lambda: pair.beside(beside, pair.drop))
        pair.one.fire_inserts([
            InsertNotification(
                database_name=pair.database, table_name="p", partition_values=("x",)
            )
        ])  # fmt: skip

    inserted, dropped = events_after(pair.one, first)
    assert (inserted.type, dropped.type) == (EventType.INSERT, EventType.DROP_PARTITION)
    named = json.loads(read_message(inserted)["ptnObjJson"])
    assert named["1"]["lst"][-1] == "x", "its values, as thrift's JSON has them"


@ONE_WRITER
def test_a_table_that_comes_as_another_one_drops_it_is_held(pair: Pair) -> None:
    """Else the second event of a drop would stand behind that of a table that came again."""
    first = pair.one.get_current_event_id()

    def again() -> None:
        with suppress(NoSuchObjectError):
            pair.other.drop_table(pair.database, "n", is_data_deleted=False)
        new_table(pair.other, pair.database, "n")

    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("FOR UPDATE", lambda: new_table(pair.other, pair.database, "n"))
        pair.meanwhile("FROM TABLE_PARAMS", lambda: pair.beside(beside, again))
        pair.one.drop_table(pair.database, "n", is_data_deleted=False)

    assert "n" in pair.one.get_tables(pair.database)
    logged = [event.type for event in events_after(pair.one, first)]
    assert logged == [EventType.CREATE_TABLE, EventType.DROP_TABLE, EventType.CREATE_TABLE]


@ONE_WRITER
def test_a_database_that_comes_as_another_one_alters_it_is_held(pair: Pair) -> None:
    """Else what another one changed of it at that moment would be lost."""
    database = Database(name=f"{pair.database}_n", location="file:/nowhere/n")

    def describe() -> None:
        there = pair.other.get_database(database.name)
        pair.other.alter_database(database.name, replace(there, description="other"))

    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("FOR UPDATE", lambda: pair.other.create_database(database))
        pair.meanwhile("DATABASE_PARAMS ON", lambda: pair.beside(beside, describe))
        pair.one.alter_database(database.name, replace(database, parameters={"a": "b"}))

    assert pair.one.get_database(database.name).description == "other"
