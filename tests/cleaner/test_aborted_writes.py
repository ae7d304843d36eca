"""What aborted writes left goes, and what they might hide stays; Hive 4.2 loses rows here."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from changemanager.filesystem.opening import open_volume, volume_of
from changemanager.filesystem.volume import Volume
from changemanager.location import FsspecResolver
from cleaner.plan import CleaningState
from cleaner.planner import CleaningPlanner
from hms_bridge.model.compaction import (
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockType,
)
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from tests.conformance import objects
from tests.support.cleaning_world import CleaningWorld, aborted_ids, delta, keep_alive


def test_an_open_write_between_aborted_ones_keeps_its_directory(world: CleaningWorld) -> None:
    """Golden g25: 1 aborted, 2 and 3 committed, 4 open, 5 aborted; Hive deletes 4."""
    world.write_aborted()
    world.write()
    world.write()
    open_txn, open_write = world.start_write()
    world.write_aborted()
    entry = world.compact(kind=CompactionType.MINOR)
    keep_alive(world, open_txn)
    world.cleaner().run_once()
    assert delta(open_write) in world.directories()
    world.commit(open_txn)
    for _ in range(3):
        world.clock.advance_ms(60_000)
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
        world.clock.advance_ms(60_000)
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
        world.clock.advance_ms(600_000)
    assert aborted_ids(world) == (1,)
    assert world.directories() == ["delta_0000001_0000002"]
    entry = world.compact()
    for _ in range(2):
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
        world.clock.advance_ms(60_000)
    assert world.directories() == [f"base_0000002_v{entry.txn_id:07d}"]
    assert aborted_ids(world) == ()


def test_a_write_that_aborts_during_a_pass_keeps_its_record(
    world: CleaningWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: the pass judges up to below the open write, which is the table's first."""
    open_txn, open_write = world.start_write()
    idle = world.open()
    change = objects.component("db", "t", LockType.SHARED_WRITE, DataOperation.UPDATE)
    world.metastore.lock(objects.request(change, txn=idle))
    world.abort(idle)  # it took no write id, so its record has none
    found = world.metastore.find_ready_to_clean_aborts()
    assert [entry.highest_write_id for entry in found] == [0]
    world.abort(open_txn)
    with monkeypatch.context() as patch:
        patch.setattr(world.metastore, "find_ready_to_clean_aborts", lambda **_: found)
        world.cleaner().run_once()
    world.metastore.run_housekeeping()
    assert delta(open_write) in world.directories()
    assert open_write in aborted_ids(world)
    for _ in range(3):
        world.clock.advance_ms(600_000)
        world.cleaner().run_once()
        world.metastore.run_housekeeping()
    assert world.directories() == []
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
    one, two = world.add_partition("t", "1"), world.add_partition("t", "2")
    world.write(one)
    world.compact(partition=one)
    txn_id, write_id = world.start_write()
    (world.table / delta(write_id)).rename(world.table / one / delta(write_id))
    world.write_directory(delta(write_id), partition=two)
    world.abort(txn_id)
    reader = world.open_reader()
    aborts = list(world.metastore.find_ready_to_clean_aborts())
    assert [entry.target.partition for entry in aborts] == [None]
    world.commit(reader)
    outcome = world.cleaner()._first.aborted.clean(aborts[0])
    assert (outcome.state, outcome.victim_count) == (CleaningState.CLEANED, 2)
    assert world.directories(two) == []
    assert delta(1) in world.directories(one)
    world.metastore.run_housekeeping()


def test_a_partition_on_another_cluster_is_looked_at_too(tmp_path: Path) -> None:
    """I7. It lies at the same path, but not below the table: forgotten, its rows would be seen."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    name = world.add_partition("t", "1")
    (known,) = world.metastore.get_partitions_by_names("db", "t", [name])
    place = f"hdfs://other{world.table}/{name}"
    moved = replace(known, storage=replace(known.storage, location=place))
    world.metastore.alter_partitions("db", "t", [moved])
    txn_id, write_id = world.start_write()
    elsewhere = DirFileSystem(path=str(tmp_path / "other"), fs=LocalFileSystem(auto_mkdir=True))
    elsewhere.pipe_file(f"{world.table}/{name}/{delta(write_id)}/bucket_00000", b"rows")
    world.abort(txn_id)

    def opened(scheme: str, authority: str) -> Volume:
        return volume_of(elsewhere) if scheme == "hdfs" else open_volume(scheme, authority)

    planner = CleaningPlanner(world.metastore, FsspecResolver(opened))
    (entry,) = world.metastore.find_ready_to_clean_aborts()
    plan = planner.plan(entry, planner.target(entry))
    assert [root.location for root in plan.roots] == [f"file:{world.table}", place]
    assert [victim.path for victim in plan.victims] == [delta(write_id)] * 2


def test_an_entry_without_partition_removes_nothing_obsolete_from_partitions(
    tmp_path: Path,
) -> None:
    """HIVE-25502: it knows nothing of who reads what in the partitions."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one = world.add_partition("t", "1")
    world.write(one)
    entry = world.compact(partition=one)
    world.write_aborted(one)
    before = world.directories(one)
    whole = replace(entry, target=Target("db", "t"), id=CompactionId(98))
    assert world.cleaner()._first.compacted.clean(whole).state is CleaningState.CLEANED
    assert world.directories(one) == before
    higher = replace(whole, highest_write_id=WriteId(2))
    assert world.cleaner()._first.compacted.clean(higher).victim_count == 1
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
    world.clock.advance_ms(60_000)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]


def test_what_an_aborted_write_left_in_a_partition_elsewhere_goes_too(tmp_path: Path) -> None:
    """I7: its abort record is forgotten only when none of its rows is left anywhere."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    world.add_partition("t", "1")
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
    world.clock.advance_ms(60_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories("p=1") == []
    assert list(elsewhere.iterdir()) == []
