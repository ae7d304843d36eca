"""What Hive names in the write notification of a dynamic partition: every file whose path begins
with the partition's, so also those of p=10 with p=1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.event import WriteNotification
from tests.support.world import World

DELTA = "delta_0000001_0000001_0000"


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    made = World(fast_folder, parameters={"repl.source.for": "everything"})
    yield made
    made.close()


@pytest.fixture
def told(world: World) -> WriteNotification:
    """Of p=1: its own file between those of p=10 and p=1x."""
    place = world.create_table(is_partitioned=True)
    values = ("10", "1", "1x")
    for value in values:
        world.add_partition("t", value)
    txn_id, write_id = world.txns.write()
    return WriteNotification(
        txn_id=txn_id,
        write_id=write_id,
        database_name=world.database,
        table_name="t",
        partition_values=("1",),
        files=tuple(f"{place}/p={value}/{DELTA}/bucket_00000" for value in values),
        checksums=tuple(f"c{value}" for value in values),
        subdirectories=tuple(f"{DELTA}_{value}" for value in values),
    )


def test_of_a_neighbour_whose_name_begins_alike_nothing_is_recorded(
    world: World, told: WriteNotification
) -> None:
    world.metastore.add_write_notifications([told])
    (event,) = world.metastore.get_write_events(told.txn_id)
    assert event.partition == "p=1"
    (file,) = event.files
    assert file.startswith(f"{told.files[1]}#c1#")
    assert file.endswith(f"#{DELTA}_1")


def test_a_file_of_no_such_neighbour_is_refused(world: World, told: WriteNotification) -> None:
    other = told.files[0].replace("p=10", "p=2")
    with pytest.raises(InvalidObjectError, match="is not below"):
        world.metastore.add_write_notifications(
            [replace(told, files=(other,), checksums=(), subdirectories=())]
        )
    assert world.metastore.get_write_events(told.txn_id) == ()


def test_lists_of_different_lengths_are_refused_all_the_same(
    world: World, told: WriteNotification
) -> None:
    with pytest.raises(InvalidObjectError, match="3 files, 1 checksums"):
        world.metastore.add_write_notifications([replace(told, checksums=("c",))])
