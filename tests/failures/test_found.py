"""What verbs once left behind that failed at some call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, HMSB_LEASE
from hms_bridge.errors import MetaError
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
