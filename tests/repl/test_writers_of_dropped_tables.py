"""A writer outlives its table at the source: the replica has the source's write ids (I11), and what
a load replays is not ended by its own DROP."""

from __future__ import annotations

import pytest

from hms_bridge.errors import TxnAbortedError
from hms_bridge.model.txn import TxnState
from hms_bridge.txn import late_writers
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import assert_equal


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    empty_world.replicate()
    return empty_world


def late_writer(world: ReplWorld) -> int:
    txn = world.begin()
    txn.lock("t")
    assert txn.write_id("t") == 2
    return txn.id


@pytest.mark.parametrize("is_replayed_before", (False, True))
def test_the_next_table_has_the_sources_write_ids(
    world: ReplWorld, is_replayed_before: bool
) -> None:
    late = late_writer(world)
    if is_replayed_before:
        world.replicate()
    world.source.drop_table("src", "t")
    world.create_table("t")
    with pytest.raises(TxnAbortedError):
        world.commit(late)
    world.insert("t", (5, "new"))
    world.replicate()
    world.assert_same()
    assert world.replica.rows("t")[0]["row__id"][0] == 3
    assert_equal(world, rows=1)
    assert "repl.incompatible" not in world.target.get_database("dst").parameters
    world.delete("t", 5)
    world.insert("t", (6, "newer"))
    world.replicate()
    world.assert_same()
    assert_equal(world, rows=1)


def anew(world: ReplWorld) -> None:
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()


def test_a_database_that_is_loaded_anew_has_the_sources_ids(world: ReplWorld) -> None:
    """What was aborted on the replica that was dropped concerns nobody there."""
    txn = world.begin()
    txn.lock("t")
    txn.insert("t", [(9, "aborted")])
    txn.abort()
    world.insert("t", (2, "b"))
    anew(world)
    # The dropped ones were aborted here: a bootstrap makes them so.
    anew(world)
    world.assert_same()
    assert_equal(world, rows=2)


def test_a_bootstrap_takes_the_write_ids_of_a_next_table(world: ReplWorld) -> None:
    late_writer(world)
    world.source.drop_table("src", "t")
    world.create_table("t")
    world.insert("t", (5, "new"))
    anew(world)
    world.assert_same()
    assert_equal(world, rows=1)


def test_a_drop_ends_no_replay(world: ReplWorld) -> None:
    """It ends as its source's transaction did; to break it off would be to give up the replica."""
    late_writer(world)
    world.replicate()
    table = world.replica.describe("t")
    assert world.replica.do(late_writers.end_writers, table).aborted == ()
    assert [info.state for info in world.target.get_open_txns_info()] == [TxnState.OPEN]
