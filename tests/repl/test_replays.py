"""A transaction that ended at the source without an event does not stay open on the replica."""

from __future__ import annotations

import sqlite3

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import OpenTxn, OpenTxns, TxnState
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.format.replays import Replays, still_open
from tests.support.open_write import OpenWrite
from tests.support.passing import Passing
from tests.support.repl_world import LEASE, ReplWorld


@pytest.fixture
def world(world):
    world.replicate()
    return world


def time_out_unlogged(world: ReplWorld, txn: OpenWrite) -> None:
    """As a Hive's housekeeping may do it: the transaction is aborted, and no event tells."""
    txn.abort()
    with sqlite3.connect(world.folder / "source.db3") as database:
        highest = database.execute("SELECT MAX(EVENT_ID) FROM NOTIFICATION_LOG").fetchone()[0]
        database.execute("DELETE FROM NOTIFICATION_LOG WHERE EVENT_ID = ?", (highest,))
        database.execute("UPDATE NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = ?", (highest,))
    database.close()


def open_replays(world: ReplWorld) -> int:
    return sum(one.state is TxnState.OPEN for one in world.target.get_open_txns().txns)


@pytest.mark.parametrize("when", ["in the range", "after a dump", "after a discarded dump"])
def test_a_time_out_that_nobody_logged_ends_the_replay(world, when):
    txn = world.begin()
    txn.insert("t", [(2, "never")])
    if when == "after a dump":
        world.replicate()
        assert open_replays(world) == 1
    if when == "after a discarded dump":
        world.replicate()
        world.insert("t", (5, "e"))
        world.dump()
        discard = ReplDiscard(world.source, world.resolve, world.clock, world.token)
        wanted = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
        discard.run(discard.plan(wanted))
    time_out_unlogged(world, txn)
    world.insert("t", (3, "c"))
    world.replicate()
    assert open_replays(world) == 0
    world.assert_same()
    world.clock.advance_ms(12 * 86_400_000)
    world.target.run_housekeeping()
    world.insert("t", (4, "d"))
    world.replicate()
    world.assert_same()


def test_one_that_is_open_stays_open(world):
    txn = world.begin()
    txn.insert("t", [(2, "later")])
    world.replicate()
    world.insert("t", (3, "c"))
    world.replicate()
    assert open_replays(world) == 1
    txn.commit()
    world.replicate()
    world.assert_same()
    assert open_replays(world) == 0


def test_one_that_commits_while_it_is_dumped_is_not_taken_for_ended(world):
    """Its commit may come after the range: the source is asked before the end is chosen."""
    txn = world.begin()
    txn.insert("t", [(2, "b")])
    world.replicate()
    world.insert("t", (3, "c"))
    source = world.source

    class Late(Passing):
        """The source; the transaction commits as soon as the end of the range is chosen."""

        is_asked = False

        def get_open_txns(self, *args, **options):
            self.is_asked = True
            return source.get_open_txns(*args, **options)

        def get_current_event_id(self):
            found = source.get_current_event_id()
            if self.is_asked and txn.id in {one.id for one in source.get_open_txns().txns}:
                txn.commit()
            return found

    world.dump(Late(source))
    world.load()
    world.replicate()
    world.assert_same()


def test_what_is_told():
    before = OpenTxns(
        high_watermark=TxnId(9),
        txns=(
            OpenTxn(id=TxnId(3), state=TxnState.OPEN),
            OpenTxn(id=TxnId(4), state=TxnState.ABORTED),
        ),
    )
    found = still_open([TxnId(one) for one in (2, 3, 4, 9, 10)], before)
    assert found == Replays(
        opened=frozenset({TxnId(3), TxnId(10)}), ended=frozenset({TxnId(2), TxnId(4), TxnId(9)})
    )
    assert Replays.parse(found.format(), "p") == found
    assert Replays.parse(None, "p") == Replays()
    for text in ("{", "[]", '{"open": 3, "ended": []}'):
        with pytest.raises(ReplError, match="p: no lists"):
            Replays.parse(text, "p")
