"""Pins of dumps: which dump a pin belongs to, and when it may go."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from changemanager.manifest import Pin, PinKind
from hms_bridge.repl.format.layout import database_directory
from hms_bridge.repl.pinned_dumps import PinnedDumpState, pinned_dumps, release_loaded_dumps
from hms_bridge.repl.pins import DumpPins, dump_holder, pinned_dump, policy_holder
from tests.support.archive_manifest import InMemoryManifest
from tests.support.simulated_clock import SimulatedClock


def pin(holder: str, kind: PinKind = PinKind.DUMP) -> Pin:
    return Pin(holder=holder, kind=kind, reason="test", created_at_ms=1)


def make_dump(root: Path, name: str, *markers: str) -> str:
    hive = Path(database_directory(str(root), "sales")) / name / "hive"
    hive.mkdir(parents=True)
    for marker in markers:
        (hive / marker).touch()
    return f"file:{hive.parent}"


@pytest.mark.parametrize("database", ["sales", "a:b", "ö"])
@pytest.mark.parametrize("root", ["file:/dr/dumps", "hdfs://h:8020/x:y", "/plain"])
def test_a_holder_tells_database_and_directory(database: str, root: str) -> None:
    directory = f"{database_directory(root, database)}/7f3c"
    assert pinned_dump(dump_holder(database, directory)) == (database, directory)
    assert pinned_dump(policy_holder(database, root)) is None
    assert pinned_dump("dump:sales:/somewhere/else/7f3c") is None
    assert pinned_dump("dump:sales:7f3c") is None


def test_what_became_of_dumps(tmp_path: Path) -> None:
    waiting = make_dump(tmp_path, "a", "_finished_dump")
    unfinished = make_dump(tmp_path, "b")
    loaded = make_dump(tmp_path, "c", "_finished_dump", "_finished_load")
    gone = f"file:{database_directory(str(tmp_path), 'sales')}/d"
    elsewhere = f"file:{database_directory(str(tmp_path / 'unmounted'), 'sales')}/e"
    unreachable = f"nosuch://h{database_directory('/x', 'sales')}/f"
    directories = (waiting, unfinished, loaded, gone, elsewhere, unreachable)
    pins = [pin(dump_holder("sales", one)) for one in directories]
    found = pinned_dumps(FsspecResolver(), [*pins, pin("policy:sales", PinKind.POLICY)])
    assert {one.directory: one.state for one in found} == {
        waiting: PinnedDumpState.WAITING,
        unfinished: PinnedDumpState.WAITING,
        loaded: PinnedDumpState.LOADED,
        gone: PinnedDumpState.GONE,
        elsewhere: PinnedDumpState.UNKNOWN,
        unreachable: PinnedDumpState.UNKNOWN,
    }
    assert all(one.reason for one in found if one.state is PinnedDumpState.UNKNOWN)
    manifest = InMemoryManifest()
    for one in pins:
        manifest.put_pin(one)
    (released,) = release_loaded_dumps(FsspecResolver(), manifest)
    assert released.directory == loaded
    assert len(manifest.pins()) == len(pins) - 1


def test_a_dump_below_another_root_keeps_its_pin() -> None:
    """A second dump root must not forget what the first one's dump still needs (I5)."""
    manifest = InMemoryManifest()
    pins = DumpPins(manifest=manifest, clock=SimulatedClock(), database="sales", root="/one")
    here, there = (f"{database_directory(root, 'sales')}/a" for root in ("/one", "/other"))
    pins.hold(here, [])
    pins.hold(there, [])
    assert pins.release_loaded([], database_directory("/one", "sales")) == (here,)
    assert [one.holder for one in manifest.pins()] == [dump_holder("sales", there)]
