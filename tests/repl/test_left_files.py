"""What a replica drops stays where nothing may be deleted (hms.bridge.deletion.roots). It is no row
of what gets the name next (I1, I11)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.model.catalog import Database
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import assert_equal


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    """The replica's database lies outside of its warehouse."""
    place = empty_world.folder / "elsewhere"
    place.mkdir()
    empty_world.target.create_database(Database(name="dst", location=f"file:{place}"))
    return empty_world


def go_on(world: ReplWorld, error: type[Exception], match: str, left: Path) -> None:
    """The load stops until somebody has moved away what is left."""
    for _ in range(2):
        with pytest.raises(error, match=match):
            world.load()
    shutil.rmtree(left)
    world.load()


@pytest.mark.parametrize("is_whole", (False, True))
def test_a_table_that_is_made_again_has_no_rows_of_the_one_before(
    world: ReplWorld, is_whole: bool
) -> None:
    """Its third write has other directories than the third of the one before, an update."""
    world.create_table("t")
    world.insert("t", (1, "a"))
    for text in "bc":
        world.update("t", (1, text))
    world.replicate()
    left = world.replica.path("t")
    world.source.drop_table("src", "t")
    world.create_table("t")
    world.begin().insert("t", [(10, "x")])
    world.abort(world.open_txn_ids()[0])
    for number in range(2):
        world.insert("t", (number, "d"))
    world.dump(tables_anew=("t",) if is_whole else ())
    go_on(world, MetaError, "t cannot be made at .*: .* lies there, which no load", left)
    world.assert_same()
    assert_equal(world, rows=2)


def test_a_plain_table_that_is_made_again_has_no_files_of_the_one_before(world: ReplWorld) -> None:
    world.create_table("t", transactional="false")
    (world.path() / "one").write_text("1")
    world.replicate()
    left = world.replica.path("t")
    world.source.drop_table("src", "t")
    world.create_table("t", transactional="false")
    world.dump()
    go_on(world, MetaError, "one lies there", left)
    assert world.replica.names("t") == set()


def test_a_partition_of_a_plain_table_is_not_dropped_with_its_files_left(world: ReplWorld) -> None:
    world.create_table("t", is_partitioned=True, transactional="false")
    world.add_partition("t", "1")
    (world.path("t", "p=1") / "one").write_text("1")
    world.replicate()
    world.source.drop_partitions("src", "t", ["p=1"])
    world.add_partition("t", "1")
    world.dump()
    go_on(world, InvalidOperationError, "its rows would come back", world.replica.path("t", "p=1"))
    assert world.replica.names("t", "p=1") == set()
