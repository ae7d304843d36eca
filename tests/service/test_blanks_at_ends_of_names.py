"""A partition is found by its own name only: MySQL compares texts without the blanks at their ends,
so who asked for ``a `` got ``a``, and who dropped it lost the other's rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.errors import AlreadyExistsError, BackendError, NoSuchObjectError
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from tests.conformance.objects import acid_table, partition
from tests.support.world import World


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    keys = (Column(name="k", type="string"),)
    world.metastore.create_table(acid_table("db", "t", partition_columns=keys))
    world.metastore.add_partitions("db", "t", [partition("db", "t", "a")])
    yield world
    world.close()


def test_another_is_not_found(world: World) -> None:
    metastore = world.metastore
    with pytest.raises(NoSuchObjectError):
        metastore.get_partition("db", "t", ["a "])
    assert metastore.get_partitions_by_names("db", "t", ["k=a "]) == ()
    (found,) = metastore.get_partitions_by_names("db", "t", ["k=a ", "k=a"])
    assert found.values == ("a",)
    wanted = Target("db", "t", "k=a ")
    with pytest.raises(NoSuchObjectError):
        metastore.compact(CompactionRequest(target=wanted, type=CompactionType.MAJOR))


def test_another_is_not_dropped(world: World) -> None:
    metastore = world.metastore
    with pytest.raises(NoSuchObjectError, match="missing: k=a "):
        metastore.drop_partitions("db", "t", ["k=a "])
    metastore.drop_partitions("db", "t", ["k=a "], is_if_exists=True)
    assert metastore.get_partition_names("db", "t") == ("k=a",)


def test_it_is_added_beside_the_other_or_refused(world: World) -> None:
    metastore = world.metastore
    try:
        metastore.add_partitions("db", "t", [partition("db", "t", "a ")])
    except AlreadyExistsError:
        with pytest.raises(BackendError):
            metastore.add_partitions("db", "t", [partition("db", "t", "a ")], is_if_not_exists=True)
        assert metastore.get_partition_names("db", "t") == ("k=a",)
    else:
        assert metastore.get_partition_names("db", "t") == ("k=a", "k=a ")
