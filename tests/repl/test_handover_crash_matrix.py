"""A promotion or a failback that is killed at any step: asked for again it goes on to one end."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import Location
from hms_bridge.backend.schema.txn_tables import REPL_TXN_MAP
from hms_bridge.errors import MetaError
from tests.support.engines import MEMORY
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.handover_world import POLICY, Sites
from tests.support.world import World

KILLED_EACH = int(os.environ.get("HMS_BRIDGE_KILLED_EACH", "5"))
"""Of the steps; each once with 1."""


class Killed:
    """Both sites on disk and in memory, which can be put back, and verbs that die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.sites = Sites(folder, urls=(MEMORY, MEMORY)).with_tables()

    def run(self, verb: Callable[..., object], faults: FaultPlan) -> None:
        def wrap(metastore: object) -> Any:
            return FaultyMetastore(metastore, faults)

        def watch(resolve: Any) -> Any:
            return faulty(resolve, faults, self._is_watched)

        verb(self.sites.sides(wrap, watch))

    def _is_watched(self, place: Location) -> bool:
        return place.path.startswith(str(self.folder))

    def save(self) -> tuple[dict[Path, bytes | None], bytes, bytes]:
        files = {
            path: path.read_bytes() if path.is_file() else None
            for path in sorted(self.folder.rglob("*"))
        }
        main, dr = (zlib.compress(one.backup(), 1) for one in (self.sites.main, self.sites.dr))
        return files, main, dr

    def restore(self, saved: tuple[dict[Path, bytes | None], bytes, bytes]) -> None:
        files, main, dr = saved
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for path, content in files.items():
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)
        self.sites.main.restore(zlib.decompress(main))
        self.sites.dr.restore(zlib.decompress(dr))

    def state(self) -> dict[str, object]:
        """Everything that users of both sites see."""
        return {
            name: {
                "rows": {table: world.rows(table) for table in world.metastore.get_tables(POLICY)},
                "part": sorted(world.metastore.get_database(POLICY).parameters.keys() - VOLATILE),
                "replays": len(world.records(REPL_TXN_MAP)),
                "can write": can_write(world),
                "pins": [pin.holder.partition(":")[0] for pin in world.metastore.manifest.pins()],
            }
            for name, world in (("main", self.sites.main), ("dr", self.sites.dr))
        } | {"policy": self.sites.policy}


VOLATILE = {"hive.repl.first.inc.pending", "hms.bridge.repl.first.inc.tables"}


def can_write(world: World) -> bool:
    """Last, as it takes a write id."""
    try:
        writer = world.begin()
        writer.write_id("u")
    except MetaError:
        return False
    finally:
        writer.abort()
    return True


def survive_crashes(killed: Killed, verb: Callable[..., object], check: Callable[[], None]) -> int:
    """How many steps the verb has; before a step is as after the one before."""
    saved = killed.save()
    counting = FaultPlan()
    killed.run(verb, counting)
    check()
    expected = killed.state()
    points = [at for at, label in enumerate(counting.labels, 1) if not label.startswith("before")]
    for at in points[::KILLED_EACH]:
        killed.restore(saved)
        faults = FaultPlan()
        faults.crash_at = at
        where = f"killed at point {at}: {counting.labels[at - 1]}"
        with pytest.raises(CrashError):
            killed.run(verb, faults)
        assert not can_both_write(killed), where
        killed.run(verb, FaultPlan())
        check()
        found = killed.state()
        for name, wanted in expected.items():
            assert found[name] == wanted, (where, name)
    return len(points)


def can_both_write(killed: Killed) -> bool:
    """There is never a moment at which both sites take what clients write."""
    return can_write(killed.sites.main) and can_write(killed.sites.dr)


@pytest.fixture
def killed(fast_folder: Path) -> Killed:
    return Killed(fast_folder / "live")


def test_a_planned_switch_may_be_killed_anywhere(killed: Killed) -> None:
    sites = killed.sites
    sites.main.insert("t", (3, "c"))

    def check() -> None:
        assert [row["id"] for row in sites.dr.rows("t")] == [1, 2, 3]
        sites.assert_same()

    steps = survive_crashes(killed, lambda sides: sites.promote(sides, is_planned=True), check)
    assert steps > 60


def test_a_failover_may_be_killed_anywhere(killed: Killed) -> None:
    """Of a source that can be reached, with writers that it knows of and others."""
    sites = killed.sites
    known = sites.main.begin()
    known.insert("t", [(3, "open")])
    sites.replicate()
    unknown = sites.main.begin()
    unknown.insert("u", [(3, "open")])
    sites.main.insert("t", (4, "never replicated"))

    def check() -> None:
        assert [row["id"] for row in sites.dr.rows("t")] == [1, 2]

    assert survive_crashes(killed, sites.promote, check) > 15


def test_a_failback_may_be_killed_anywhere(killed: Killed) -> None:
    """With one table of each kind: changed there, here, on both sides, and made here alone."""
    sites = killed.sites
    sites.main.create_table("here")
    sites.main.insert("here", (1, "a"))
    sites.replicate()
    sites.main.create_table("mine")
    sites.main.insert("here", (2, "only here"))
    sites.main.insert("t", (3, "only here"))
    sites.promote()
    sites.dr.insert("t", (4, "d"))
    sites.dr.insert("u", (4, "d"))

    def check() -> None:
        sites.assert_same()
        assert [row["id"] for row in sites.main.rows("t")] == [1, 2, 4]
        assert sites.main.metastore.get_tables(POLICY) == ("here", "t", "u")

    steps = survive_crashes(killed, lambda sides: sites.failback(sides, is_discarded=True), check)
    assert steps > 60
