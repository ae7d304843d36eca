"""The files of all tables are copied in one pool; a table is published once its own are there."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from changemanager.transfer import PART_PREFIX
from hms_bridge.repl.file_pool import WORKERS
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load import partitions
from hms_bridge.repl.load.copy import Copier, CopyGroup
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.repl.test_edges import external_table, load_external
from tests.support.copying import copy_below
from tests.support.passing import Interrupted, Passing
from tests.support.repl_world import ReplWorld

SECONDS = 20


def file_of(path: Path, directory: str = "") -> DumpedFile:
    return DumpedFile(
        uri=f"file:{path}",
        checksum=FsspecResolver()(f"file:{path}").checksum(),
        cmroot=None,
        sub_directory=directory,
        source_directory=directory,
    )


class WaitingVolume(LocalVolume):
    """Some writes wait; what is synced is counted."""

    def __init__(self, before_write: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._before_write = before_write
        self.synced: Counter[str] = Counter()
        self.inside = 0
        self.most = 0
        self._lock = threading.Lock()

    def write_new(self, path: str, chunks: Any, like: Any = None) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            self._before_write(path)
            super().write_new(path, chunks, like)
        finally:
            with self._lock:
                self.inside -= 1

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.synced[path] += 1


def resolver_over(volume: LocalVolume) -> FsspecResolver:
    return FsspecResolver(lambda _scheme, _authority: volume)


def is_whole(world: ReplWorld, table: str) -> bool:
    has_ids = world.target.get_max_allocated_write_id("dst", table) > 0
    is_marked = "hive.repl.ckpt.key" in world.target.get_table("dst", table).parameters
    assert has_ids is is_marked
    return is_marked


def test_a_slow_file_of_one_table_holds_up_no_other(empty_world: ReplWorld) -> None:
    world = empty_world
    for name in ("first", "second", "third"):
        world.create_table(name)
        world.insert(name, (1, name))
        world.insert(name, (2, name))
    world.dump()
    third_is_whole = threading.Event()
    held: list[str] = []

    def wait(path: str) -> None:
        if f"/first/delta_0000001_0000001_0000/{PART_PREFIX}" in path:
            held.append(path)
            assert third_is_whole.wait(SECONDS), "the last table waits for the first one's file"

    volume = WaitingVolume(wait)
    loader = ReplLoad(WatchedMetastore(world, third_is_whole), resolver_over(volume))
    loader.run(loader.plan(world.load_request))
    assert held
    world.assert_same()


class WatchedMetastore(Passing):
    """Looks, as the third table is marked whole, that the first one is not."""

    def __init__(self, world: ReplWorld, third_is_whole: threading.Event) -> None:
        super().__init__(world.target)
        self._world = world
        self._third_is_whole = third_is_whole

    def alter_table(self, database: str, name: str, *args: Any, **options: Any) -> None:
        self.inner.alter_table(database, name, *args, **options)
        if name == "third":
            assert is_whole(self._world, "third")
            assert not is_whole(self._world, "first"), "a file of it is not there"
            self._third_is_whole.set()


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(1500):
        (folder / f"f{number:04d}").write_bytes(b"x")
    return sorted(folder.iterdir())


def test_groups_are_taken_as_they_are_needed(tmp_path: Path, many: list[Path]) -> None:
    resolve = FsspecResolver()
    taken, published, most = 0, 0, 0
    all_files = tuple(map(file_of, many))

    def publish() -> None:
        nonlocal published
        published += 1

    def groups() -> Iterator[CopyGroup]:
        nonlocal taken, most
        for number in range(0, len(many), 3):
            taken += 1
            most = max(most, taken - published)
            files = all_files[number : number + 3]
            yield CopyGroup(places=((files, resolve(f"{tmp_path}/t{number}")),), publish=publish)

    may_go_on = threading.Event()

    def pace(_: int) -> None:
        assert may_go_on.wait(SECONDS)

    threading.Timer(1, may_go_on.set).start()
    report = Copier(resolve, pace=pace).copy(groups())
    assert (report.source_files, published, taken) == (1500, 500, 500)
    assert most <= 4 * WORKERS + 1, "what is in memory does not grow with the number of files"
    assert len(list((tmp_path / "t0").iterdir())) == 3


def test_a_group_without_files_is_published(tmp_path: Path) -> None:
    published: list[str] = []
    group = CopyGroup(places=(), publish=lambda: published.append("it"))
    Copier(FsspecResolver()).copy([group])
    assert published == ["it"]


def test_names_are_on_the_disk_when_a_group_is_published(tmp_path: Path, many: list[Path]) -> None:
    volume = WaitingVolume()
    resolve = resolver_over(volume)
    target = tmp_path / "t" / "delta_1_1"
    files = tuple(file_of(path, "delta_1_1") for path in many[:7])
    found: list[tuple[int, int]] = []

    def publish() -> None:
        found.append((volume.synced[str(target)], len(list(target.iterdir()))))

    Copier(resolve).copy([CopyGroup(places=((files, resolve(f"{tmp_path}/t")),), publish=publish)])
    assert found == [(1, 7)]


def test_one_that_lost_its_lease_gives_no_name_to_another_ones_half(tmp_path: Path) -> None:
    """Two loads copy one file: the first stalls before its file gets its name, the second goes on
    in its place, is stopped half-way, and the first wakes."""
    content = b"a" * 3_000_000
    source = tmp_path / "source"
    source.write_bytes(content)
    resolve = FsspecResolver()
    target = tmp_path / "t" / source.name
    second_began, first_is_done = threading.Event(), threading.Event()

    class Stalling(LocalVolume):
        def place(self, source: str, target: str) -> Any:
            if not second_began.is_set():
                second.start()
            assert second_began.wait(SECONDS)
            return super().place(source, target)

    def stall(_: int) -> None:
        second_began.set()
        assert first_is_done.wait(SECONDS)

    files = (file_of(source),)

    def copy_again() -> None:
        copy_below(Copier(resolve, pace=stall), files, resolve(f"{tmp_path}/t"))

    second = threading.Thread(target=copy_again)
    stalling = resolver_over(Stalling())
    try:
        copy_below(Copier(stalling), files, stalling(f"{tmp_path}/t"))
    finally:
        assert not target.exists() or target.read_bytes() == content
        first_is_done.set()
        second.join(SECONDS)
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == [source.name]


def test_a_table_is_whole_with_its_last_partitions(
    empty_world: ReplWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = empty_world
    world.create_table("parted", is_partitioned=True)
    for value in range(5):
        world.add_partition("parted", str(value))
        world.insert("parted", (value, "x"), partition=f"p={value}")
    world.dump()
    monkeypatch.setattr(partitions, "_AT_ONCE", 2)
    marked: list[int] = []

    def watch() -> None:
        marked.append(len(world.target.get_partitions("dst", "parted")))

    loader = world.loader(Interrupted(world.target, watch, times=9, before="alter_table"))
    loader.run(loader.plan(world.load_request))
    assert marked == [5]
    world.assert_same()


def test_what_one_transaction_wrote_is_copied_together(empty_world: ReplWorld) -> None:
    world = empty_world
    world.create_table("t")
    world.create_table("parted", is_partitioned=True)
    for value in range(5):
        world.add_partition("parted", str(value))
    world.replicate()
    with world.transaction() as txn:
        txn.lock("t")
        txn.insert("t", [(1, "x")])
        for value in range(5):
            txn.insert("parted", [(value, "x")], f"p={value}")
    world.dump()
    together = threading.Barrier(6)

    def wait(path: str) -> None:
        if f"{world.folder}/target" in path and PART_PREFIX in path:
            together.wait(SECONDS)

    loader = ReplLoad(world.target, resolver_over(WaitingVolume(wait)), clock=world.clock)
    loader.run(loader.plan(world.load_request))
    world.assert_same()


def test_directories_that_external_tables_share_are_copied_once(
    world: ReplWorld, tmp_path: Path
) -> None:
    """A second look would take half copied files of the first for what the source has not."""
    place = tmp_path / "data"
    below = place / "sub"
    below.mkdir(parents=True)
    for number in range(100):
        (below / f"f{number}").write_bytes(b"x" * 100_000)
    external_table(world, "upper", place)
    for number in range(6):
        external_table(world, f"same{number}", below)
    world.dump(external_base=str(world.folder / "ext"))
    world.more_roots = (str(tmp_path),)
    copied = load_external(world).copied
    assert copied.bytes < 11_000_000
    target = world.folder / "ext" / str(below).lstrip("/")
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        path.name: path.read_bytes() for path in below.iterdir()
    }
