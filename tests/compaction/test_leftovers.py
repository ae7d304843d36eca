"""What dead workers left stands in nobody's way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from changemanager.filesystem.local import LocalVolume
from tests.support.world import World, world_to_compact


def test_what_cannot_be_removed_fails_no_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tasks of a dead worker may still write there, or it is another user's: then it would stay,
    and the table would never be compacted."""
    world = world_to_compact(World(tmp_path))
    before = world.rows()
    left = world.path() / "_tmp_compaction_v0000001"
    left.mkdir()
    remove = LocalVolume.remove_tree

    def busy(volume: LocalVolume, path: str) -> None:
        if path == str(left):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        remove(volume, path)

    monkeypatch.setattr(LocalVolume, "remove_tree", busy)
    world.compact()
    assert left.is_dir()
    assert "cannot remove what dead writers left" in caplog.text
    assert world.rows() == before
