"""A CREATE TABLE AS SELECT that failed leaves its write id to a name without a table. Where a
bootstrap follows, the replica goes on with the source's ids all the same (I11)."""

from __future__ import annotations

import pytest

from hms_bridge.errors import ReplError
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
