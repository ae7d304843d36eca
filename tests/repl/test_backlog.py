"""What a database's replica lacks, counted as its readers would."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.model.catalog import Column, Database
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.txn import AllocateWriteIdsRequest
from hms_bridge.repl.dump.backlog import Backlog, find_backlog
from hms_bridge.repl.dump.event_source import EventRange

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
