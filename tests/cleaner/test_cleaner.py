"""The cleaner on a whole metastore: what goes, what stays, and what the metastore is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from changemanager.manifest import IntentState
from cleaner.daemon import next_retry_ms
from cleaner.explain import Readiness
from cleaner.plan import CleaningState
from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import Database, Storage, Table
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import NO_TXN, CompactionId, LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.property_text import format_properties
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.server.serve import MetastoreServer
from tests.support.cleaning_world import CleaningWorld


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    return CleaningWorld(tmp_path)


def delta(first: int, last: int | None = None) -> str:
    return f"delta_{first:07d}_{last or first:07d}_0000"


def aborted_ids(world: CleaningWorld) -> tuple[WriteId, ...]:
    everything = world.metastore.get_open_txns()
    txns = ValidTxnList.from_open_txns(
        everything.high_watermark,
        [txn.id for txn in everything.txns],
        [txn.state.value == "a" for txn in everything.txns],
    )
    return world.metastore.get_all_write_ids("db.t", txns).aborted_ids


def keep_alive(world: CleaningWorld, *txns: TxnId) -> None:
    for txn_id in txns:
        world.metastore.heartbeat(txn_id, LockId(0))


# -- the usual


def test_a_major_compaction_is_cleaned_and_its_inputs_archived(world: CleaningWorld) -> None:
    for _ in range(3):
        world.write()
    entry = world.compact()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories() == [f"base_0000003_v{entry.txn_id:07d}"]
    assert world.archived_contents() == {
        "2", *(f"rows of t/delta_000000{n}_000000{n}_0000" for n in (1, 2, 3)),
    }  # fmt: skip
    assert (outcome.victim_count, outcome.archived_count, outcome.deleted_count) == (3, 4, 6)
    assert outcome.freed_bytes > 0
    assert world.state(entry) is CompactionState.SUCCEEDED
    assert world.cleaner().run_once() == ()
    origins = [
        origin
        for found in world.store.manifest.entries(world.store.archive().cmroot.uri).values()
        for origin in found.origins
    ]
    assert {origin.directory for origin in origins} == {delta(1), delta(2), delta(3)}
    assert {(one.context.table, one.context.compaction_id) for one in origins} == {("t", entry.id)}
    states = {one.state for one in world.store.manifest.intents(list(IntentState))}
    assert states == {IntentState.DONE}


def test_a_minor_compaction_takes_its_deltas_and_the_aborted_ones(world: CleaningWorld) -> None:
    world.write()
    world.write_aborted()
    world.write()
    entry = world.compact(CompactionType.MINOR)
    later = world.write()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories() == [f"delta_0000001_0000003_v{entry.txn_id:07d}", delta(later)]
    assert aborted_ids(world) == (2,)
    world.metastore.run_housekeeping()
    assert aborted_ids(world) == ()


def test_without_replication_nothing_is_archived(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_source=False)
    world.write()
    entry = world.compact()
    (outcome,) = world.cleaner().run_once()
    assert (outcome.state, outcome.archived_count) == (CleaningState.CLEANED, 0)
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]
    assert world.archived() == []


def test_insert_only_tables_too(tmp_path: Path) -> None:
    world = CleaningWorld(
        tmp_path, parameters={"transactional_properties": "insert_only"}, is_source=False
    )
    world.write()
    (world.table / delta(1) / "bucket_00000").rename(world.table / delta(1) / "part-0.orc")
    entry = world.compact()
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]


def test_files_from_before_the_table_was_acid(world: CleaningWorld) -> None:
    (world.table / "000000_0").write_bytes(b"original rows")
    (world.table / "HIVE_UNION_SUBDIR_1").mkdir()
    (world.table / "HIVE_UNION_SUBDIR_1" / "000000_0").write_bytes(b"more original rows")
    (world.table / "notes.txt").write_bytes(b"what is this?")
    (world.table / ".hive-staging_1").mkdir()
    world.write()
    entry = world.compact()
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [
        ".hive-staging_1", f"base_0000001_v{entry.txn_id:07d}", "notes.txt",
    ]  # fmt: skip
    assert {"original rows", "more original rows"} <= world.archived_contents()


def test_partitions_are_cleaned_one_by_one(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one, two = world.add_partition("1"), world.add_partition("a b")
    world.write(one)
    world.write(two)
    entry = world.compact(partition=two)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories(one) == [delta(1)]
    assert world.directories(two) == [f"base_0000002_v{entry.txn_id:07d}"]
    (origin,) = {
        origin.context.partition
        for found in world.store.manifest.entries(world.store.archive().cmroot.uri).values()
        for origin in found.origins
    }
    assert origin == two


# -- the gate


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
    assert f"{reader} (read only, long query@some-host, open for 60 s)" in explained.reason
    assert explained.plan is not None
    assert [victim.path for victim in explained.plan.victims] == [delta(1)]
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}", delta(1)]
    world.commit(reader)
    (ready,) = world.cleaner().explain()
    assert ready.readiness is Readiness.READY
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    keep_alive(world, young)


def read_lock(
    world: CleaningWorld, txn_id: TxnId = NO_TXN, *, database: str = "db", **given: object
) -> LockId:
    values: dict[str, object] = {"level": LockLevel.TABLE, "table_name": "t"} | given
    component = LockComponent(
        type=LockType.SHARED_READ, database_name=database,
        operation=DataOperation.SELECT, **values,  # type: ignore[arg-type]
    )  # fmt: skip
    request = LockRequest(components=(component,), txn_id=txn_id, user="old", host="some-host")
    return world.metastore.lock(request).lock_id


@pytest.mark.parametrize("level", [LockLevel.TABLE, LockLevel.DB])
def test_a_reader_with_a_lock_and_no_transaction_is_waited_for(
    world: CleaningWorld, level: LockLevel
) -> None:
    """I3. Hive's rule before 4: an entry waits for the locks that were there at its commit."""
    world.write()
    table = "t" if level is LockLevel.TABLE else None
    lock_id = read_lock(world, level=level, table_name=table)
    other = read_lock(world, table_name="another")
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
    world.clock.advance(300_001)
    read_lock(world)
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
    component = LockComponent(
        type=LockType.SHARED_READ, level=LockLevel.TABLE, database_name="other", table_name="t",
        operation=DataOperation.INSERT, is_transactional=True,
    )  # fmt: skip
    world.metastore.lock(LockRequest(components=(component,), txn_id=writer, user="w", host="h"))
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
    world.clock.advance(60_000)
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


