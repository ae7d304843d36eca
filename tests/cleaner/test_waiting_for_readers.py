"""What the cleaner waits for: readers, open transactions, entries that reach less far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.manifest import IntentState
from cleaner.explain import Readiness
from cleaner.plan import CleaningState
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionState, CompactionType
from hms_bridge.model.ids import NO_TXN, LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnType
from hms_bridge.txn.readers import PLANNING_MS
from tests.conformance import objects
from tests.support.cleaning_world import CleaningWorld, delta, keep_alive


def test_a_reader_from_before_the_commit_is_waited_for(world: CleaningWorld) -> None:
    world.write()
    reader = world.open_reader("long query")
    entry = world.compact()
    young = world.open_reader()
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.BLOCKED
    assert [(one.id, one.user, one.host) for one in explained.blockers] == [
        (reader, "long query", "some-host")
    ]
    assert f"{reader} (read only, long query@some-host, open for 1 min 0 s)" in explained.reason
    assert explained.plan is not None
    assert [victim.path for victim in explained.plan.victims] == [delta(1)]
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}", delta(1)]
    world.commit(reader)
    (ready,) = world.cleaner().explain()
    assert ready.readiness is Readiness.READY
    world.clock.advance_ms(PLANNING_MS)  # it lists elsewhere, or has done so
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    keep_alive(world, young)


def read_lock(
    world: CleaningWorld,
    txn_id: TxnId = NO_TXN,
    *,
    level: LockLevel = LockLevel.TABLE,
    database: str = "db",
    table: str | None = "t",
) -> LockId:
    component = LockComponent(
        type=LockType.SHARED_READ,
        level=level,
        scope=Scope(database, table),
        operation=DataOperation.SELECT,
    )
    request = LockRequest(components=(component,), txn_id=txn_id, user="old", host="some-host")
    return world.metastore.lock(request).lock_id


@pytest.mark.parametrize("level", [LockLevel.TABLE, LockLevel.DB])
def test_a_reader_with_a_lock_and_no_transaction_is_waited_for(
    world: CleaningWorld, level: LockLevel
) -> None:
    """I3. Hive's rule before 4: an entry waits for the locks that were there at its commit."""
    world.write()
    table = "t" if level is LockLevel.TABLE else None
    lock_id = read_lock(world, level=level, table=table)
    other = read_lock(world, table="another")
    world.compact()
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.LOCKED
    assert str(lock_id) in explained.reason
    assert delta(1) in world.directories()
    world.metastore.unlock(lock_id)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    world.metastore.unlock(other)


def test_a_lock_taken_well_after_the_commit_blocks_nothing(world: CleaningWorld) -> None:
    world.write()
    world.compact()
    near = read_lock(world)
    assert world.cleaner().run_once() == ()  # its snapshot may be older than the lock
    world.metastore.unlock(near)
    world.clock.advance_ms(300_001)
    read_lock(world)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED


def test_a_lock_that_is_waited_for_blocks_whenever_it_was_asked_for(world: CleaningWorld) -> None:
    """I3. Its reader may have taken its snapshot before."""
    world.write()
    world.compact()
    writer = world.open()
    drops = objects.component("db", kind=LockType.EXCLUSIVE, operation=DataOperation.NO_TXN)
    world.metastore.lock(objects.request(drops, txn=writer))
    world.clock.advance_ms(300_001)
    world.metastore.heartbeat(writer, LockId(0))
    waiting = read_lock(world)
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.LOCKED
    assert str(waiting) in explained.reason
    world.metastore.unlock(waiting)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED


def says_by_lock(world: CleaningWorld, txn_id: TxnId, database: str) -> None:
    read_lock(world, txn_id, database=database)


def says_by_registering(world: CleaningWorld, txn_id: TxnId, database: str) -> None:
    world.metastore.add_write_ids_to_min_history(txn_id, {f"{database}.t": WriteId(1)})


@pytest.mark.parametrize("say", [says_by_lock, says_by_registering])
@pytest.mark.parametrize("kind", [TxnType.READ_ONLY, TxnType.DEFAULT])
def test_a_reader_of_another_database_blocks_nothing(
    world: CleaningWorld, kind: TxnType, say: Callable[[CleaningWorld, TxnId, str], None]
) -> None:
    world.metastore.create_database(Database(name="other"))
    world.write()
    reader = world.open(kind, "elsewhere")
    entry = world.compact()
    assert world.cleaner().run_once() == ()  # it may read anything
    say(world, reader, "other")
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.READY
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]
    keep_alive(world, reader)


@pytest.mark.parametrize("say", [says_by_lock, says_by_registering])
def test_a_reader_of_both_databases_blocks(
    world: CleaningWorld, say: Callable[[CleaningWorld, TxnId, str], None]
) -> None:
    world.metastore.create_database(Database(name="other"))
    world.write()
    reader = world.open_reader()
    say(world, reader, "other")
    say(world, reader, "db")
    world.compact()
    assert world.cleaner().run_once() == ()
    assert delta(1) in world.directories()
    keep_alive(world, reader)


def test_the_locks_of_a_writer_do_not_say_what_it_reads(world: CleaningWorld) -> None:
    """INSERT INTO other.t SELECT … FROM db.t with hive.txn.read.locks=false."""
    world.metastore.create_database(Database(name="other"))
    world.write()
    writer = world.open()
    component = objects.component("other", operation=DataOperation.INSERT)
    world.metastore.lock(objects.request(component, txn=writer))
    world.compact()
    assert world.cleaner().run_once() == ()
    keep_alive(world, writer)


