"""A partition that comes while a rename moves its table's directory is where it was said to be."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import MetaError
from hms_bridge.service.directories import Directories
from tests.conformance.objects import DS, partition
from tests.support.files_world import FilesWorld

LONG_SECONDS = 30


def test_one_that_looked_before_the_move_began_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory is made at the old place; with its row it would be said to be at the new one,
    and what its client wrote would be lost."""
    world = FilesWorld(tmp_path)
    world.create_database()
    place = world.table(partition_columns=DS, parameters={})
    world.metastore.add_partitions("db", "t", [partition("db", "t", "old")])
    renamed = replace(world.metastore.get_table("db", "t"), name="t2")
    rename = threading.Thread(
        target=lambda: world.metastore.alter_table("db", "t", renamed), daemon=True
    )
    moved, added = threading.Event(), threading.Event()
    move, make_all = Directories.move, Directories.make_all

    def move_and_wait(directories: Directories, *arguments: Any) -> None:
        move(directories, *arguments)
        moved.set()
        added.wait(LONG_SECONDS)

    def make_after_a_move(directories: Directories, uris: Sequence[str], begun: list[str]) -> None:
        rename.start()
        assert moved.wait(LONG_SECONDS)
        make_all(directories, uris, begun)

    monkeypatch.setattr(Directories, "move", move_and_wait)
    monkeypatch.setattr(Directories, "make_all", make_after_a_move)
    with pytest.raises(MetaError, match="db/t is still being moved"):
        world.metastore.add_partitions("db", "t", [partition("db", "t", "new")])
    assert not (place / "ds=new").exists()
    added.set()
    rename.join(LONG_SECONDS)
    assert world.metastore.get_partition_names("db", "t2") == ("ds=old",)
