"""A CREATE TABLE AS SELECT that failed leaves its write id to a name without a table. Where a
bootstrap follows, the replica goes on with the source's ids all the same (I11)."""

from __future__ import annotations

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import WRITE_IDS_ABOVE, Database
from hms_bridge.model.ids import WriteId
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import assert_equal


@pytest.fixture(params=(1, 3))
def world(request: pytest.FixtureRequest, empty_world: ReplWorld) -> ReplWorld:
    """So many have failed before the bootstrap."""
    for _ in range(request.param):
        txn = empty_world.begin()
        txn.write_id("n")
        empty_world.abort(txn.id)
    empty_world.create_table("t")
    empty_world.replicate()
    return empty_world


@pytest.mark.parametrize("is_replayed_before", (False, True))
def test_a_plain_table_of_the_name(world: ReplWorld, is_replayed_before: bool) -> None:
    world.create_table("n")
    if is_replayed_before:
        world.replicate()
        world.assert_same()
    world.insert("n", (1, "a"))
    world.replicate()
    world.assert_same()
    assert_equal(world, rows=1)


def test_the_statement_again(world: ReplWorld) -> None:
    with world.transaction() as txn:
        assert txn.write_id("n") > 1
        world.create_table("n")
        txn.insert("n", [(1, "a")])
    world.insert("n", (2, "b"))
    world.replicate()
    world.assert_same()
    assert_equal(world, rows=2)


def test_an_empty_table_that_a_bootstrap_brought_misses_a_write(world: ReplWorld) -> None:
    """A write that no event told of: the gap is no name's without a table."""
    world.source.seed_write_id("src", "t", WriteId(1))
    world.insert("t", (1, "a"))
    world.dump()
    with pytest.raises(ReplError, match="begins with write id 2 .* which stands at 0"):
        world.load()


def test_a_table_that_comes_whole_has_the_sources_ids(world: ReplWorld) -> None:
    """Though its name had some here."""
    txn = world.begin()
    txn.write_id("n")
    world.abort(txn.id)
    world.replicate()
    world.create_table("n")
    world.insert("n", (1, "a"))
    world.dump(tables_anew=("n",))
    world.load()
    world.assert_same()
    world.insert("n", (2, "b"))
    world.replicate()
    world.assert_same()
    assert_equal(world, rows=2)


def kill_load(world: ReplWorld, after: str) -> None:
    """It dies after its first call of that name, and is taken for dead."""
    world.kill_load(f"after {after}")
    world.clock.advance_ms(100_000)


@pytest.mark.parametrize("after", ("create_table", "drop_table", "repl_table_write_id_state"))
@pytest.mark.parametrize("is_bootstrap", (False, True))
def test_a_load_that_is_killed_while_it_makes_such_a_table(
    empty_world: ReplWorld, is_bootstrap: bool, after: str
) -> None:
    """I1, I6: the next one does not take the ids that the name had for the source's."""
    world = empty_world
    if is_bootstrap:
        world.target.create_database(Database(name="dst"))
        failed = world.replica.begin()
        failed.write_id("n")
        failed.abort()
    else:
        world.create_table("t")
        world.replicate()
        failed = world.begin()
        failed.write_id("n")
        failed.abort()
        world.replicate()
    world.create_table("n")
    for number in range(3):
        world.insert("n", (number, "a"))
    world.dump(tables_anew=() if is_bootstrap else ("n",))
    kill_load(world, after)
    world.load()
    world.assert_same()
    assert_equal(world, rows=3)


def test_a_parameter_of_a_client_says_nothing_of_write_ids(world: ReplWorld) -> None:
    world.create_table("m", **{WRITE_IDS_ABOVE: "5"})
    assert WRITE_IDS_ABOVE not in world.describe("m").parameters
    world.insert("m", (1, "a"))
    world.replicate()
    world.assert_same()
