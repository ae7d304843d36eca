"""How a load copies: each byte read once, in pace, stopped at the next piece, resumed by file."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.errors import ChecksumMismatchError
from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from changemanager.transfer import copy_verified
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.format.verify import Reading
from hms_bridge.repl.load.bandwidth import Throttle, TokenBucket
from hms_bridge.repl.load.copy import Copier
from tests.support.copying import copy_below
from tests.support.repl_world import ReplWorld
from tests.support.server_processes import until
from tests.support.simulated_clock import SimulatedClock

DELTA = "delta_0000001_0000001_0000"


class CountingVolume(LocalVolume):
    """Counts how often each file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Counter[str] = Counter()

    def open_input(self, path: str):
        self.opened[path] += 1
        return super().open_input(path)


def counting() -> tuple[CountingVolume, FsspecResolver]:
    volume = CountingVolume()
    return volume, FsspecResolver(lambda _scheme, _authority: volume)


def dumped(path: Path, *, has_checksum: bool = True) -> DumpedFile:
    return DumpedFile(
        uri=f"file:{path}",
        checksum=FsspecResolver()(f"file:{path}").checksum() if has_checksum else None,
        cmroot=None,
        sub_directory=DELTA,
        source_directory=DELTA,
    )


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "source" / DELTA
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"bucket_{number:05d}").write_bytes(bytes([number]) * 700_000)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_source_is_read_once(tmp_path: Path, sources: list[Path], has_checksum: bool) -> None:
    volume, resolve = counting()
    files = tuple(dumped(path, has_checksum=has_checksum) for path in sources)
    report = copy_below(Copier(resolve), files, resolve(f"{tmp_path}/target"))
    assert {volume.opened[str(path)] for path in sources} == {1}
    assert (report.source_files, report.bytes) == (4, 4 * 700_000)


