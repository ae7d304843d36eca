"""The disk of the archive is full: what went is said, what did not stays, and more room helps."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cleaner.test_cleaner_cli import call
from tests.support.cleaning_world import CleaningWorld

PAGE = 4096
SIZE = "mount", "-t", "tmpfs", "-o", f"size={3 * PAGE},mode=777", "x"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CleaningWorld]:
    """Its archive has room for three small files."""
    world = CleaningWorld(tmp_path)
    cmroot = world.folder / "cmroot"
    cmroot.mkdir()
    if os.getuid() != 0 or subprocess.run([*SIZE, str(cmroot)], check=False).returncode != 0:
        pytest.skip("a file system can only be mounted by root, and not in every container")
    try:
        yield world
    finally:
        subprocess.run(["umount", "--lazy", str(cmroot)], check=True)


def test_what_went_is_counted_and_more_room_is_enough(world: CleaningWorld) -> None:
    for _ in range(4):
        world.write()
    world.compact()
    before = world.directories()
    result = call(world, "run")
    (row,) = json.loads(result.stdout)
    gone = set(before) - set(world.directories())
    assert row["state"] == "postponed"
    assert 0 < row["directories"] == len(gone) < 4
    assert row["deleted"] == 2 * len(gone)
    assert "No space left on device" in row["message"]
    assert "Make room on that storage" in row["message"]
    assert "another one" not in row["message"]
    cmroot = world.folder / "cmroot"
    subprocess.run(["mount", "-o", "remount,size=1m", str(cmroot)], check=True)
    (row,) = json.loads(call(world, "run", "--now").stdout)
    assert row["state"] == "cleaned"
    assert len(world.directories()) == 1
    contents = world.archived_contents()
    assert {f"rows of t/{name}" for name in before if name.startswith("delta")} <= contents
