"""Directories of many partitions are made together, and all survive a loss of power."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.errors import MetaError
from hms_bridge.service.directories import Directories
from tests.conformance.objects import DS, partition
from tests.support.files_world import FilesWorld
from tests.support.power_loss import Loss, PowerLossDisk


@pytest.mark.parametrize("loss", Loss)
def test_they_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: Loss) -> None:
    disk = PowerLossDisk(tmp_path / "disk", monkeypatch)
    there = disk.root / "t" / "ds=0"
    there.mkdir(parents=True)
    disk.settle()
    places = [disk.root / "t" / f"ds={day}" / f"hr={hour}" for day in range(3) for hour in range(3)]
    uris = [f"file:{place}" for place in (*places, there)]
    directories = Directories(FsspecResolver())
    assert directories.make_all(uris) == uris[:-1]
    disk.come_back(loss)
    assert all(place.is_dir() for place in places)
    assert directories.make_all(uris) == []


def test_what_holds_many_is_brought_to_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PowerLossDisk(tmp_path / "disk", monkeypatch)
    Directories(FsspecResolver()).make_all([f"file:{disk.root}/t/ds={n}" for n in range(100)])
    syncs = [label for label in disk.labels if label.startswith("fsync")]
    assert len(syncs) == 2, "the table's directory, and its own name above it"


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    world = FilesWorld(tmp_path)
    world.create_database()
    place = world.table(partition_columns=DS)
    (place / "ds=b").write_text("a file")
    with pytest.raises(MetaError, match="ds=a and others is not a directory or unable to create"):
        world.metastore.add_partitions(
            "db", "t", [partition("db", "t", "a"), partition("db", "t", "b")]
        )
    assert world.metastore.get_partition_names("db", "t") == ()
