"""A compaction that outlives its table or partition (a DROP or RENAME without a lock) brings no
rows back, and hides none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hms_bridge.backend.schema.txn_tables import HMSB_LATE_WRITER, TXN_COMPONENTS, TXNS
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import MetaError, NoSuchCompactionError, TxnAbortedError
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.txn import TxnType
from hms_bridge.service.warehouse_files import WarehouseFiles
from tests.service.test_writers_of_dropped_tables import (
    RETENTION_MS,
    create_under_another_name,
    ids,
    rename_and_create,
)
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, compactor=CompactorSettings(aborted_txn_threshold=0))
    yield world
    world.close()


@dataclass(frozen=True)
class LateWorker:
    """A worker of Hive's, which writes to the place itself, after its table has gone."""

    world: World
    entry: Compaction
    txn_id: TxnId
    place: Path
    files: Path

    def bring(self) -> None:
        shutil.copytree(self.files, self.place / f"base_0000001_v{self.txn_id:07}")

    def die(self) -> None:
        """And everybody forgets whom nobody has to remember."""
        self.world.clock.advance_ms(400_000)
        for _ in range(2):
            self.world.metastore.run_housekeeping()
            self.world.commit(self.world.open())  # the last transaction is remembered


def late_worker(world: World, partition: str = "") -> LateWorker:
    """Of one write, whose row it has."""
    world.insert("t", (1, "old"), partition=partition)
    place, files = world.path("t", partition), world.folder / "of the late worker"
    shutil.copytree(place / "delta_0000001_0000001_0000", files)
    world.request_compaction("t", partition=partition or None)
    claimed = world.metastore.find_next_compaction("hive-1", "4.2.0")
    assert claimed is not None
    txn_id = world.open(TxnType.COMPACTION)
    entry = replace(claimed, highest_write_id=WriteId(1))
    world.metastore.update_compactor_state(entry, txn_id)
    return LateWorker(world, entry, txn_id, place, files)


def write_two(world: World, table: str = "t", partition: str = "") -> None:
    for number in NEW:
        world.insert(table, (number, "new"), partition=partition)


NEW = [10, 11]


def drop_and_create_later(world: World) -> str:
    """Within the retention."""
    world.metastore.drop_table("db", "t")
    world.commit(world.open())  # the last transaction is remembered
    world.clock.advance_ms(60_000)
    world.metastore.run_housekeeping()
    world.create_table()
    return "t"


@pytest.mark.parametrize(
    "make_successor", (drop_and_create_later, create_under_another_name, rename_and_create)
)
def test_it_shows_nothing_in_the_next_table(
    world: World, make_successor: Callable[[World], str]
) -> None:
    """I1: old rows would be back, and the first writes of the next table hidden."""
    world.create_table()
    late = late_worker(world)
    table = make_successor(world)
    late.bring()
    with pytest.raises(NoSuchCompactionError):
        world.metastore.mark_compacted(late.entry)
    with pytest.raises(TxnAbortedError):
        world.commit(late.txn_id)
    write_two(world, table)
    late.die()
    assert ids(world, table) == NEW
    world.clock.advance_ms(RETENTION_MS)
    world.metastore.run_housekeeping()
    world.clean()
    assert not list(late.place.glob("base_*"))
    late.die()
    assert world.records(HMSB_LATE_WRITER) == []
    assert world.records(TXN_COMPONENTS) == []
    assert ids(world, table) == NEW
    assert late.txn_id not in {row["TXN_ID"] for row in world.records(TXNS)}


def drop_and_add(world: World) -> None:
    world.metastore.drop_partitions("db", "t", ["p=1"])
    world.add_partition("t", "1")


def rename_and_add(world: World) -> None:
    old = world.metastore.get_partition("db", "t", ["1"])
    new = replace(old, values=("2",), storage=replace(old.storage, location=None))
    world.metastore.rename_partition("db", "t", ["1"], new)
    world.add_partition("t", "1")
    world.metastore.drop_partitions("db", "t", ["p=2"])


@pytest.mark.parametrize("make_successor", (drop_and_add, rename_and_add))
def test_it_shows_nothing_in_the_next_partition(
    world: World, make_successor: Callable[[World], None]
) -> None:
    world.create_table(is_partitioned=True)
    world.add_partition("t", "1")
    late = late_worker(world, "p=1")
    make_successor(world)
    with pytest.raises(TxnAbortedError):  # at its next sign of life, not only when it commits
        world.metastore.heartbeat(late.txn_id, LockId(0))
    late.bring()
    with pytest.raises(TxnAbortedError):
        world.commit(late.txn_id)
    write_two(world, partition="p=1")
    late.die()
    assert ids(world) == NEW
    world.clock.advance_ms(RETENTION_MS)
    world.clean()
    assert not list(late.place.glob("base_*"))
    late.die()
    assert ids(world) == NEW


def test_compactions_of_other_partitions_go_on(world: World) -> None:
    world.create_table(is_partitioned=True)
    for value in "12":
        world.add_partition("t", value)
    late = late_worker(world, "p=1")
    world.metastore.drop_partitions("db", "t", ["p=2"])
    world.metastore.mark_compacted(late.entry)
    world.commit(late.txn_id)


@pytest.mark.parametrize("partition", ("", "p=1"))
def test_one_that_ends_while_its_table_is_dropped_goes_too(
    world: World, monkeypatch: pytest.MonkeyPatch, partition: str
) -> None:
    """I1: it has ended before the drop, which has looked at the files already."""
    world.create_table(is_partitioned=bool(partition))
    if partition:
        world.add_partition("t", "1")
    for number in range(2):
        world.insert("t", (number, "old"), partition=partition)
    world.request_compaction("t", partition=partition or None)
    look, workers = WarehouseFiles.look, [world.worker()]

    def look_and_compact(files: WarehouseFiles, place: str) -> object:
        seen = look(files, place)
        while workers:
            workers.pop().run_once()
        return seen

    monkeypatch.setattr(WarehouseFiles, "look", look_and_compact)
    if partition:
        drop_and_add(world)
    else:
        world.metastore.drop_table("db", "t")
        world.create_table()
    assert world.names("t", partition) == set()


def test_a_table_is_not_made_of_what_another_one_left(world: World) -> None:
    """I1: after the retention nobody remembers whose it is."""
    world.create_table()
    late = late_worker(world)
    made = world.describe()
    world.metastore.drop_table("db", "t")
    late.bring()
    world.clock.advance_ms(RETENTION_MS + 1000)
    late.die()
    with pytest.raises(MetaError, match=r"db\.t cannot be made at .*: base_0000001_v\d+ lies"):
        world.metastore.create_table(made)
    shutil.rmtree(late.place)
    world.create_table()
    shutil.rmtree(late.place)


def test_a_table_is_made_of_what_was_written_for_it(world: World) -> None:
    """As CREATE TABLE AS SELECT does."""
    world.create_table("u")
    world.insert("u", (1, "x"))
    early = world.txns.open_one()
    assert world.txns.allocate(early) == [1]
    delta = world.path("u") / "delta_0000001_0000001_0000"
    shutil.copytree(delta, world.path("u").parent / "t" / delta.name)
    world.create_table()
    world.commit(early)
    assert ids(world) == [1]
