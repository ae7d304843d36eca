"""What verbs once left behind that failed at some call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, HMSB_LEASE
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database
from tests.conformance import objects
from tests.support.failures import FailingVolume, StorageFailures
from tests.support.faults import faulty
from tests.support.world import World


class FailingWorld(World):
    """On a disk that fails on demand."""

    def __init__(self, folder: Path) -> None:
        self.storage = StorageFailures()
        super().__init__(folder, resolve=faulty(FsspecResolver(), self.storage, kind=FailingVolume))


@pytest.fixture
def world(fast_folder: Path) -> FailingWorld:
    return FailingWorld(fast_folder)


def test_a_move_that_failed_may_be_tried_at_once(world: FailingWorld) -> None:
    """Whoever puts the directory back ends the lease of who has begun."""
    world.create_table("t")
    world.insert("t", (1, "a"))
    rename = lambda: world.metastore.alter_table(  # noqa: E731
        "db", "t", replace(world.describe("t"), name="t2")
    )
    with (
        world.storage.failing(at="rename " + str(world.path("t")), way="lasting"),
        pytest.raises(MetaError, match="cannot be moved"),
    ):
        rename()
    assert len(world.records(HMSB_FILE_TASK)) == 1
    rename()
    assert [row["id"] for row in world.rows("t2")] == [1]
    assert (world.records(HMSB_FILE_TASK), world.records(HMSB_LEASE)) == ([], [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_directories_of_partitions_go_again_if_one_cannot_be_made(
    world: FailingWorld, when: str
) -> None:
    world.create_table("p", is_partitioned=True)
    place = world.path("p")
    call = "make_working_directory" if when == "before" else "sync_directory"
    where = place / "p=b" if when == "before" else place
    added = [objects.partition("db", "p", value) for value in ("a", "b")]
    with (
        world.storage.failing(at=f"{when} {call} {where}"),
        pytest.raises(MetaError, match="unable to create"),
    ):
        world.metastore.add_partitions("db", "p", added)
    assert list(place.iterdir()) == []
    world.metastore.add_partitions("db", "p", added)


def test_a_directory_that_cannot_be_synced_goes_again(world: FailingWorld) -> None:
    with (
        world.storage.failing(at=f"sync_directory {world.warehouse / 'db.db'}"),
        pytest.raises(MetaError, match="unable to create"),
    ):
        world.create_table("t")
    assert world.metastore.get_tables("db") == ()
    assert not (world.warehouse / "db.db" / "t").exists()


def test_what_stays_of_a_dropped_database_is_logged(
    world: FailingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.metastore.create_database(Database(name="other"))
    place = world.warehouse / "other.db"
    with world.storage.failing(at=f"remove_empty_directory {place}"):
        world.metastore.drop_database("other")
    assert place.is_dir()
    assert f"file:{place} stays" in caplog.text
