"""Who may be listing a table just now, so that no directory of it is to go at that moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.model.compaction import NEVER_QUEUED, Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import NO_TXN, CompactionId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from hms_bridge.txn.readers import GIVING_WAY_MS, LISTING_MS, PLANNING_MS
from tests.conformance import objects
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for name in ("t", "other"):
        world.create_table(name)
    world.create_table("p", is_partitioned=True)
    for value in "12":
        world.add_partition("p", value)
    return world


def entry(world: World, table: str = "t", partition: str | None = None) -> Compaction:
    """One that was compacted just now."""
    return Compaction(
        id=CompactionId(7),
        target=Target("db", table, partition),
        type=CompactionType.MAJOR,
        state=CompactionState.READY_FOR_CLEANING,
        committed_ms=world.clock.now_ms(),
    )


def read(world: World, table: str = "t", partition: str | None = None) -> TxnId:
    """A SELECT has its lock."""
    return _lock(world, DataOperation.SELECT, table, partition=partition)


def _lock(
    world: World,
    operation: DataOperation,
    table: str = "t",
    *,
    kind: LockType = LockType.SHARED_READ,
    partition: str | None = None,
) -> TxnId:
    is_read = operation is DataOperation.SELECT
    txn_id = world.open(TxnType.READ_ONLY if is_read else TxnType.DEFAULT)
    component = objects.component("db", table, kind, operation, partition)
    world.metastore.lock(objects.request(component, txn=txn_id))
    return txn_id


def is_listed(world: World, asked: Compaction) -> bool:
    (answer,) = world.metastore.are_listed([asked])
    return answer


def test_of_each_its_own_table(world: World) -> None:
    read(world)
    read(world, "p", "p=1")
    entries = [
        entry(world),
        entry(world, "other"),
        entry(world, "p", "p=1"),
        entry(world, "p", "p=2"),  # a reader lists one partition after the other
        entry(world),
        replace(entry(world), target=Target("elsewhere", "t")),
    ]
    assert world.metastore.are_listed(entries) == (True, False, True, True, True, False)
    assert world.metastore.are_listed([]) == ()


def test_a_reader_that_plans_may_list_anything_next(world: World) -> None:
    world.open(TxnType.READ_ONLY)
    asked = [entry(world), replace(entry(world), target=Target("elsewhere", "t"))]
    assert world.metastore.are_listed(asked) == (True, True)
    world.clock.advance_ms(PLANNING_MS)
    assert world.metastore.are_listed(asked) == (False, False)


@pytest.mark.parametrize("kind", [TxnType.DEFAULT, TxnType.COMPACTION])
def test_only_who_reads_alone_counts(world: World, kind: TxnType) -> None:
    world.open(kind)
    assert not is_listed(world, entry(world))


def test_a_reader_that_has_its_lock_lists_that_table(world: World) -> None:
    read(world, "other")
    assert not is_listed(world, entry(world))
    reader = world.open(TxnType.READ_ONLY)
    world.metastore.add_write_ids_to_min_history(reader, {"db.other": WriteId(1)})
    assert not is_listed(world, entry(world))


def test_only_for_a_moment(world: World) -> None:
    read(world)
    world.clock.advance_ms(LISTING_MS - 1)
    assert is_listed(world, entry(world))
    world.clock.advance_ms(1)
    assert not is_listed(world, entry(world))


def test_not_after_the_reader_has_ended(world: World) -> None:
    reader = read(world)
    assert is_listed(world, entry(world))
    world.commit(reader)
    assert not is_listed(world, entry(world))


def test_a_reader_without_a_transaction_counts(world: World) -> None:
    component = objects.component("db", "t", LockType.SHARED_READ, DataOperation.SELECT)
    world.metastore.lock(objects.request(component, txn=NO_TXN))
    assert is_listed(world, entry(world))


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        (DataOperation.INSERT, LockType.SHARED_READ),
        (DataOperation.INSERT, LockType.SHARED_WRITE),
        (DataOperation.UPDATE, LockType.EXCL_WRITE),
    ],
)
def test_whoever_writes_does_not_count(
    world: World, operation: DataOperation, kind: LockType
) -> None:
    """Its job fails if a directory is missing, and streams of inserts never end."""
    _lock(world, operation, kind=kind)
    assert not is_listed(world, entry(world))


def test_a_reader_that_waits_for_its_lock_does_not_list_yet(world: World) -> None:
    _lock(world, DataOperation.NO_TXN, kind=LockType.EXCLUSIVE)
    read(world)
    assert not is_listed(world, entry(world))


def test_on_a_table_that_is_always_read_it_ends(world: World) -> None:
    compacted = entry(world)
    world.clock.advance_ms(GIVING_WAY_MS)
    read(world)
    assert is_listed(world, compacted)
    world.clock.advance_ms(LISTING_MS)
    read(world)
    assert not is_listed(world, compacted)


def test_a_clean_up_of_aborts_gives_way_since_it_is_queued(world: World) -> None:
    queued_ms = world.clock.now_ms()
    cleanup = replace(entry(world), committed_ms=None, type=CompactionType.ABORT_TXN_CLEANUP)
    world.clock.advance_ms(GIVING_WAY_MS + 1)
    read(world)
    assert is_listed(world, replace(cleanup, id=NEVER_QUEUED))
    assert is_listed(world, replace(cleanup, enqueued_ms=world.clock.now_ms()))
    assert not is_listed(world, replace(cleanup, enqueued_ms=queued_ms))