def test_a_compaction_that_is_not_committed_deletes_nothing(world: CleaningWorld) -> None:
    world.write()
    entry, txn_id = world.start_compaction()
    world.publish(entry, txn_id)
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.UNCOMMITTED
    assert "its transaction is open" in explained.reason
    world.abort(txn_id)
    (explained, *_) = world.cleaner().explain()
    assert explained.readiness is Readiness.UNCOMMITTED
    assert "was aborted" in explained.reason
    world.cleaner().run_once()
    assert delta(1) in world.directories()


def test_what_an_aborted_compaction_left_is_removed_with_the_next(world: CleaningWorld) -> None:
    world.write()
    entry, txn_id = world.start_compaction()
    world.publish(entry, txn_id)
    world.abort(txn_id)
    world.metastore.mark_failed(replace(entry, error_message="died"))
    good = world.compact()
    world.cleaner().run_once()
    assert world.directories() == [f"base_0000001_v{good.txn_id:07d}"]


def test_the_entry_that_reaches_least_far_comes_first(world: CleaningWorld) -> None:
    world.write()
    first = world.compact()
    world.write()
    second = world.compact()
    (outcome,) = world.cleaner().run_once()
    assert outcome.entry.id == first.id
    behind = next(one for one in world.cleaner().explain() if one.entry.id == second.id)
    assert behind.readiness is Readiness.READY
    (outcome,) = world.cleaner().run_once()
    assert outcome.entry.id == second.id
    assert world.directories() == [f"base_0000002_v{second.txn_id:07d}"]


def test_of_two_bases_of_one_number_the_old_one_stays_for_its_readers(
    world: CleaningWorld,
) -> None:
    """Rebalance: base_1_v2 and base_1_v4. A reader of the first began before the second ended."""
    world.write()
    first = world.compact()
    world.cleaner().run_once()
    entry, txn_id = world.start_compaction()
    reader = world.open_reader()
    world.publish(entry, txn_id)
    world.commit(txn_id, TxnType.COMPACTION)
    world.write_aborted()
    world.clock.advance_ms(60_000)
    bases = [f"base_0000001_v{first.txn_id:07d}", f"base_0000001_v{txn_id:07d}"]
    (outcome,) = world.cleaner().run_once()
    assert outcome.entry.type is CompactionType.ABORT_TXN_CLEANUP
    assert world.directories() == bases
    cleaner = world.cleaner()
    target = cleaner._planner.target(entry)
    txns = cleaner._planner.lists(target).txns
    assert (txns.high_watermark, txns.is_valid(txn_id)) == (reader - 1, False)
    assert cleaner._planner.plan(entry, target).victims == ()
    world.commit(reader)
    world.cleaner().run_once()
    assert world.directories() == bases[1:]


def listing_reader(world: CleaningWorld) -> TxnId:
    """Of the newest snapshot; it has its lock, and lists next."""
    reader = world.open_reader()
    read_lock(world, reader)
    return reader


def files_in(world: CleaningWorld, directory: str) -> list[str]:
    return sorted(path.name for path in (world.table / directory).iterdir())


@pytest.mark.parametrize("is_source", [True, False])
def test_no_directory_goes_while_a_reader_may_list_it(tmp_path: Path, is_source: bool) -> None:
    """Hive's SELECT takes a directory that goes between two of its looks for an empty table."""
    world = CleaningWorld(tmp_path, is_source=is_source)
    world.write()
    world.write()
    entry = world.compact()
    base = f"base_0000002_v{entry.txn_id:07d}"
    reader = listing_reader(world)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.WAITING
    assert "being read" in outcome.message
    assert world.directories() == [base, delta(1), delta(2)]
    assert files_in(world, delta(1)) == files_in(world, delta(2)) == []
    assert files_in(world, base)
    assert len(world.archived()) == (3 if is_source else 0)
    world.commit(reader)
    (waiting,) = world.cleaner().explain()
    assert waiting.readiness is Readiness.WAITING
    assert "being read" in waiting.reason
    world.clock.advance_ms(30_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [base]
    assert not world.store.manifest.intents([state for state in IntentState if state.is_open])


def test_a_reader_that_stays_does_not_hold_up_for_long(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    reader = listing_reader(world)
    assert world.cleaner().run_once()[0].state is CleaningState.WAITING
    world.clock.advance_ms(30_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]
    keep_alive(world, reader)


def test_once_the_reader_has_gone_the_directories_can_go_now(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    reader = listing_reader(world)
    for _ in range(2):
        (outcome,) = world.cleaner().run_once(is_retried_now=True)
        assert outcome.state is CleaningState.WAITING
        assert delta(1) in world.directories()
    world.commit(reader)
    assert world.cleaner().run_once() == ()
    (waiting,) = world.cleaner().passed_over(())
    assert "being read" in waiting.reason
    assert world.cleaner().run_once(is_retried_now=True)[0].state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]


def test_being_read_is_no_failed_try(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    reader = listing_reader(world)
    world.cleaner().run_once()
    stored = next(one for one in world.metastore.show_compactions() if one.id == entry.id)
    assert stored.state is CompactionState.READY_FOR_CLEANING
    assert "being read" in (stored.error_message or "")
    keep_alive(world, reader)
