"""Recycle: what a file's way into the cmroot promises."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.archive import ORIGINAL_LOCATION, REMAIN_IN_TRASH
from changemanager.checksum import composite_checksum
from changemanager.errors import (
    ArchiveBusyError,
    ArchiveCollisionError,
    ArchiveUnwritableError,
    ChangeManagerError,
    DirectoryChangedError,
    PathNotContainedError,
)
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import FsspecResolver, ListedFile, list_tree
from changemanager.manifest import EntryState
from changemanager.recycle import RecycleKind, RecycleReport, plan_recycle
from changemanager.uri import archive_name
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import FarVolume, LinklessVolume
from tests.support.simulated_clock import DAY_MS, START_MS


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path)


def name_of(base: str, content: bytes) -> str:
    return archive_name(base, composite_checksum(io.BytesIO(content)))


def recycle(
    world: ArchiveWorld,
    path: Path,
    kind: RecycleKind = RecycleKind.MOVE,
    *,
    is_purge: bool = True,
    table: str = "t",
) -> RecycleReport:
    return world.archive.recycle(
        str(path),
        kind,
        is_purge=is_purge,
        root=str(world.warehouse),
        context=context(table, location=str(world.warehouse / table)),
    )


def attribute(world: ArchiveWorld, name: str, which: str) -> bytes | None:
    place = world.archive.cmroot.child(name)
    if not place.volume.keeps_attributes(world.archive.cmroot.path):
        pytest.skip("this mount has no extended attributes")
    return place.volume.attribute(place.path, which)


def test_a_plan_keeps_underscores_and_skips_dots() -> None:
    def entry(path: str, kind: FileKind = FileKind.FILE) -> ListedFile:
        return ListedFile(path=path, kind=kind, size_bytes=5, mtime_ms=1)

    plan = plan_recycle(
        "file:/wh/t/d",
        [
            entry("_orc_acid_version"), entry("_metadata_acid"), entry("bucket_00000"),
            entry(".bucket_00000.crc"), entry(".staging", FileKind.DIRECTORY),
            entry(".staging/x"), entry("sub", FileKind.DIRECTORY), entry("sub/y"),
        ],
        kind=RecycleKind.MOVE, is_purge=False,
    )  # fmt: skip
    assert [file.path for file in plan.files] == [
        "_orc_acid_version", "_metadata_acid", "bucket_00000", "sub/y",
    ]  # fmt: skip
    assert plan.is_remaining_in_trash
    assert plan.size_bytes == 20
    with pytest.raises(PathNotContainedError, match="symbolic link"):
        plan_recycle("x", [entry("l", FileKind.LINK)], kind=RecycleKind.MOVE, is_purge=True)


def test_a_move_takes_the_whole_directory(world: ArchiveWorld) -> None:
    world.write("t/delta_1_1/bucket_00000", b"rows")
    world.write("t/delta_1_1/_orc_acid_version", b"2")
    world.write("t/delta_1_1/.bucket_00000.crc", b"crc")
    world.write("t/delta_1_1/union/bucket_00001", b"more")
    world.clock.advance_ms(1234)
    report = recycle(world, world.warehouse / "t" / "delta_1_1")
    assert report.archived_count == 3
    assert world.archived() == {
        name_of("bucket_00000", b"rows"): b"rows",
        name_of("bucket_00001", b"more"): b"more",
        name_of("_orc_acid_version", b"2"): b"2",
    }
    left = [path.name for path in (world.warehouse / "t").rglob("*") if path.is_file()]
    assert left == [".bucket_00000.crc"]
    entry = world.store.entries(world.archive.cmroot.uri)[name_of("bucket_00001", b"more")]
    assert entry.state is EntryState.ARCHIVED
    assert entry.archived_at_ms == START_MS + 1234
    assert entry.origins[0].uri == f"file:{world.warehouse}/t/delta_1_1/union/bucket_00001"
    assert entry.origins[0].directory == "delta_1_1/union"
    assert entry.origins[0].context.table == "t"
    status = world.archive.cmroot.child(entry.name).status()
    assert status is not None
    assert status.mtime_ms == START_MS + 1234
    assert world.cmroot.stat().st_mode & 0o777 == 0o770


def test_a_move_is_no_copy(world: ArchiveWorld) -> None:
    inode = world.write("t/d/f", b"rows").stat().st_ino
    (kept,) = recycle(world, world.warehouse / "t" / "d" / "f").kept
    assert kept.placement is Placement.LINKED
    assert (world.cmroot / name_of("f", b"rows")).stat().st_ino == inode
    assert not (world.warehouse / "t" / "d" / "f").exists()


@pytest.mark.parametrize("is_far", [False, True])
def test_a_copy_leaves_the_live_table_as_it_is(tmp_path: Path, is_far: bool) -> None:
    world = ArchiveWorld(tmp_path, is_cmroot_elsewhere=is_far)
    path = world.write("t/f", b"rows")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    before = path.stat()
    report = recycle(world, path, RecycleKind.COPY, is_purge=True)
    assert report.archived_count == 1
    assert path.stat().st_mtime == before.st_mtime
    name = name_of("f", b"rows")
    assert world.archived() == {name: b"rows"}
    assert (world.cmroot / name).stat().st_ino != before.st_ino
    assert world.archive.cmroot.child(name).status().mtime_ms == START_MS  # type: ignore[union-attr]
    assert attribute(world, name, REMAIN_IN_TRASH) is None


@pytest.mark.parametrize("kind", list(RecycleKind))
def test_across_file_systems_files_are_copied(tmp_path: Path, kind: RecycleKind) -> None:
    world = ArchiveWorld(tmp_path, is_cmroot_elsewhere=True)
    path = world.write("t/d/f", b"rows" * 1000)
    (kept,) = recycle(world, path, kind).kept
    assert kept.placement is Placement.COPIED
    assert world.archived() == {name_of("f", b"rows" * 1000): b"rows" * 1000}
    assert path.exists() is (kind is RecycleKind.COPY)


def test_another_device_behind_one_scheme_is_copied_to(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, volume_class=FarVolume)
    path = world.write("t/d/f", b"rows")
    (kept,) = recycle(world, path).kept
    assert kept.placement is Placement.COPIED
    assert world.archived() == {name_of("f", b"rows"): b"rows"}
    assert not path.exists()


def test_a_file_system_without_links_renames(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, volume_class=LinklessVolume)
    path = world.write("t/d/f", b"rows")
    (kept,) = recycle(world, path).kept
    assert kept.placement is Placement.MOVED
    assert world.archived() == {name_of("f", b"rows"): b"rows"}


def test_between_an_object_store_and_local_files(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path)
    world.config = replace(world.config, is_elsewhere_allowed=True)
    world.start()
    store = FsspecResolver()("memory://archive-test")
    store.volume.write_new(store.child("wh/t/d/f").path, [b"rows"])
    report = world.archive.recycle(
        "memory://archive-test/wh/t/d",
        RecycleKind.MOVE,
        is_purge=True,
        root="memory://archive-test/wh",
        context=context(),
    )
    assert report.archived_count == 1
    assert world.archived() == {name_of("f", b"rows"): b"rows"}
    assert store.child("wh/t/d/f").status() is None


def test_inside_an_object_store(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path)
    world.config = type(world.config)(cmroot="memory://in-store/cm", retain_ms=DAY_MS)
    world.start()
    store = FsspecResolver()("memory://in-store")
    for kind in RecycleKind:
        store.volume.write_new(store.child(f"wh/t/{kind.value}/f").path, [kind.value.encode()])
        (kept,) = world.archive.recycle(
            f"memory://in-store/wh/t/{kind.value}",
            kind,
            is_purge=True,
            root="memory://in-store/wh",
            context=context(),
        ).kept
        assert kept.placement is Placement.COPIED
        assert (store.child(f"wh/t/{kind.value}/f").status() is None) is (kind is RecycleKind.MOVE)
        copy = world.archive.cmroot.child(name_of("f", kind.value.encode()))
        assert b"".join(copy.chunks()) == kind.value.encode()


def test_the_same_content_twice_is_one_file_with_its_retention_begun_again(
    world: ArchiveWorld,
) -> None:
    first = world.write("t/delta_1_1/bucket_00000", b"rows")
    second = world.write("u/delta_2_2/bucket_00000", b"rows")
    recycle(world, first)
    world.clock.advance_ms(5 * DAY_MS)
    report = recycle(world, second, table="u")
    assert report.archived_count == 0
    assert second.exists(), "Hive leaves it, too: who calls deletes it"
    name = name_of("bucket_00000", b"rows")
    assert list(world.archived()) == [name]
    entry = world.store.entries(world.archive.cmroot.uri)[name]
    assert [origin.context.table for origin in entry.origins] == ["t", "u"]
    assert entry.archived_at_ms == START_MS + 5 * DAY_MS
    assert world.archive.cmroot.child(name).status().mtime_ms == START_MS + 5 * DAY_MS  # type: ignore[union-attr]
    assert attribute(world, name, ORIGINAL_LOCATION) == f"file:{first}".encode()


def test_what_was_dropped_without_purge_is_tagged_for_the_trash(world: ArchiveWorld) -> None:
    name = name_of("f", b"rows")
    recycle(world, world.write("t/a/f", b"rows"), is_purge=True)
    assert attribute(world, name, REMAIN_IN_TRASH) is None
    recycle(world, world.write("t/b/f", b"rows"), is_purge=False)
    assert attribute(world, name, REMAIN_IN_TRASH) == b"\0"
    recycle(world, world.write("t/c/f", b"rows"), is_purge=True)
    assert world.store.entries(world.archive.cmroot.uri)[name].is_remaining_in_trash


def test_an_empty_file_and_odd_names(world: ArchiveWorld) -> None:
    paths = [
        world.write("t/p=a%2Fb c/delta_1_1/000000_0", b""),
        world.write("t/p=ä]x/delta_1_1/wéird name", b"1"),
        world.write("t/p=a#b/delta_1_1/f", b"2"),
    ]
    for path in paths:
        assert recycle(world, path.parent).archived_count == 1
    assert set(world.archived().values()) == {b"", b"1", b"2"}


def test_an_unwritable_cmroot_keeps_every_source(world: ArchiveWorld) -> None:
    world.cmroot.write_bytes(b"a file in the way")
    path = world.write("t/d/f", b"rows")
    with pytest.raises(ArchiveUnwritableError, match="hive.repl.cmrootdir") as caught:
        recycle(world, path.parent)
    assert caught.value.cmroot == world.archive.cmroot.uri
    assert "another" not in str(caught.value)  # it would not have what dumps wait for
    assert "cleaner run --now); hive.repl.cmrootdir stays" in str(caught.value)
    assert path.read_bytes() == b"rows"
    assert world.store.entries(world.archive.cmroot.uri) == {}


class FullVolume(FarVolume):
    """A disk that takes nothing more."""

    def write_new(self, path: str, chunks: object, like: object = None) -> None:
        Path(path).write_bytes(b"hal")
        raise OSError(28, "No space left on device")


def test_a_full_disk_keeps_the_source_and_leaves_no_part(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, volume_class=FullVolume)
    path = world.write("t/d/f", b"rows")
    with pytest.raises(ArchiveUnwritableError, match="No space left.*cm purge") as refused:
        recycle(world, path)
    assert "another one" not in str(refused.value)
    assert path.read_bytes() == b"rows"
    assert world.archived() == {}
    assert world.store.entries(world.archive.cmroot.uri) == {}


class LyingVolume(FarVolume):
    """A disk that forgets bytes."""

    def write_new(self, path: str, chunks: Iterable[bytes], like: object = None) -> None:
        Path(path).write_bytes(b"other than " + b"".join(chunks))


def test_a_copy_that_is_not_what_was_copied_is_no_archive(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, volume_class=LyingVolume)
    path = world.write("t/d/f", b"rows")
    with pytest.raises(ChangeManagerError, match="does not have the checksum of its source"):
        recycle(world, path)
    assert path.read_bytes() == b"rows"
    assert world.archived() == {}


def test_a_name_taken_by_other_content_keeps_the_source(world: ArchiveWorld) -> None:
    path = world.write("t/d/f", b"rows")
    world.cmroot.mkdir()
    (world.cmroot / name_of("f", b"rows")).write_bytes(b"torn")
    with pytest.raises(ArchiveCollisionError, match="has other content") as caught:
        recycle(world, path)
    assert caught.value.source == f"file:{path}"
    assert path.read_bytes() == b"rows"
    assert (world.cmroot / name_of("f", b"rows")).read_bytes() == b"torn"


def test_long_names_are_cut_and_collide_only_with_other_content(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path, name_length_max=100)
    base = "y" * 120
    first = world.write(f"t/a/{base}", b"one")
    recycle(world, first)
    (name,) = world.archived()
    assert (len(name), name) == (99, base[:99])
    same = world.write(f"t/b/{base}", b"one")
    assert recycle(world, same).archived_count == 0
    other = world.write(f"t/c/{base}", b"two")
    with pytest.raises(ArchiveCollisionError):
        recycle(world, other)
    assert other.read_bytes() == b"two"
    assert world.archived() == {name: b"one"}


def test_what_fails_half_way_has_recorded_what_it_did(world: ArchiveWorld) -> None:
    for number in range(4):
        world.write(f"t/d/f{number}", f"rows{number}".encode())
    world.cmroot.mkdir()
    (world.cmroot / name_of("f2", b"rows2")).write_bytes(b"torn")
    with pytest.raises(ArchiveCollisionError):
        recycle(world, world.warehouse / "t" / "d")
    entries = world.store.entries(world.archive.cmroot.uri)
    assert {name.partition("_")[0] for name in entries} == {"f0", "f1"}
    assert all(entry.state is EntryState.ARCHIVED for entry in entries.values())
    assert {path.name for path in (world.warehouse / "t" / "d").iterdir()} >= {"f2", "f3"}


def test_what_is_being_purged_cannot_be_counted_on(world: ArchiveWorld) -> None:
    recycle(world, world.write("t/a/f", b"rows"))
    name = name_of("f", b"rows")
    seen = world.store.entries(world.archive.cmroot.uri)[name].archived_at_ms
    assert world.store.claim_purge(
        world.archive.cmroot.uri, name,
        seen_archived_at_ms=seen, overridden_holders=(), owner="one", now_ms=START_MS,
    )  # fmt: skip
    path = world.write("t/b/f", b"rows")
    with pytest.raises(ArchiveBusyError):
        recycle(world, path)
    assert path.exists()


def test_a_file_that_grows_after_it_was_read_is_not_archived(world: ArchiveWorld) -> None:
    path = world.write("t/d/f", b"rows")
    place = world.resolve(str(path.parent))
    files = world.archive.fingerprint(place, list_tree(place))
    path.write_bytes(b"rows and more")
    with pytest.raises(DirectoryChangedError, match="not 4 as planned"):
        world.archive.keep(
            place,
            files,
            kind=RecycleKind.MOVE,
            is_remaining_in_trash=False,
            context=context(),
        )
    assert path.read_bytes() == b"rows and more"
    assert world.archived() == {}


def test_a_path_that_is_gone(world: ArchiveWorld) -> None:
    with pytest.raises(DirectoryChangedError, match="is not there any more"):
        recycle(world, world.warehouse / "t" / "gone")


def test_an_empty_directory_archives_nothing(world: ArchiveWorld) -> None:
    (world.warehouse / "t" / "delta_1_1").mkdir(parents=True)
    assert recycle(world, world.warehouse / "t" / "delta_1_1").archived_count == 0
    assert not world.cmroot.exists()


def test_every_crash_in_a_recycle_leaves_each_file_somewhere(tmp_path: Path) -> None:
    contents = {"a": b"one", "b": b"two", "c": b"two"}
    for volume_class in (LinklessVolume, FarVolume):
        crash_at = 0
        while True:
            crash_at += 1
            folder = tmp_path / f"{volume_class.__name__}{crash_at}"
            folder.mkdir()
            world = ArchiveWorld(folder, volume_class=volume_class)
            for name, content in contents.items():
                world.write(f"t/d/{name}", content)
            world.start(crash_at)
            try:
                recycle(world, world.warehouse / "t" / "d", is_purge=False)
                break
            except BaseException as crash:
                if type(crash).__name__ != "CrashError":
                    raise
            world.start()
            recycle(world, world.warehouse / "t" / "d", is_purge=False)
            whole = {
                name: data for name, data in world.archived().items() if not name.startswith(".")
            }
            assert whole == {name_of(name, data): data for name, data in contents.items()}
        assert crash_at > 10


def test_an_archive_on_another_file_system_takes_nothing_unless_it_is_told_to(
    tmp_path: Path,
) -> None:
    world = ArchiveWorld(tmp_path, is_cmroot_elsewhere=True)
    world.config = replace(world.config, is_elsewhere_allowed=False)
    world.start()
    source = world.write("t/f", b"kept")
    with pytest.raises(
        ArchiveUnwritableError,
        match=r"hive\.repl\.cmrootdir\) is on another file system than .*nothing was deleted.*"
        r"hms\.bridge\.cm\.other\.file\.system",
    ):
        recycle(world, source, RecycleKind.MOVE)
    assert source.read_bytes() == b"kept"
    assert not world.cmroot.exists()
