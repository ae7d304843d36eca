"""Copies never widen: what dump, archive, compaction and load make is no wider than its source."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.recycle import RecycleKind
from tests.support.repl_world import ReplWorld

STRANGER = 54_321
"""An id of a user and a group that nobody has here."""

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Others may look into it, which pytest does not let them."""
    tmp_path.chmod(0o755)
    return tmp_path


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
    for above in folder.parents[:3]:
        if above != Path("/tmp"):
            above.chmod(0o755)
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