# -- where Hive 4.2 loses rows


def test_an_open_write_between_aborted_ones_keeps_its_directory(world: CleaningWorld) -> None:
    """Golden g25: 1 aborted, 2 and 3 committed, 4 open, 5 aborted; Hive deletes 4."""
    world.write_aborted()
    world.write()
    world.write()
    open_txn, open_write = world.start_write()
    world.write_aborted()
    entry = world.compact(CompactionType.MINOR)
    keep_alive(world, open_txn)
    world.cleaner().run_once()
    assert delta(open_write) in world.directories()
    world.commit(open_txn)
    for _ in range(3):
        world.clock.advance(60_000)
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
    assert world.directories() == [
        f"delta_0000001_0000003_v{entry.txn_id:07d}", delta(open_write),
    ]  # fmt: skip
    assert aborted_ids(world) == ()


def test_an_aborted_overwrite_hides_nothing(world: CleaningWorld) -> None:
    """Golden g10: the base of an aborted INSERT OVERWRITE; Hive takes it for the table."""
    world.write()
    txn_id, write_id = world.start_write()
    (world.table / delta(write_id)).rename(world.table / f"base_{write_id:07d}")
    world.abort(txn_id)
    later = world.write()
    for _ in range(3):
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
        world.clock.advance(60_000)
    assert world.directories() == [delta(1), delta(later)]


def test_abort_records_stay_as_long_as_aborted_rows_do(world: CleaningWorld) -> None:
    """A delta of a stream holds aborted and committed rows; only a compaction parts them."""
    txn_id, _ = world.start_write()
    world.write()
    world.abort(txn_id)
    for write_id in (1, 2):
        for file in (world.table / delta(write_id)).iterdir():
            file.unlink()
        (world.table / delta(write_id)).rmdir()
    world.write_directory("delta_0000001_0000002")
    for _ in range(3):
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
        world.clock.advance(600_000)
    assert aborted_ids(world) == (1,)
    assert world.directories() == ["delta_0000001_0000002"]
    entry = world.compact()
    for _ in range(2):
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
        world.clock.advance(60_000)
    assert world.directories() == [f"base_0000002_v{entry.txn_id:07d}"]
    assert aborted_ids(world) == ()


