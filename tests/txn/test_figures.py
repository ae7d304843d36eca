"""What a monitor is told of transactions, locks and the queue: sums of what is there."""

from __future__ import annotations

from hms_bridge.model.compaction import CompactionState
from hms_bridge.model.figures import (
    CompactionFigures,
    LockFigures,
    OpenFigures,
    TxnFigures,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import TxnType
from tests.support.txns import Txns, component
from tests.support.world import World


def _txns(world: World) -> TxnFigures:
    return world.metastore.txn_figures()


def _queue(world: World) -> CompactionFigures:
    return world.metastore.compaction_figures()


def test_a_metastore_without_work(world: World) -> None:
    nothing = OpenFigures(count=0, oldest_age_ms=0)
    assert _txns(world) == TxnFigures(own=nothing, replayed=nothing, aborted_count=0)
    assert world.metastore.lock_figures() == LockFigures(acquired_count=0, waiting_count=0)
    assert _queue(world).oldest_initiated_age_ms == 0
    assert set(_queue(world).counts.values()) == {0}


def test_own_and_replayed_transactions_are_told_apart(world: World, txns: Txns) -> None:
    txns.open(kind=TxnType.REPL_CREATED, repl_policy="p", repl_source_txn_ids=(TxnId(9),))
    world.clock.advance_ms(5_000)
    first, second, third = txns.open(3)
    txns.open_one(TxnType.READ_ONLY)
    world.clock.advance_ms(2_000)
    txns.open_one(TxnType.COMPACTION)
    txns.abort(second)
    txns.commit(third)
    assert _txns(world) == TxnFigures(
        own=OpenFigures(count=3, oldest_age_ms=2_000),
        replayed=OpenFigures(count=1, oldest_age_ms=7_000),
        aborted_count=1,
    )
    txns.commit(first)
    assert _txns(world).own.count == 2


def test_locks_held_and_waiting(world: World, txns: Txns) -> None:
    one, two, three = txns.open(3)
    exclusive = component(LockType.EXCLUSIVE, DataOperation.NO_TXN)
    for txn_id in (one, two, three):
        txns.lock(txn_id, exclusive)
    assert world.metastore.lock_figures() == LockFigures(acquired_count=1, waiting_count=2)


def test_the_queue_by_state_and_its_oldest(world: World, txns: Txns) -> None:
    txns.compact(partition="p=1")
    world.clock.advance_ms(3_000)
    txns.compact(partition="p=2")
    txns.compact(partition="p=3")
    world.clock.advance_ms(4_000)
    assert _queue(world).oldest_initiated_age_ms == 7_000
    assert txns.claim() is not None
    assert _queue(world) == CompactionFigures(
        counts={
            CompactionState.INITIATED: 2,
            CompactionState.WORKING: 1,
            CompactionState.READY_FOR_CLEANING: 0,
        },
        oldest_initiated_age_ms=4_000,
    )
