"""The cleaner on a whole metastore: what goes, what stays, and what the metastore is told."""

from __future__ import annotations

from pathlib import Path

from changemanager.manifest import IntentState
from cleaner.plan import CleaningState
from hms_bridge.model.compaction import (
    CompactionState,
    CompactionType,
)
from tests.support.cleaning_world import CleaningWorld, aborted_ids, delta


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
    entry = world.compact(kind=CompactionType.MINOR)
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
    assert world.archived() == {}


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
    one, two = world.add_partition("t", "1"), world.add_partition("t", "a b")
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