def test_many_aborted_writes_and_no_other_go_in_one_pass(world: CleaningWorld) -> None:
    """A reader's list of such a table ends at the first of them."""
    for _ in range(5):
        world.write_aborted()
    (outcome,) = world.cleaner().run_once()
    assert (outcome.state, outcome.victim_count) == (CleaningState.CLEANED, 5)
    assert world.directories() == []
    assert world.metastore.find_ready_to_clean_aborts() == ()


def test_aborted_writes_of_all_partitions(tmp_path: Path) -> None:
    """Golden of HIVE-25502: without a partition only aborted directories go."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one, two = world.add_partition("1"), world.add_partition("2")
    world.write(one)
    world.compact(partition=one)
    txn_id, write_id = world.start_write()
    (world.table / delta(write_id)).rename(world.table / one / delta(write_id))
    world.write_directory(delta(write_id), partition=two)
    world.abort(txn_id)
    reader = world.open_reader()
    aborts = list(world.metastore.find_ready_to_clean_aborts())
    assert [entry.partition_name for entry in aborts] == [None]
    world.commit(reader)
    outcome = world.cleaner()._aborted.clean(aborts[0])
    assert (outcome.state, outcome.victim_count) == (CleaningState.CLEANED, 2)
    assert world.directories(two) == []
    assert delta(1) in world.directories(one)
    world.metastore.run_housekeeping()


def test_an_entry_without_partition_removes_nothing_obsolete_from_partitions(
    tmp_path: Path,
) -> None:
    """HIVE-25502: it knows nothing of who reads what in the partitions."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one = world.add_partition("1")
    world.write(one)
    entry = world.compact(partition=one)
    world.write_aborted(one)
    before = world.directories(one)
    whole = replace(entry, partition_name=None, id=CompactionId(98))
    assert world.cleaner()._compacted.clean(whole).state is CleaningState.CLEANED
    assert world.directories(one) == before
    higher = replace(whole, highest_write_id=WriteId(2))
    assert world.cleaner()._compacted.clean(higher).victim_count == 1
    assert world.directories(one) == before[:2]


def test_an_entry_with_something_left_waits(world: CleaningWorld) -> None:
    """A compaction that nobody queued is under way; its end decides what becomes of its output."""
    world.write()
    entry = world.compact()
    other = world.open(TxnType.COMPACTION, "worker")
    world.write_directory(f"base_0000001_v{other:07d}")
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.WAITING
    assert f"base_0000001_v{other:07d} may go later" in outcome.message
    assert world.state(entry) is CompactionState.READY_FOR_CLEANING
    assert delta(1) not in world.directories()
    assert world.cleaner().run_once() == ()
    world.abort(other)
    world.clock.advance(60_000)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]


# -- when something is wrong