def test_a_whole_load_reads_a_source_once(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    volume, resolve = counting()
    loader = world.loader()
    loader._resolve = resolve
    loader.run(loader.plan(world.load_request))
    read = [path for path in volume.opened if str(world.warehouse) in path and "bucket" in path]
    assert read
    assert {volume.opened[path] for path in read} == {1}
    world.assert_same()


def test_what_is_whole_is_not_copied_again(tmp_path: Path, sources: list[Path]) -> None:
    files = tuple(dumped(path) for path in sources)
    volume, resolve = counting()
    root = resolve(f"{tmp_path}/target")
    copy_below(Copier(resolve), files[:2], root)
    (tmp_path / "target" / DELTA / ".cm-part-bucket_00002").write_bytes(b"torn")
    volume.opened.clear()
    told: list[int] = []
    report = copy_below(Copier(resolve, told.append), files, root)
    assert (report.kept, report.source_files) == (2, 2)
    assert [volume.opened[str(path)] for path in sources] == [0, 0, 1, 1]
    assert sum(told) == report.bytes == 4 * 700_000
    assert sorted(path.name for path in (tmp_path / "target" / DELTA).iterdir()) == [
        path.name for path in sources
    ]


def test_other_bytes_than_the_dump_names_get_no_name(tmp_path: Path, sources: list[Path]) -> None:
    file = dumped(sources[0])
    sources[0].write_bytes(b"?" * 700_000)
    told: list[int] = []
    copier = Copier(FsspecResolver(), told.append)
    with pytest.raises(SourceFileMissingError, match="has other content"):
        copy_below(copier, (file,), FsspecResolver()(f"{tmp_path}/target"))
    assert list((tmp_path / "target" / DELTA).iterdir()) == []
    assert sum(told) == 0


class Forgetful(LocalVolume):
    """A disk that forgets the last byte."""

    def write_new(self, path, chunks, like=None) -> None:
        super().write_new(path, [b"".join(chunks)[:-1]], like)


def test_what_was_written_is_what_was_read(tmp_path: Path, sources: list[Path]) -> None:
    resolve = FsspecResolver(lambda _scheme, _authority: Forgetful())
    source, target = resolve(f"{sources[0]}"), resolve(f"{tmp_path}/copy")
    for checksum in (source.checksum(), None):
        with pytest.raises(ChecksumMismatchError, match="does not have the checksum of its source"):
            copy_verified(source, target, checksum, lambda: "token", ())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_source_that_changes_as_it_is_read(tmp_path: Path, sources: list[Path]) -> None:
    resolve = FsspecResolver()
    source, target = resolve(f"{sources[0]}"), resolve(f"{tmp_path}/copy")

    def write_more(_: int) -> None:
        if sources[0].stat().st_size == 700_000:
            with sources[0].open("ab") as output:
                output.write(b"more")

    with pytest.raises(ChecksumMismatchError, match="it changed while it was read"):
        copy_verified(source, target, None, lambda: "token", (), write_more)
    assert not (tmp_path / "copy").exists()


def test_a_failure_stops_what_is_being_copied(tmp_path: Path, sources: list[Path]) -> None:
    lost = dumped(sources[0])
    sources[0].unlink()
    others = tuple(dumped(path) for path in sources[1:])
    pieces = Counter[str]()

    def pace(_: int) -> None:
        pieces[threading.current_thread().name] += 1
        until(lambda: copier._is_stopped, seconds=30)

    copier = Copier(FsspecResolver(), pace=pace)
    with pytest.raises(SourceFileMissingError):
        copy_below(copier, (lost, *others), FsspecResolver()(f"{tmp_path}/target"))
    assert set(pieces.values()) <= {1}, "each stopped at the piece after the failure"
    assert list((tmp_path / "target" / DELTA).iterdir()) == []


def test_a_bucket_gives_its_rate() -> None:
    bucket = TokenBucket(1000, now_ms=0)
    assert bucket.take(250, 0) == 0
    assert bucket.take(1000, 0) == 1
    assert bucket.take(500, 0) == 1.5
    assert bucket.take(0, 1500) == 0
    assert bucket.take(100, 1600) == 0
    assert bucket.take(100, 500) == 0.1
    assert bucket.take(0, 100_000) == 0
    assert bucket.take(1250, 100_000) == 1


@pytest.mark.parametrize("size", [1, 400, 5_000])
def test_a_throttle_over_time(size: int) -> None:
    clock = SimulatedClock(1_000_000)
    throttle = Throttle(1000, clock)
    for _ in range(20_000 // size):
        throttle(size)
    seconds = (clock.now_ms() - 1_000_000) / 1000
    assert 19.7 <= seconds <= 20.3


def test_a_load_keeps_to_its_bandwidth(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    request = replace(world.load_request, bandwidth=500)
    loader = world.loader()
    plan = loader.plan(request)
    assert plan.files is not None
    began_ms = world.clock.now_ms()
    report = loader.run(plan)
    assert report.copied.bytes == plan.files.size_bytes
    assert world.clock.now_ms() - began_ms >= 1000 * (report.copied.bytes / 500 - 1)
    world.assert_same()


@pytest.mark.parametrize(
    ("reading", "directory", "has_own", "is_asked"),
    [
        (Reading.ALL, DELTA, False, True),
        (Reading.NONE, "", True, False),
        (Reading.WHERE_NAMES_ARE_USED_AGAIN, DELTA, False, False),
        (Reading.WHERE_NAMES_ARE_USED_AGAIN, DELTA, True, True),
        (Reading.WHERE_NAMES_ARE_USED_AGAIN, "", False, True),
        (Reading.WHERE_NAMES_ARE_USED_AGAIN, "a=1", False, True),
        (Reading.WHERE_NAMES_ARE_USED_AGAIN, "base_0000003/x", False, False),
    ],
)
def test_which_files_are_read_before_anything_is_changed(
    reading: Reading, directory: str, has_own: bool, is_asked: bool
) -> None:
    file = DumpedFile(
        uri="/t/f", checksum=None, cmroot=None, sub_directory=directory, source_directory=directory
    )
    assert reading.is_asked(file, has_native_checksum=has_own) is is_asked


def test_damage_stops_a_load_at_the_file_or_before_it_begins(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump()
    for path in world.warehouse.rglob("bucket_*"):
        path.write_bytes(b"?")
    loader = world.loader()
    first = replace(world.load_request, preflight=Reading.ALL)
    with pytest.raises(ReplError, match="Nothing was changed on the target"):
        loader.plan(first)
    plan = loader.plan(world.load_request)
    with pytest.raises(ReplError, match="has other content"):
        loader.run(plan)
    assert "repl.last.id" not in world.target.get_database("dst").parameters
