"""Directories of many partitions are made together, and all survive a loss of power."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.errors import BackendError, DatabaseGoneError, MetaError
from hms_bridge.service.directories import Directories
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import DS, new_database, new_table, partition
from tests.support.databases import sqlite_file
from tests.support.files_world import FilesWorld
from tests.support.power_loss import Loss, PowerLossDisk
from tests.support.simulated_clock import SimulatedClock


def made(directories: Directories, uris: list[str]) -> list[str]:
    begun: list[str] = []
    directories.make_all(uris, begun)
    return begun


@pytest.mark.parametrize("loss", Loss)
def test_they_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: Loss) -> None:
    disk = PowerLossDisk(tmp_path / "disk", monkeypatch)
    there = disk.root / "t" / "ds=0"
    there.mkdir(parents=True)
    disk.settle()
    places = [disk.root / "t" / f"ds={day}" / f"hr={hour}" for day in range(3) for hour in range(3)]
    uris = [f"file:{place}" for place in (*places, there)]
    directories = Directories(FsspecResolver())
    assert made(directories, uris) == uris[:-1]
    disk.come_back(loss)
    assert all(place.is_dir() for place in places)
    assert made(directories, uris) == []


def test_what_holds_many_is_brought_to_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PowerLossDisk(tmp_path / "disk", monkeypatch)
    made(Directories(FsspecResolver()), [f"file:{disk.root}/t/ds={n}" for n in range(100)])
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


def test_a_database_that_is_gone_is_not_waited_for_again_to_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked has waited once, and hears of that; whoever asks again takes what was made."""
    clock = SimulatedClock()
    url = sqlite_file(tmp_path)
    metastore = open_local_metastore(url, warehouse=f"{tmp_path}/warehouse", clock=clock)
    database = new_database(metastore)
    make_all = metastore._files._directories.make_all

    def make_and_lose(uris: list[str], begun: list[str]) -> None:
        make_all(uris, begun)
        gone.setattr(metastore._transactions.database, "transaction", lose)

    def lose(**_: object) -> None:
        raise DatabaseGoneError("connection lost")

    with monkeypatch.context() as gone:
        gone.setattr(metastore._files._directories, "make_all", make_and_lose)
        with pytest.raises(BackendError, match=r"connection lost \(it was gone for 30 s\)"):
            new_table(metastore, database)
    assert sum(clock.slept_seconds) < 31
    table = new_table(metastore, database)
    assert Path(str(table.storage.location).removeprefix("file:")).is_dir()
    metastore.close()