def test_an_unwritable_cmroot_deletes_nothing_and_is_tried_again(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    cmroot = world.folder / "cmroot"
    cmroot.write_bytes(b"in the way")
    before = world.directories()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "cannot archive into" in outcome.message
    assert world.directories() == before
    queued = world.entry(entry)
    assert (queued.state, queued.retry_retention_ms) == (
        CompactionState.READY_FOR_CLEANING, 300_000,
    )  # fmt: skip
    assert "cannot archive into" in (queued.error_message or "")
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.WAITING
    assert "tried again in 300 s: " in explained.reason
    cmroot.unlink()
    world.clock.advance(300_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]
    assert len(world.archived()) == 2


def test_an_entry_that_fails_again_and_again_ends_as_failed(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    (world.folder / "cmroot").write_bytes(b"in the way")
    states = []
    for wait_ms in (0, 300_000, 600_000, 1_200_000, 2_400_000, 4_800_000):
        world.clock.advance(wait_ms)
        states.append(world.cleaner().run_once()[0].state)
    assert states == [CleaningState.POSTPONED] * 5 + [CleaningState.FAILED]
    assert world.state(entry) is CompactionState.FAILED
    assert delta(1) in world.directories()


def test_waits_double_and_end() -> None:
    settings = CompactorSettings()
    entry = Compaction(
        id=CompactionId(1), database_name="db", table_name="t",
        type=CompactionType.MAJOR, state=CompactionState.READY_FOR_CLEANING,
    )  # fmt: skip
    waits = []
    while (wait := next_retry_ms(entry, settings)) is not None:
        waits.append(wait // 1000)
        entry = replace(entry, retry_retention_ms=wait)
    assert waits == [300, 600, 1200, 2400, 4800]
    assert next_retry_ms(replace(entry, retry_retention_ms=30_000), settings) == 300_000
    assert next_retry_ms(replace(entry, type=CompactionType.ABORT_TXN_CLEANUP), settings)
    none = replace(settings, cleaner_attempts_max=0)
    assert next_retry_ms(replace(entry, retry_retention_ms=0), none) is None
    instant = replace(settings, cleaner_retry_retention_ms=0)
    assert next_retry_ms(replace(entry, retry_retention_ms=0), instant) == 1000


def test_with_the_change_manager_off_a_source_is_not_cleaned(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_archive_on=False)
    world.write()
    world.compact()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "hive.repl.cm.enabled=true" in outcome.message
    assert delta(1) in world.directories()


def test_no_cleanup_is_obeyed(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, parameters={"no_cleanup": "TRUE"})
    world.write()
    entry = world.compact()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.REFUSED
    for _ in range(8):
        (outcome,) = world.cleaner().run_once()
        assert outcome.state is CleaningState.POSTPONED
        assert "no_cleanup=true" in outcome.message
        world.clock.advance(300_000)
    assert world.state(entry) is CompactionState.READY_FOR_CLEANING
    assert delta(1) in world.directories()


def test_one_bad_table_does_not_stop_the_others(world: CleaningWorld) -> None:
    world.write()
    bad = world.compact()
    world.metastore.create_database(Database(name="other"))
    good_table = replace(
        world.metastore.get_table("db", "t"), name="u", database_name="other", id=None
    )
    good_table = replace(good_table, storage=replace(good_table.storage, location=None))
    world.metastore.create_table(good_table)
    (world.table / "base_0000001_v0000002" / "_metadata_acid").write_bytes(b"not json")
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert world.state(bad) is CompactionState.READY_FOR_CLEANING
    assert delta(1) in world.directories()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.UNREADABLE


def test_a_missing_directory_is_clean(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    world.table.rename(world.folder / "moved away")
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.state(entry) is CompactionState.SUCCEEDED


def test_an_entry_of_a_table_that_is_gone(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    ghost = replace(entry, table_name="ghost")
    outcome = world.cleaner()._compacted.clean(ghost)
    assert outcome.state is CleaningState.GONE
    assert delta(1) in world.directories()


def test_a_table_that_is_made_anew_while_it_is_cleaned(world: CleaningWorld) -> None:
    """Between the look and the deletion the table is dropped and comes back with the same names."""
    world.write()
    world.write()
    world.compact()
    cleaner = world.cleaner()
    remover = cleaner._compacted._cleaning._remover
    remove = remover.remove

    def slow(plan, require_same):
        world.metastore.drop_table("db", "t", is_purge=True)
        world.create_table()
        world.write()
        return remove(plan, require_same)

    remover.remove = slow  # type: ignore[method-assign]
    (outcome,) = cleaner.run_once()
    assert outcome.state is CleaningState.WAITING
    assert "meanwhile" in outcome.message
    assert world.directories() == [delta(1)]


def test_a_database_that_becomes_a_source_meanwhile(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_source=False)
    world.write()
    world.compact()
    cleaner = world.cleaner()
    remover = cleaner._compacted._cleaning._remover
    remove = remover.remove

    def slow(plan, require_same):
        found = world.metastore.get_database("db")
        world.metastore.alter_database(
            "db", replace(found, parameters={"repl.source.for": "policy"})
        )
        return remove(plan, require_same)

    remover.remove = slow  # type: ignore[method-assign]
    (outcome,) = cleaner.run_once()
    assert outcome.state is CleaningState.WAITING
    assert delta(1) in world.directories()
    world.clock.advance(60_000)
    assert world.cleaner().run_once()[0].archived_count == 2


def test_a_removal_that_is_not_wanted_any_more_is_given_up(world: CleaningWorld) -> None:
    """A row of an interrupted run names what a later plan keeps."""
    world.write()
    world.write()
    entry = world.compact()
    cleaner = world.cleaner()
    stray = cleaner._reaper._protocol.plan(
        str(world.table / f"base_0000002_v{entry.txn_id:07d}"),
        root=str(world.table),
        context=replace(_context_of(world, entry), location=f"file:{world.table}"),
        is_archived=True,
    )
    assert stray is not None
    world.store.manifest.add_intent(stray)
    assert cleaner.run_once()[0].state is CleaningState.CLEANED
    stored = world.store.manifest.intent(stray.intent_id)
    assert stored is not None
    assert stored.state is IntentState.ABANDONED
    assert world.directories() == [f"base_0000002_v{entry.txn_id:07d}"]


def _context_of(world: CleaningWorld, entry: Compaction):
    from changemanager.manifest import ArchiveCause, ArchiveContext

    return ArchiveContext(
        cause=ArchiveCause.OBSOLETE, database="db", table="t", compaction_id=entry.id
    )


def test_removals_whose_recording_died_are_tidied_up(world: CleaningWorld) -> None:
    world.write()
    world.compact()
    cleaner = world.cleaner()
    cleaner._compacted._cleaning._remover.finish = lambda location: None  # type: ignore[method-assign]
    assert cleaner.run_once()[0].state is CleaningState.CLEANED
    states = [one.state for one in world.store.manifest.intents(list(IntentState))]
    assert states == [IntentState.DELETED]
    world.clock.advance(3_600_001)
    world.cleaner().run_once()
    states = [one.state for one in world.store.manifest.intents(list(IntentState))]
    assert states == [IntentState.DONE]
    world.clock.advance(31 * 86_400_000)
    world.cleaner().run_once()
    assert world.store.manifest.intents(list(IntentState)) == ()


# -- soft drops, which a Hive beside us leaves


def soft_drop(world: CleaningWorld, location: Path, partition: str | None = None) -> Compaction:
    return Compaction(
        id=CompactionId(99),
        database_name="db",
        table_name="gone" if partition is None else "t",
        partition_name=partition,
        type=CompactionType.MAJOR,
        state=CompactionState.READY_FOR_CLEANING,
        properties={"location": f"file:{location}", "ifPurge": "true"},
        highest_write_id=WriteId(1),
    )


def test_a_dropped_directory_goes_as_a_whole(world: CleaningWorld) -> None:
    dropped = world.table.parent / "gone.v0000012"
    (dropped / delta(1)).mkdir(parents=True)
    (dropped / delta(1) / "bucket_00000").write_bytes(b"dropped rows")
    outcome = world.cleaner()._dropped.clean(soft_drop(world, dropped))
    assert (outcome.state, outcome.archived_count) == (CleaningState.CLEANED, 1)
    assert not dropped.exists()
    assert "dropped rows" in world.archived_contents()


def test_a_dropped_directory_in_which_another_table_lives_stays(world: CleaningWorld) -> None:
    world.write()
    with pytest.raises(Exception, match="table t lies in it too; nothing was deleted"):
        world.cleaner()._dropped.clean(soft_drop(world, world.table))
    assert world.directories() == [delta(1)]


def test_a_dropped_directory_in_which_another_database_has_a_table_stays(
    world: CleaningWorld,
) -> None:
    dropped = world.table.parent / "gone"
    (dropped / "file").mkdir(parents=True)
    world.store.metastore.create_database(Database(name="other"))
    table = world.store.metastore.get_table("db", "t")
    moved = replace(table.storage, location=f"file:{dropped}/file")
    world.store.metastore.create_table(
        replace(table, database_name="other", name="mine", storage=moved)
    )
    with pytest.raises(Exception, match="table mine lies in it too; nothing was deleted"):
        world.cleaner()._dropped.clean(soft_drop(world, dropped))
    assert (dropped / "file").is_dir()


def test_a_dropped_partition_in_which_another_one_lives_stays(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one, two = world.add_partition("1"), world.add_partition("2")
    world.write(one)
    metastore = world.store.metastore
    (found,) = metastore.get_partitions_by_names("db", "t", [two])
    shared = replace(found.storage, location=f"file:{world.table / one}")
    metastore.alter_partitions("db", "t", [replace(found, storage=shared)])
    metastore.drop_partitions("db", "t", [one], is_data_deleted=False)
    with pytest.raises(Exception, match=f"partition {two} lies in it too; nothing was deleted"):
        world.cleaner()._dropped.clean(soft_drop(world, world.table / one, one))
    assert world.directories(one) == [delta(1)]


def test_a_dropped_partition_that_is_back_is_cleaned_as_acid(tmp_path: Path) -> None:
    """Golden g15c: only what the drop's own base covers goes."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one = world.add_partition("1")
    world.write(one)
    drop_txn, drop_write = world.start_write(one)
    path = world.table / one / delta(drop_write)
    for file in path.iterdir():
        file.unlink()
    path.rename(world.table / one / f"base_{drop_write:07d}")
    world.commit(drop_txn)
    later = world.write(one)
    entry = replace(soft_drop(world, world.table / one, one), highest_write_id=WriteId(drop_write))
    outcome = world.cleaner()._dropped.clean(entry)
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories(one) == [f"base_{drop_write:07d}", delta(later)]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"", "it is empty"),
        (b"ORC" + b"rows" * 100 + bytes(4096), "ends in zeros"),
        (b"ORC" + b"rows cut off in the middle", "damaged"),
    ],
)
@pytest.mark.parametrize("is_source", [False, True])
def test_what_a_damaged_base_replaces_stays(
    tmp_path: Path, damage: bytes, reason: str, is_source: bool
) -> None:
    """The machine crashed, and the base's writer had not brought it to the disk."""
    world = CleaningWorld(tmp_path, is_source=is_source)
    world.write()
    entry = world.compact()
    base = world.table / f"base_0000001_v{entry.txn_id:07d}"
    whole = (base / "bucket_00000").read_bytes()
    (base / "bucket_00000").write_bytes(damage)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert reason in outcome.message
    assert (world.table / delta(1) / "bucket_00000").read_bytes()
    (base / "bucket_00000").write_bytes(whole)
    world.clock.advance(600_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED


def test_what_an_aborted_write_left_in_a_partition_elsewhere_goes_too(tmp_path: Path) -> None:
    """I7: its abort record is forgotten only when none of its rows is left anywhere."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    world.add_partition("1")
    elsewhere = tmp_path / "elsewhere"
    (inside,) = world.metastore.get_partitions("db", "t")
    storage = replace(inside.storage, location=str(elsewhere))
    world.metastore.add_partitions("db", "t", [replace(inside, values=("2",), storage=storage)])
    txn_id, write_id = world.start_write()  # a dynamic-partition write names its table only
    elsewhere.mkdir(exist_ok=True)
    for place in (world.table / "p=1", elsewhere):
        shutil.copytree(world.table / delta(write_id), place / delta(write_id))
    shutil.rmtree(world.table / delta(write_id))
    world.abort(txn_id)
    world.clock.advance(60_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories("p=1") == []
    assert list(elsewhere.iterdir()) == []


def test_a_dropped_directory_outside_of_the_warehouse_stays(world: CleaningWorld) -> None:
    """I12: its entry ends, and says that a person must delete it."""
    dropped = world.folder / "home" / "gone"
    (dropped / delta(1)).mkdir(parents=True)
    outcome = world.cleaner()._dropped.clean(soft_drop(world, dropped))
    assert outcome.state is CleaningState.CLEANED
    assert "its files stay: it is outside of the warehouse" in outcome.message
    assert (dropped / delta(1)).is_dir()


def test_a_compaction_that_names_a_directory_is_no_dropped_one(world: CleaningWorld) -> None:
    """A client of a Hive metastore beside us may put any property into its request."""
    victim = world.table.parent / "victim"
    victim.mkdir()
    (victim / "file").write_text("mine")
    world.write()
    world.write()
    entry = world.compact()
    engine = open_database(world.url)
    with engine.transaction(write=True) as connection:
        properties = format_properties({"location": f"file:{victim}", "ifPurge": "true"})
        connection.execute(update(COMPACTION_QUEUE).values(CQ_TBLPROPERTIES=properties))
    engine.close()
    (outcome,) = world.cleaner().run_once()
    assert (outcome.state, outcome.entry.id) == (CleaningState.CLEANED, entry.id)
    assert (victim / "file").read_text() == "mine"
    assert all(one.startswith("base_") for one in world.directories())


def test_a_client_cannot_name_a_directory_in_its_request(world: CleaningWorld) -> None:
    asked = CompactionRequest(
        database_name="db", table_name="t", type=CompactionType.MAJOR,
        properties={"location": f"file:{world.folder}"},
    )  # fmt: skip
    with MetastoreServer(0, world.metastore) as server:
        client = ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}")
        for metastore in (world.metastore, client):
            with pytest.raises(InvalidOperationError, match="takes no property location"):
                metastore.compact(asked)
        client.close()
    assert world.metastore.show_compactions() == ()


def test_directories_in_which_another_table_lies_are_not_cleaned(world: CleaningWorld) -> None:
    """However that came about: others write into this database, too."""
    first = world.write()
    world.write()
    world.compact()
    place = world.table / delta(first)
    world.store.metastore.create_table(
        Table(
            name="inside", database_name="db", type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"}, storage=Storage(location=f"file:{place}"),
        )
    )  # fmt: skip
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "table inside lies in it too" in outcome.message
    assert place.is_dir()
