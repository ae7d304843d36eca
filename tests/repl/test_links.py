"""Symbolic links that an administrator made in a warehouse on local disks.

A look that leaves them out takes rows for none: the replica would lack them without a word (I11).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import AcidFormatError, ReplError
from tests.repl.test_edges import external_table


@pytest.fixture
def world(world):
    world.insert("t", (2, "b"))
    return world


def moved_away(world, place: Path) -> Path:
    """Move a file or directory to another disk, and leave a link."""
    there = world.folder / "other disk"
    there.mkdir(exist_ok=True)
    target = there / place.name
    shutil.move(place, target)
    place.symlink_to(target)
    return target


def test_a_table_whose_directory_is_a_link_is_dumped(world):
    moved_away(world, world.path("t"))
    world.replicate()
    world.assert_same()
    world.insert("t", (3, "c"))
    world.replicate()
    world.assert_same()


def test_a_partition_whose_directory_is_a_link_is_dumped(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.insert("part", (1, "x"), partition="p=1")
    moved_away(world, world.path("part", "p=1"))
    world.replicate()
    world.assert_same()


@pytest.mark.parametrize("below", ["", "bucket_00000_0"])
def test_a_link_below_a_table_is_refused_by_name(world, below):
    root = world.path("t")
    delta = next(one for one in sorted(root.iterdir()) if one.name.startswith("delta_0000001"))
    place = delta / below
    moved_away(world, place)
    with pytest.raises(ReplError, match="is a symbolic link") as caught:
        world.dump()
    assert str(place) in str(caught.value)
    with pytest.raises(AcidFormatError, match="is a symbolic link"):
        world.rows("t")


def test_a_link_whose_target_is_not_mounted_is_no_empty_table(world):
    target = moved_away(world, world.path("t"))
    shutil.move(target, target.with_name("not mounted"))
    with pytest.raises(ReplError, match="is a symbolic link"):
        world.dump()
    with pytest.raises(AcidFormatError, match="leads nowhere"):
        world.rows("t")


def test_a_write_behind_a_link_is_not_taken_for_empty(world):
    """Of a write that nobody reported, the directories are asked."""
    world.replicate()
    with world.transaction() as txn:
        txn.is_reporting = False
        txn.insert("t", [(3, "c")])
    root = world.path("t")
    moved_away(world, next(one for one in root.iterdir() if one.name.startswith("delta_0000003")))
    world.replicate()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 3]


def test_external_data_behind_a_link_is_copied_or_refused(world):
    place = world.folder / "external"
    place.mkdir()
    (place / "data").write_bytes(b"rows")
    external_table(world, "e", place)
    moved_away(world, place)
    base = world.folder / "replica of external"
    options = {"external_base": f"file:{base}"}
    world.dump(**options)
    loader = world.loader()
    request = replace(world.load_request, external_base=f"file:{base}")
    loader.run(loader.plan(request))
    assert [one.read_bytes() for one in base.rglob("data")] == [b"rows"]
    moved_away(world, place / "data")
    world.insert("t", (3, "c"))
    world.dump(**options)
    with pytest.raises(ReplError, match="is a symbolic link"):
        loader.run(loader.plan(request))
