"""What a database's replica lacks, counted as its readers would."""

from __future__ import annotations

import json
from dataclasses import replace

from hms_bridge.model.catalog import Column, Database, Partition, Table
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.txn import AllocateWriteIdsRequest
from hms_bridge.repl.dump.backlog import Backlog, find_backlog
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.format.noted_statistics import notes_statistics_alone
from hms_bridge.wire.object_json import partition_to_json, table_to_json

SRC = ReplScope(database_name="src")


def behind(world, after: EventId) -> Backlog:
    until = world.source.get_current_event_id()
    return find_backlog(world.source, EventRange(after=after, until=until), SRC)


def test_readers_and_other_databases_are_no_lag(world):
    after = world.source.get_current_event_id()
    world.source.create_database(Database(name="other", location=str(world.folder / "other.db")))
    world.commit(world.open())
    txn = world.open()
    world.abort(txn)
    assert world.source.get_current_event_id() > after
    assert behind(world, after) == Backlog()


def test_aborted_writes_are_no_lag(world):
    after = world.source.get_current_event_id()
    txn = world.open()
    world.source.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="src", table_name="t", txn_ids=(txn,))
    )
    assert behind(world, after) == Backlog()
    world.abort(txn)
    assert behind(world, after) == Backlog()


def test_the_oldest_counts_not_the_newest(world):
    after = world.source.get_current_event_id()
    world.commit(world.open())
    world.clock.advance_ms(3_600_000)
    began_ms = world.clock.now_ms()
    world.insert("t", (2, "b"))
    world.clock.advance_ms(3_600_000)
    world.insert("t", (3, "c"))
    found = behind(world, after)
    assert (found.commits, found.changes) == (2, 0)
    assert began_ms // 1000 == found.oldest_ms // 1000


def test_a_definition_is_a_change(world):
    after = world.source.get_current_event_id()
    table = world.describe("t")
    columns = (*table.storage.columns, Column(name="more", type="int"))
    altered = replace(table, storage=replace(table.storage, columns=columns))
    world.source.alter_table("src", "t", altered)
    found = behind(world, after)
    assert (found.commits, found.changes) == (0, 1)


ACID = {"transactional": "true"}
TRANSACTIONAL = Table(name="t", database_name="src", parameters=ACID)
COUNTED = {"numRows": "7", "numFiles": "2", "totalSize": "99", "transient_lastDdlTime": "1"}


def test_what_a_hive_counts_beside_its_commit_is_no_change(world):
    """Its INSERT alters the table twice: by the time, and by what was counted."""
    after = world.source.get_current_event_id()
    table = world.describe("t")
    counted = replace(table, parameters={**table.parameters, **COUNTED})
    world.source.alter_table("src", "t", counted)
    assert world.source.get_current_event_id() > after
    assert behind(world, after) == Backlog()


def test_a_property_beside_what_was_counted_is_a_change(world):
    after = world.source.get_current_event_id()
    table = world.describe("t")
    parameters = {**table.parameters, **COUNTED, "owner.of.it": "ann"}
    world.source.alter_table("src", "t", replace(table, parameters=parameters))
    assert behind(world, after).changes == 1


def test_counts_of_a_table_without_transactions_are_a_change(world):
    """Who writes files into it, as Spark does, tells of them by nothing else."""
    world.create_table("plain", transactional="false")
    after = world.source.get_current_event_id()
    table = world.describe("plain")
    counted = replace(table, parameters={**table.parameters, **COUNTED})
    world.source.alter_table("src", "plain", counted)
    assert behind(world, after).changes == 1


def test_counts_of_a_partition_without_transactions_are_a_change():
    before = Partition(values=("1",), database_name="src", table_name="t")
    counted = replace(before, parameters=COUNTED)
    plain = Table(name="t", database_name="src")
    assert not notes_statistics_alone(altered_partition(before, counted, table=plain))


def test_a_truncation_is_a_change_though_only_counts_tell_it():
    before = Table(name="t", database_name="src", parameters={"numRows": "7", **ACID})
    after = replace(before, parameters={"numRows": "0", **ACID})
    assert notes_statistics_alone(altered(before, after))
    assert not notes_statistics_alone(altered(before, after, is_truncate=True))


def test_counts_of_a_partition_are_no_change_unless_it_is_moved():
    before = Partition(values=("1",), database_name="src", table_name="t")
    counted = replace(before, parameters=COUNTED)
    assert notes_statistics_alone(altered_partition(before, counted))
    assert not notes_statistics_alone(altered_partition(before, replace(counted, values=("2",))))


def altered(before: Table, after: Table, *, is_truncate: bool = False) -> NotificationEvent:
    message = {
        "tableObjBeforeJson": table_to_json(before),
        "tableObjAfterJson": table_to_json(after),
        "isTruncateOp": str(is_truncate).lower(),
    }
    return event_of("ALTER_TABLE", message)


def altered_partition(
    before: Partition, after: Partition, table: Table = TRANSACTIONAL
) -> NotificationEvent:
    message = {
        "tableObjJson": table_to_json(table),
        "partitionObjBeforeJson": partition_to_json(before),
        "partitionObjAfterJson": partition_to_json(after),
        "isTruncateOp": "false",
    }
    return event_of("ALTER_PARTITION", message)


def event_of(kind: str, message: dict[str, str]) -> NotificationEvent:
    return NotificationEvent(
        id=EventId(1), time_seconds=0, type=kind, database_name="src", table_name="t",
        message=json.dumps(message),
    )  # fmt: skip


def test_a_commit_counts_though_its_write_began_before(world):
    """The last dump had its write id; only the commit says that rows are there."""
    txn = world.open()
    world.source.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="src", table_name="t", txn_ids=(txn,))
    )
    reader = world.open()
    after = world.source.get_current_event_id()
    world.commit(reader)
    assert behind(world, after) == Backlog()
    world.commit(txn)
    assert behind(world, after).txns == (txn,)


def test_a_commit_whose_beginning_nobody_knows_any_more_counts(world):
    """Rather one too many than rows that nobody waits for."""
    txn = world.open()
    after = world.source.get_current_event_id()
    world.commit(txn)
    wanted = EventRange(after=after, until=world.source.get_current_event_id())
    assert find_backlog(world.source, wanted, SRC) == Backlog()
    assert find_backlog(ShortLog(world.source, after), wanted, SRC).txns == (txn,)


class ShortLog:
    """A log that was purged up to an event."""

    def __init__(self, store, purged: EventId) -> None:
        self._store = store
        self._purged = purged

    def get_next_notification(self, request):
        found = self._store.get_next_notification(request)
        return tuple(event for event in found if event.id > self._purged)


def test_tables_outside_of_the_scope_are_no_lag(world):
    world.create_table("u")
    before = world.open()
    world.source.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="src", table_name="u", txn_ids=(before,))
    )
    after = world.source.get_current_event_id()
    world.insert("u", (2, "b"))
    world.commit(before)
    world.source.drop_table("src", "u")
    until = world.source.get_current_event_id()
    wanted = EventRange(after=after, until=until)
    scope = ReplScope.parse("src.'t.*'")
    assert find_backlog(world.source, wanted, scope) == Backlog()
    world.insert("t", (3, "c"))
    world.create_table("t2")
    table = world.describe("t2")
    world.source.alter_table("src", "t2", replace(table, name="x"))
    until = world.source.get_current_event_id()
    found = find_backlog(world.source, EventRange(after=after, until=until), scope)
    assert (found.commits, found.changes) == (1, 2)
