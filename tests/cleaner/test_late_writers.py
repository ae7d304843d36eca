"""A writer that was given up for lost may not know it: what it brings late must not be read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.config.settings import CompactorSettings
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockType
from tests.conformance import objects
from tests.support.cleaning_world import CleaningWorld, aborted_ids, delta

RETENTION_MS = CompactorSettings().abort_retention_ms


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    return CleaningWorld(tmp_path, abort_retention_ms=RETENTION_MS)


def lose_writer(world: CleaningWorld, partition: str | None = None) -> WriteId:
    """It has its write id and no file yet when its transaction times out."""
    txn_id = world.open()
    change = objects.component("db", "t", LockType.SHARED_WRITE, DataOperation.INSERT, partition)
    world.metastore.lock(objects.request(change, txn=txn_id))
    write_id = objects.write_id(world.metastore, txn_id, "db")
    world.clock.advance_ms(400_000)
    world.metastore.run_housekeeping()
    return write_id


def keep_house(world: CleaningWorld) -> None:
    """Often enough, and within the retention."""
    for _ in range(3):
        world.clock.advance_ms(60_000)
        world.commit(world.open())  # the last transaction is remembered
        world.cleaner().run_once()
        world.metastore.run_housekeeping()


@pytest.mark.parametrize("is_compacted", [False, True])
def test_what_comes_late_is_aborted_and_goes(world: CleaningWorld, is_compacted: bool) -> None:
    """I2: the cleaner has been there, after a compaction or of its own accord; Hive reads it."""
    world.write()
    late = lose_writer(world)
    if is_compacted:
        world.compact(kind=CompactionType.MINOR)
    keep_house(world)
    world.write_directory(f"delete_{delta(late)}")  # no compacted delta covers it
    world.write_directory(delta(late))
    assert aborted_ids(world) == (late,)
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert {delta(late), f"delete_{delta(late)}"}.isdisjoint(world.directories())
    assert aborted_ids(world) == ()


def test_the_time_counts_from_the_abort(world: CleaningWorld) -> None:
    """A metastore that was down gets no heartbeats, and its writers go on."""
    txn_id, late = world.start_write()
    world.clock.advance_ms(2 * RETENTION_MS)
    world.metastore.run_housekeeping()
    keep_house(world)
    assert aborted_ids(world) == (late,)
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert aborted_ids(world) == ()
    assert world.directories() == []


def test_what_was_compacted_beyond_aborts_is_read(world: CleaningWorld) -> None:
    """I3: they stay on record, and the committed write before them does not. Lists of Hive's end at
    the first of them then, and the base is of no use to their readers."""
    world.write()
    for _ in range(2):
        world.write_aborted()
    world.compact()
    keep_house(world)
    (seen,) = world.metastore.get_valid_write_ids(["db.t"])
    assert (seen.high_watermark, seen.aborted_ids) == (3, (2, 3))


def test_a_partition_that_is_made_again_shows_nothing_late(tmp_path: Path) -> None:
    """I2: who drops one to try again does not forget what was aborted there."""
    world = CleaningWorld(tmp_path, is_partitioned=True, abort_retention_ms=RETENTION_MS)
    world.add_partition("t", "1")
    again = world.metastore.get_partition("db", "t", ["1"])
    late = lose_writer(world, "p=1")
    world.metastore.drop_partitions("db", "t", ["p=1"])
    world.metastore.add_partitions("db", "t", [again])
    world.write("p=1")
    keep_house(world)
    world.write_directory(delta(late), partition="p=1")
    assert aborted_ids(world) == (late,)
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert aborted_ids(world) == ()
    assert delta(late) not in world.directories("p=1")


def test_nobody_asks_for_a_compaction_in_vain(world: CleaningWorld) -> None:
    """What cannot be forgotten yet counts for no threshold, so that it is asked for once."""
    world.write_aborted()
    assert world.metastore.find_potential_compactions(0, 0) == ()
    assert world.metastore.find_ready_to_clean_aborts() == ()
    world.clock.advance_ms(RETENTION_MS)
    (found,) = world.metastore.find_potential_compactions(0, 0)
    assert found.has_too_many_aborts


def test_a_dropped_table_leaves_nothing_to_wait_for(world: CleaningWorld) -> None:
    world.write_aborted()
    world.metastore.drop_table("db", "t")
    keep_house(world)
    assert world.metastore.get_open_txns().snapshot().aborted_ids == ()


def drop(world: CleaningWorld) -> None:
    world.metastore.drop_partitions("db", "t", ["p=1"])


def rename(world: CleaningWorld) -> None:
    old = world.metastore.get_partition("db", "t", ["1"])
    new = replace(old, values=("2",), storage=replace(old.storage, location=None))
    world.metastore.rename_partition("db", "t", ["1"], new)


@pytest.mark.parametrize("leave", [drop, rename])
def test_what_comes_late_to_where_a_partition_was_goes_before_it_is_forgotten(
    tmp_path: Path, leave: Callable[[CleaningWorld], None]
) -> None:
    """I7: a partition may be made there again when the abort is forgotten."""
    world = CleaningWorld(tmp_path, is_partitioned=True, abort_retention_ms=RETENTION_MS)
    world.add_partition("t", "1")
    late = lose_writer(world, "p=1")
    leave(world)
    world.write_directory(delta(late), partition="p=1")
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert aborted_ids(world) == ()
    assert delta(late) not in world.names("t", "p=1")


def test_what_an_open_writer_brings_to_a_dropped_partition_goes_too(tmp_path: Path) -> None:
    """I7: what it wrote to another partition, too, is no reason to forget this one."""
    world = CleaningWorld(tmp_path, is_partitioned=True, abort_retention_ms=RETENTION_MS)
    for value in "12":
        world.add_partition("t", value)
    txn_id = world.open()
    changes = [
        objects.component("db", "t", LockType.SHARED_WRITE, DataOperation.INSERT, f"p={value}")
        for value in "12"
    ]
    world.metastore.lock(objects.request(*changes, txn=txn_id))
    late = objects.write_id(world.metastore, txn_id, "db")
    drop(world)
    world.write_directory(delta(late), partition="p=1")
    world.abort(txn_id)
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert aborted_ids(world) == ()
    assert delta(late) not in world.names("t", "p=1")


def test_a_file_of_several_writes_in_a_dropped_partition_keeps_their_aborts(tmp_path: Path) -> None:
    """I7: a stream's file has rows of a write that was aborted beside those of others; both are in
    the partition that is made there again."""
    world = CleaningWorld(tmp_path, is_partitioned=True, abort_retention_ms=RETENTION_MS)
    world.add_partition("t", "1")
    late, other = lose_writer(world, "p=1"), world.open()
    change = objects.component("db", "t", LockType.SHARED_WRITE, DataOperation.INSERT, "p=1")
    world.metastore.lock(objects.request(change, txn=other))
    last = objects.write_id(world.metastore, other, "db")
    drop(world)
    stream = world.write_directory(f"delta_{late:07d}_{last:07d}", partition="p=1")
    world.commit(other)
    world.clock.advance_ms(RETENTION_MS)
    keep_house(world)
    assert aborted_ids(world) == (late,)
    assert stream.exists()
    shutil.rmtree(stream)
    keep_house(world)
    assert aborted_ids(world) == ()
