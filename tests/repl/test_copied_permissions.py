"""Copies never widen: what dump, archive, compaction and load make is no wider than its source."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.purge import Purge
from changemanager.recycle import RecycleKind
from tests.support.archive_world import ArchiveWorld
from tests.support.faults import FaultyVolume, LinklessVolume
from tests.support.repl_world import ReplWorld

STRANGER = 54_321
"""An id of a user and a group that nobody has here."""

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Others may enter it, and all above, which pytest does not let them."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="hmsb-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def buckets_of(folder: Path) -> list[Path]:
    return [path for path in files_of(folder) if path.name.startswith("bucket")]


def may_read(path: Path) -> bool:
    """Whether somebody may who owns nothing here, and is of no group."""
    read = ["head", "-c", "1", str(path)]
    done = subprocess.run(
        read, user=STRANGER, group=STRANGER, extra_groups=[], capture_output=True, check=False
    )
    return done.returncode == 0


def private(world: ReplWorld, mode: int) -> list[Path]:
    """The files of the table `t`, with that mode."""
    files = buckets_of(world.path("t"))
    for path in files:
        path.chmod(mode)
    return files


@pytest.mark.parametrize("mode", [0o640, 0o444])
def test_a_load_is_never_wider_than_its_source(folder: Path, umask: int, mode: int) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    private(world, mode)
    world.replicate()
    world.assert_same()
    buckets = buckets_of(world.replica.path("t"))
    # With umask 077 the directory itself lets nobody else in.
    assert [mode_of(path) for path in buckets] == [mode & ~umask | mode & 0o700]
    assert mode_of(buckets[0].parent) & (umask | ~mode_of(buckets[0].parents[1])) == 0


def test_a_load_is_never_wider_than_the_directory_it_goes_to(folder: Path, umask: int) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.replicate()
    world.replica.path("t").chmod(0o750)
    world.insert("t", (1, "a"))
    private(world, 0o644)
    world.replicate()
    for path in world.replica.path("t").rglob("*"):
        assert mode_of(path) & 0o027 == 0, path
    assert [mode_of(path) for path in buckets_of(world.replica.path("t"))] == [
        0o640 & ~umask | 0o600
    ]


@as_root
def test_owner_and_group_come_along(folder: Path) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    for path in private(world, 0o640):
        os.chown(path, STRANGER, STRANGER)
    world.replicate()
    stat = buckets_of(world.replica.path("t"))[0].stat()
    assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o777) == (STRANGER, STRANGER, 0o640)


@as_root
def test_who_may_not_give_files_away_narrows_and_says_so_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    for path in private(world, 0o644)[:1]:
        path.chmod(0o664)
    for path in files_of(world.path("t")):
        os.chown(path, STRANGER, STRANGER)
    for place in (folder, *folder.rglob("*")):
        if not place.is_relative_to(world.path("t")):
            os.chown(place, STRANGER + 1, STRANGER + 1)
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(STRANGER + 1)
    os.seteuid(STRANGER + 1)
    try:
        world.replicate()
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
    buckets = buckets_of(world.replica.path("t"))
    assert [mode_of(path) for path in buckets] == [0o644, 0o644]
    said = [record for record in caplog.records if "cannot give files" in record.message]
    assert len(said) == 1
    assert "0664" in said[0].message


@pytest.mark.parametrize("kind", RecycleKind)
def test_the_archive_is_never_wider_than_its_source(
    folder: Path, umask: int, kind: RecycleKind
) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    (file,) = private(world, 0o600)
    world.archive.recycle(
        str(file.parent),
        kind,
        is_purge=False,
        root=str(file.parent.parent),
        context=ArchiveContext(cause=ArchiveCause.OBSOLETE),
    )
    archived = buckets_of(world.cmroot)
    assert [mode_of(path) for path in archived] == [0o600]
    assert mode_of(world.cmroot) == 0o770


def test_a_copy_in_the_archive_is_closed_to_whom_the_archive_is(folder: Path) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    (file,) = private(world, 0o644)
    world.archive.recycle(
        str(file.parent),
        RecycleKind.COPY,
        is_purge=False,
        root=str(file.parent.parent),
        context=ArchiveContext(cause=ArchiveCause.OBSOLETE),
    )
    archived = buckets_of(world.cmroot)
    assert [mode_of(path) for path in archived] == [0o640]


def test_an_archive_that_is_open_to_all_is_said(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = ReplWorld(folder)
    world.cmroot.mkdir(exist_ok=True)
    world.cmroot.chmod(0o755)
    archive = world.archive
    archive.prepare()
    archive.prepare()
    said = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert [f"chmod 770 {world.cmroot}" in line for line in said] == [True]
    assert mode_of(world.cmroot) == 0o755


def test_what_is_compacted_may_be_read_by_who_may_read_all_of_it(folder: Path, umask: int) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    first, _ = private(world, 0o640)
    first.chmod(0o644)
    world.compact("t")
    (base,) = [path for path in buckets_of(world.path("t")) if "base_" in path.parent.name]
    assert mode_of(base) == 0o640 & ~umask | 0o600


def test_a_dump_is_closed_to_all_others(folder: Path, umask: int) -> None:
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    world.repl_root.mkdir(mode=0o755, exist_ok=True)
    world.repl_root.chmod(0o755)
    world.dump()
    world.insert("t", (2, "b"))
    world.dump()
    made = sorted(world.repl_root.rglob("*"))
    assert made
    for path in made:
        assert mode_of(path) & 0o007 == 0, path
        assert mode_of(path) & umask == 0, path


@pytest.fixture
def two_tables(folder: Path) -> Iterator[ReplWorld]:
    """Files that all may read: `t` in a directory that is closed, `everybodys` in one that is not.
    The archive is open to all."""
    before = os.umask(0o022)
    world = ReplWorld(folder)
    for table in ("t", "everybodys"):
        world.create_table(table)
        world.insert(table, (1, f"of {table}"))
    world.path("t").chmod(0o700)
    world.cmroot.mkdir(exist_ok=True)
    world.cmroot.chmod(0o755)
    yield world
    os.umask(before)


def assert_closed(world: ReplWorld) -> None:
    """What was closed at the source is so at the replica; what was open is open."""
    world.assert_same()
    for table, is_open in (("t", False), ("everybodys", True)):
        buckets = buckets_of(world.replica.path(table))
        assert buckets
        for path in buckets:
            assert mode_of(path) == (0o644 if is_open else 0o600), path
            assert may_read(path) == is_open, path


@as_root
@pytest.mark.parametrize("closed", ["table", "delta"])
def test_a_load_opens_no_file_whose_directory_is_closed(two_tables: ReplWorld, closed: str) -> None:
    (bucket,) = buckets_of(two_tables.path("t"))
    if closed == "delta":
        two_tables.path("t").chmod(0o755)
        bucket.parent.chmod(0o700)
    assert mode_of(bucket) == 0o644
    assert not may_read(bucket)
    two_tables.replicate()
    assert_closed(two_tables)
    assert mode_of(bucket) == 0o644, "the source stays as it is"


@as_root
@pytest.mark.parametrize("is_archived_by_hive", [False, True])
def test_the_archive_opens_no_file_whose_directory_was_closed(
    two_tables: ReplWorld, is_archived_by_hive: bool
) -> None:
    two_tables.dump()
    for table in ("t", "everybodys"):
        two_tables.insert(table, (2, f"more of {table}"))
        two_tables.compact(table)
    two_tables.clean()
    archived = {path: may_read(path) for path in buckets_of(two_tables.cmroot)}
    assert sorted(archived.values()) == [False, False, True, True]
    if is_archived_by_hive:
        for path in archived:
            path.chmod(0o644)
    assert two_tables.load().copied.archive_files
    buckets = buckets_of(two_tables.replica.path("t"))
    assert [may_read(path) for path in buckets] == [False]
    everybodys = buckets_of(two_tables.replica.path("everybodys"))
    assert [may_read(path) for path in everybodys] == [True]


def test_a_load_from_the_archive_keeps_a_group_that_is_not_the_archives(folder: Path) -> None:
    """Its directory says who may use the archive, not who could read the source."""
    world = ReplWorld(folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    private(world, 0o640)
    world.dump()
    world.insert("t", (2, "b"))
    world.compact("t")
    world.clean()
    if os.getuid() == 0:
        os.chown(world.cmroot, -1, STRANGER)
    assert world.load().copied.archive_files
    (bucket,) = buckets_of(world.replica.path("t"))
    assert mode_of(bucket) == 0o640


class KeepingVolume(FaultyVolume):
    """It keeps what a copy has of its source."""

    def write_new(self, path: str, chunks: Iterable[bytes], like: Any = None) -> None:
        self.inner.write_new(path, chunks, like)


class ForeignVolume(KeepingVolume):
    """The files are of somebody else, who lets this process move them."""

    def set_mode(self, path: str, mode: int) -> None:
        raise PermissionError(path)


@pytest.mark.parametrize("volume_class", [KeepingVolume, LinklessVolume, ForeignVolume])
def test_what_is_moved_into_archive_and_trash_leaves_no_directory_with_more_than_it_had_there(
    folder: Path, volume_class: type[FaultyVolume]
) -> None:
    world = ArchiveWorld(folder, has_trash=True, volume_class=volume_class)
    file = world.write("t/d/f", b"rows")
    file.chmod(0o644)
    file.parent.chmod(0o750)
    world.archive.recycle(
        str(file),
        RecycleKind.MOVE,
        is_purge=False,
        root=str(world.warehouse),
        context=ArchiveContext(cause=ArchiveCause.DROP_TABLE),
    )
    (archived,) = world.cmroot.iterdir()
    assert mode_of(archived) == 0o640
    world.cmroot.chmod(0o700)
    world.clock.advance_ms(world.config.retain_ms + 1)
    purge = Purge(world.archive, world.manifest, world.clock)
    assert purge.run(purge.plan()).trashed == (archived.name,)
    (trashed,) = files_of(world.trash)
    assert mode_of(trashed) == 0o600
