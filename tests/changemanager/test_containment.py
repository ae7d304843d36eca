"""Paths that must never be recycled or deleted."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from changemanager.config import ChangeManagerConfig
from changemanager.containment import RealPaths, ResolverWithin, require_contained
from changemanager.errors import LocationError, OutsideRootsError, PathNotContainedError
from changemanager.location import FsspecResolver
from changemanager.recycle import RecycleKind
from tests.support.archive_world import ArchiveWorld, context

RESOLVE = FsspecResolver()


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    world = ArchiveWorld(tmp_path, has_trash=True)
    world.write("t/delta_1_1/f", b"rows")
    return world


def refuse(world: ArchiveWorld, path: str, root: str | None = None) -> None:
    for act in (
        lambda: world.archive.recycle(
            path, RecycleKind.MOVE, is_purge=True,
            root=root or str(world.warehouse), context=context(),
        ),
        lambda: world.protocol.remove(
            path, root=root or str(world.warehouse), context=context(), is_archived=False
        ),
    ):  # fmt: skip
        with pytest.raises((PathNotContainedError, LocationError)):
            act()
    assert (world.warehouse / "t" / "delta_1_1" / "f").read_bytes() == b"rows"


def test_roots_and_what_is_outside(world: ArchiveWorld, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "f").write_bytes(b"x")
    for path in (
        "/",
        str(world.warehouse),
        f"{world.warehouse}/",
        str(tmp_path),
        str(outside),
        f"{world.warehouse}/../elsewhere",
        f"{world.warehouse}/t/../../elsewhere/f",
        f"{world.warehouse}2/t",
        "memory://x/y",
        "relative/path",
    ):
        refuse(world, path)
    assert (outside / "f").exists()


def test_a_whole_file_system_is_no_root(world: ArchiveWorld) -> None:
    refuse(world, str(world.warehouse / "t"), root="/")


def test_the_archive_is_no_victim(world: ArchiveWorld, tmp_path: Path) -> None:
    world.cmroot.mkdir()
    (world.cmroot / "f").write_bytes(b"x")
    world.trash.mkdir()
    for path in (world.cmroot, world.cmroot / "f", world.trash, world.trash / "x"):
        refuse(world, str(path), root=str(tmp_path))
    holder = tmp_path.parent
    refuse(world, str(tmp_path), root=str(holder))


def test_links_are_not_followed_out_of_the_warehouse(world: ArchiveWorld, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "f").write_bytes(b"x")
    (world.warehouse / "link").symlink_to(outside)
    refuse(world, str(world.warehouse / "link"))
    refuse(world, str(world.warehouse / "link" / "f"))
    (world.warehouse / "t" / "delta_1_1" / "inner").symlink_to(outside / "f")
    refuse(world, str(world.warehouse / "t" / "delta_1_1"))
    assert (outside / "f").read_bytes() == b"x"


def test_a_warehouse_behind_a_link_is_one(tmp_path: Path) -> None:
    (tmp_path / "real" / "t" / "d").mkdir(parents=True)
    (tmp_path / "wh").symlink_to(tmp_path / "real")
    require_contained(RESOLVE(str(tmp_path / "wh" / "t")), RESOLVE(str(tmp_path / "wh")))
    cmroot = RESOLVE(str(tmp_path / "real" / "t" / "d"))
    with pytest.raises(PathNotContainedError, match="keeps archived files"):
        require_contained(
            RESOLVE(str(tmp_path / "wh" / "t")), RESOLVE(str(tmp_path / "wh")), [cmroot]
        )


def test_the_trash_lies_outside_the_cmroot(tmp_path: Path) -> None:
    world = ArchiveWorld(tmp_path)
    world.config = ChangeManagerConfig(
        cmroot=str(world.cmroot), retain_ms=1, trash=str(world.cmroot / ".trash")
    )
    with pytest.raises(PathNotContainedError, match="must not hold one another"):
        world.start()


def test_real_paths_are_those_of_the_system(tmp_path: Path) -> None:
    """Whatever is there, and on the way to it: links, links to links, and what is not there."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to("..")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "second").symlink_to("link")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "round").symlink_to("round")
    known = RealPaths()
    names = ("a", "a/b", "link", "link/b", "second", "second/b/up", "second/b/up/x", "nowhere")
    for name in (*names, "nowhere/x", "round", "round/x", "missing", "missing/x"):
        path = str(tmp_path / name)
        assert known.of_any(RESOLVE(path)) == os.path.realpath(path), name
    assert known.of_any(RESOLVE("/")) == "/"


def test_places_within_roots_are_resolved_and_no_others(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("theirs")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "other")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "other" / "file")
    (tmp_path / "way").symlink_to(tmp_path / "root")
    within = ResolverWithin(RESOLVE, (f"file:{tmp_path}/way",))
    for place in ("root/file", "way/file"):
        assert b"".join(within(f"{tmp_path}/{place}").chunks()) == b"mine"
    for place in ("other/file", "root/out/file", "root/link", "rooted", "root/out"):
        with pytest.raises(OutsideRootsError, match="is outside of"):
            within(f"{tmp_path}/{place}")
    with pytest.raises(OutsideRootsError, match="every place"):
        ResolverWithin(RESOLVE, ())(f"{tmp_path}/root/file")
    again = pickle.loads(pickle.dumps(within))
    assert again.roots == within.roots
    assert again(f"{tmp_path}/root/file").status() is not None


@pytest.mark.parametrize("level", ["table", "table/file"])
def test_a_link_that_comes_after_the_look_is_not_followed(tmp_path, level):
    (tmp_path / "root" / "table").mkdir(parents=True)
    (tmp_path / "root" / "table" / "file").write_text("mine")
    within = ResolverWithin(RESOLVE, (f"file:{tmp_path}/root",))
    place = within(f"{tmp_path}/root/table/file")
    (tmp_path / "root" / level).rename(tmp_path / "theirs")
    (tmp_path / "root" / level).symlink_to(tmp_path / "theirs")
    for read in (
        lambda: list(place.chunks()),
        place.checksum,
        lambda: place.checksum_like("0" * 8),
    ):
        with pytest.raises(OSError, match="root/table/file"):
            read()


def test_what_is_no_plain_file_any_more_is_not_waited_for(tmp_path):
    (tmp_path / "file").write_text("mine")
    place = ResolverWithin(RESOLVE, (f"file:{tmp_path}",))(f"{tmp_path}/file")
    (tmp_path / "file").unlink()
    os.mkfifo(tmp_path / "file")
    with pytest.raises(OSError, match="no plain file"):
        list(place.chunks())
