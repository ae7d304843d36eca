"""A cut of power at any step loses no committed row: durable before visible, visible before
anything that it replaces is deleted (I1, I7)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from changemanager.manifest import LEASE_MS
from changemanager.transfer import give_new_name
from cleaner.daemon import make_cleaner
from hms_bridge.acid.markers import ACID_VERSION, ACID_VERSION_FILE
from hms_bridge.acid.names import DirectoryName
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.txn import (
    TxnState,
)
from tests.support.databases import fresh_url
from tests.support.power_loss import Loss, PoweredMetastore, PowerFailure, PowerLossDisk
from tests.support.world import World, world_to_compact

STEPS_MAX = 200
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(fast_root: Path, tmp_path: Path) -> Path:
    """In memory where there is one: the syncs of the database cost nothing there."""
    folder = fast_root / tmp_path.name
    folder.mkdir()
    return folder


@pytest.fixture
def disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PowerLossDisk:
    return PowerLossDisk(folder / "disk", monkeypatch)


class PoweredWorld:
    """A table on a disk that can lose power."""

    def __init__(self, world: World, disk: PowerLossDisk) -> None:
        self.world, self.disk = world, disk
        self.store, self.clock = world.store, world.clock

    def fail_at(
        self, step: int, work: Callable[[], Any], before: Callable[[], None] = lambda: None
    ) -> bool:
        """Do the work; the power fails before a step of it. Whether it came to its end.

        What ``before`` does is not on the disk but for what it syncs.
        """
        world, plain = self.world, self.store.metastore
        self.disk.settle()
        before()
        self.disk.crash_at = self.disk.count + step
        world.metastore = PoweredMetastore(plain, self.disk)
        is_done = False
        try:
            with suppress(PowerFailure):
                work()
                is_done = not self.disk.is_dead
        finally:
            world.metastore = plain
        self.disk.cut()
        return is_done

    def rows_after(self, loss: Loss) -> Rows:
        """What readers find who come after the cut; transactions of the dead have timed out."""
        self.disk.come_back(loss)
        opened = self.store.metastore.get_open_txns_info()
        self.store.metastore.abort_txns([one.id for one in opened if one.state is TxnState.OPEN])
        return self.world.rows()

    def has_versions(self) -> bool:
        """Whether every base and delta tells the version of its format, as Hive wants to know."""
        found = [
            (path / ACID_VERSION_FILE).read_bytes()
            for path in self.world.path().iterdir()
            if DirectoryName.parse(path.name)
        ]
        return len(found) > 0 and set(found) == {ACID_VERSION}

    def compact(self) -> None:
        """All of the table, into a base that nobody is in the way of."""
        self.world.request_compaction(kind=CompactionType.MAJOR)
        outcome = self.world.worker().run_once()
        assert outcome is not None
        assert outcome.state == "compacted", outcome.message
        # Nobody who began before can still come, and no dead cleaner's lease holds.
        self.clock.advance_ms(2 * LEASE_MS)

    def clean(self) -> None:
        """What it replaced goes."""
        cleaner = make_cleaner(replace(self.store, metastore=self.world.metastore))
        assert [one.state.value for one in cleaner.run_once()] == ["cleaned"]

    def go_on(self, step: int) -> None:
        """The machine is up again, whichever way the names went."""
        self.disk.come_back(list(Loss)[step % len(Loss)])
        self.disk.settle()
        self.store.metastore.revoke_timed_out_workers(-1)


@pytest.fixture
def powered(folder: Path, disk: PowerLossDisk) -> PoweredWorld:
    """The database is on a disk of its own, that keeps what was committed."""
    world = world_to_compact(World(disk.root, url=fresh_url(folder)))
    disk.settle()
    return PoweredWorld(world, disk)


@pytest.mark.parametrize("kind", [CompactionType.MAJOR, CompactionType.MINOR])
def test_a_compaction_survives_a_cut_at_any_step(
    powered: PoweredWorld, kind: CompactionType
) -> None:
    world = powered.world
    before = world.rows()
    for step in range(1, STEPS_MAX):
        world.request_compaction(kind=kind)
        is_done = powered.fail_at(step, lambda: world.worker(metastore=world.metastore).run_once())
        for loss in Loss:
            assert powered.rows_after(loss) == before, (powered.disk.labels[-3:], loss)
            assert not is_done or powered.has_versions()
        if is_done:
            assert step > 10
            return
        powered.go_on(step)
        while (again := world.worker().run_once()) is not None:
            assert again.state in ("compacted", "refused"), again.message
        world.insert("t", (100 + step, "more"), (300 + step, "more"))
        world.delete("t", 300 + step)
        before = world.rows()
    pytest.fail("the worker never came to its end")


@pytest.mark.parametrize("is_source", [False, True])
def test_what_a_compaction_replaced_is_deleted_only_when_nothing_can_bring_it_back(
    powered: PoweredWorld, is_source: bool
) -> None:
    """The cleaner syncs its deletions: what they leave alone must be on the disk before."""
    world = powered.world
    if is_source:
        database = world.metastore.get_database("db")
        world.metastore.alter_database(
            "db", replace(database, parameters={"repl.source.for": "policy"})
        )
    before = world.rows()
    held = _file_contents(powered.disk.root)

    for step in range(1, STEPS_MAX):
        is_done = powered.fail_at(step, powered.clean, powered.compact)
        for loss in Loss:
            assert powered.rows_after(loss) == before, (powered.disk.labels[-3:], loss)
            if is_source:
                assert held <= _file_contents(powered.disk.root), (step, loss)
        if is_done:
            assert step > 10
            return
        powered.go_on(step)
        assert all(o.state.value == "cleaned" for o in make_cleaner(powered.store).run_once())
        world.insert("t", (100 + step, "more"), (300 + step, "more"))
        before = world.rows()
        held = _file_contents(powered.disk.root)
    pytest.fail("the cleaner never came to its end")


def test_what_its_writer_did_not_sync_is_on_the_disk_before_what_it_replaces_goes(
    powered: PoweredWorld,
) -> None:
    """As a compaction of Hive leaves it."""
    before = powered.world.rows()

    def compact() -> None:
        powered.compact()
        for base in powered.world.path().glob("base_*"):
            copy = base.with_name(f"_tmp_{base.name}")
            shutil.copytree(base, copy)
            shutil.rmtree(base)
            copy.rename(base)

    assert powered.fail_at(STEPS_MAX, powered.clean, compact)
    assert not list(powered.world.path().glob("delta_*"))
    for loss in Loss:
        assert powered.rows_after(loss) == before, loss


def _file_contents(root: Path) -> set[bytes]:
    """Of bucket files of deltas, wherever they lie: in the warehouse or in the archive."""
    return {
        path.read_bytes()
        for path in root.rglob("bucket_*")
        if "base_" not in str(path) and "_tmp_" not in str(path)
    }


def test_a_committed_write_survives_a_cut_at_any_step(powered: PoweredWorld) -> None:
    world = powered.world
    before = world.rows()
    for step in range(1, STEPS_MAX):
        new = {"id": 100 + step, "v": "new"}
        is_done = powered.fail_at(step, lambda n=new: world.insert("t", (n["id"], n["v"])))
        expected = [*_values(before), *([new] if is_done else [])]
        for loss in Loss:
            assert _values(powered.rows_after(loss)) == expected, (powered.disk.labels[-3:], loss)
        if is_done:
            return
        powered.go_on(step)
    pytest.fail("the write never came to its end")


def test_a_write_makes_a_missing_table_directory_for_good(powered: PoweredWorld) -> None:
    """Somebody removed it while the table was empty."""
    world = powered.world
    shutil.rmtree(world.path())
    assert powered.fail_at(STEPS_MAX, lambda: world.insert("t", (7, "new")))
    for loss in Loss:
        assert _values(powered.rows_after(loss)) == [{"id": 7, "v": "new"}]


def _values(rows: Rows) -> Rows:
    return [{"id": row["id"], "v": row["v"]} for row in rows]


def test_a_committed_statement_survives_a_cut_at_any_step(
    powered: PoweredWorld,
) -> None:
    """As Spark's tasks and driver do it, into a partition that is not there yet."""
    world = powered.world
    world.create_table("p", is_partitioned=True)
    powered.disk.settle()

    def insert(value: int) -> None:
        with world.transaction() as writer:
            writer.insert("p", [(value, "new")], partition=f"p=k{value}")

    for step in range(1, STEPS_MAX):
        is_done = powered.fail_at(step, lambda value=step: insert(value))
        for loss in Loss:
            powered.rows_after(loss)
            rows = world.rows("p")
            expected = [{"id": step, "v": "new"}] if is_done else []
            assert _values(rows) == expected, (powered.disk.labels[-3:], loss)
        if is_done:
            return
        powered.go_on(step)
    pytest.fail("the statement never came to its end")


def test_an_archived_file_is_on_the_disk_though_its_writer_did_not_sync_it(
    disk: PowerLossDisk,
) -> None:
    """The delete protocol: placed, the cmroot's names synced, and only then deleted (I4)."""
    disk.settle()
    resolve = FsspecResolver()
    source, target = resolve(f"{disk.root}/bucket_00000"), resolve(f"{disk.root}/cm/archived")
    target.volume.make_directory(target.parent.path)
    Path(source.path).write_bytes(b"rows")
    give_new_name(source, target, source.checksum(), lambda: "token", ())
    target.volume.sync_directory(target.parent.path)
    Path(source.path).unlink()
    for loss in Loss:
        disk.come_back(loss)
        assert Path(target.path).read_bytes() == b"rows"
