"""Write ids of a replica are its source's, or the load says so (I1, I11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
)
from hms_bridge.repl.whole_lists import current_txns, whole_lists
from tests.support.repl_world import OpenWrite, ReplWorld

_OTHERS = r"write id {} of dst\.t is not that of the source's transaction"


@pytest.fixture
def world(fast_folder):
    world = ReplWorld(fast_folder)
    world.create_table("t")
    world.insert("t", (1, "a"), (2, "b"))
    yield world
    world.close()


def foreign_write(world):
    """A transaction of the replica's own that takes a write id there, as an admin let it."""
    database = world.target.get_database("dst")
    parameters = {**database.parameters, "hms.bridge.replica.open": "true"}
    world.target.alter_database("dst", replace(database, parameters=parameters))
    (txn_id,) = world.target.open_txns(OpenTxnsRequest(user="u", host="h"))
    (given,) = world.target.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="dst", table_name="t", txn_ids=(txn_id,))
    )
    return txn_id, given.write_id


def end(world, txn_id, how):
    if how == "committed":
        world.target.commit_txn(CommitTxnRequest(txn_id=txn_id))
    if how == "aborted":
        world.target.abort_txn(AbortTxnRequest(txn_id=txn_id))


def refused_load(world, write_id):
    before = world.last_event()
    with pytest.raises(ReplError, match=_OTHERS.format(write_id)) as caught:
        world.load()
    assert "'repl dump src --bootstrap', 'repl load src --into dst'" in str(caught.value)
    return before


@pytest.mark.parametrize("how", ["aborted", "committed", "left open"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_write_id_that_somebody_took_on_the_replica_stops_the_load(world, how, is_first):
    """The source's commit under the same number would be invisible, or doubled by theirs."""
    world.replicate()
    if not is_first:
        world.insert("t", (3, "c"))
        world.replicate()
    txn_id, write_id = foreign_write(world)
    end(world, txn_id, how)
    world.insert("t", (4, "d"))
    world.dump()
    refused_load(world, write_id)
    assert 4 not in [row["id"] for row in world.rows("dst", "t")]
    refused_load(world, write_id)


def test_a_committed_write_of_the_replica_is_found_where_the_source_aborts(world):
    """The source's next write has a number of its own, so nothing else would show it."""
    world.replicate()
    world.insert("t", (3, "c"))
    world.replicate()
    txn_id, write_id = foreign_write(world)
    end(world, txn_id, "committed")
    lost = OpenWrite(world)
    lost.insert("t", [(9, "never")])
    lost.abort()
    world.insert("t", (4, "d"))
    world.dump()
    refused_load(world, write_id)


def test_write_ids_of_the_bootstrap_and_of_an_earlier_try_are_the_sources(world):
    """Writes while it is dumped are in the bootstrap and in the next dump, aborted ones too."""
    writer = OpenWrite(world)
    writer.insert("t", [(5, "between")])
    lost = OpenWrite(world)
    lost.insert("t", [(6, "never")])

    def on_sleep():
        if writer.id in world.open_txn_ids():
            writer.commit()
            lost.abort()

    world.clock.on_sleep = on_sleep
    world.replicate()
    world.assert_same()
    again = OpenWrite(world)
    again.insert("t", [(7, "aborted later")])
    world.replicate()
    again.abort()
    world.insert("t", (8, "h"))
    world.replicate()
    world.assert_same()


def test_a_begin_anew_ends_it(world):
    world.replicate()
    txn_id, _ = foreign_write(world)
    end(world, txn_id, "aborted")
    world.insert("t", (4, "d"))
    world.dump()
    with pytest.raises(ReplError):
        world.load()
    from hms_bridge.repl.discard import DiscardRequest, ReplDiscard
    from tests.support.repl_world import LEASE

    discard = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    discard.run(
        discard.plan(
            DiscardRequest(root=str(world.repl_root), database_name="src", dump=None, lease=LEASE)
        )
    )
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.insert("t", (5, "e"))
    world.replicate()
    world.assert_same()


class TestCutLists:
    """A reader's list ends at the lowest id that it must not see if it knows no committed one."""

    @pytest.fixture
    def forgotten(self, world):
        """Two aborted write ids, whose committed predecessor housekeeping has forgotten."""
        for row in (7, 8):
            lost = OpenWrite(world)
            lost.insert("t", [(row, "never")])
            lost.abort()
        world.clock.time_ms += 100_000
        world.source.run_housekeeping()
        (cut,) = world.source.get_valid_write_ids(["src.t"])
        assert (cut.high_watermark, cut.aborted_ids) == (2, (2,))
        return world

    def test_a_bootstrap_takes_the_whole_list(self, forgotten):
        world = forgotten
        (whole,) = whole_lists(world.source, ["src.t"], current_txns(world.source))
        assert (whole.high_watermark, whole.aborted_ids, whole.open_ids) == (3, (2, 3), ())
        world.replicate()
        world.assert_same()
        world.insert("t", (9, "after"))
        world.replicate()
        world.assert_same()

    def test_a_bootstrap_waits_for_a_writer_beyond_the_cut(self, forgotten):
        world = forgotten
        writer = OpenWrite(world)
        writer.insert("t", [(10, "late")])
        world.clock.on_sleep = writer.commit
        world.replicate()
        world.assert_same()
        assert 10 in [row["id"] for row in world.rows("dst", "t")]

    def test_all_of_many_are_told(self, forgotten):
        world = forgotten
        for row in range(20, 33):
            lost = OpenWrite(world)
            lost.insert("t", [(row, "never")])
            if row % 3:
                lost.abort()
        (whole,) = whole_lists(world.source, ["src.t"], current_txns(world.source))
        assert whole.high_watermark == 16
        assert whole.open_ids == (5, 8, 11, 14)
        assert {*whole.open_ids, *whole.aborted_ids} == set(range(2, 17))

    def test_a_committed_id_above_a_remembered_one_is_of_the_list(self, world):
        """Hive forgets by transaction: an older one that wrote later is gone from its list."""
        older = OpenWrite(world)
        lost = OpenWrite(world)
        lost.insert("t", [(7, "never")])
        older.insert("t", [(8, "kept")])
        older.commit()
        lost.abort()

        class Forgetful:
            def __init__(self, store):
                self._store = store

            def __getattr__(self, name):
                return getattr(self._store, name)

            def get_valid_write_ids(self, names, txns=None, write_id=None):
                (one,) = self._store.get_valid_write_ids(names, txns, write_id)
                return (replace(one, high_watermark=min(one.high_watermark, 2)),)

        (whole,) = whole_lists(Forgetful(world.source), ["src.t"], current_txns(world.source))
        assert (whole.high_watermark, whole.aborted_ids) == (3, (2,))
