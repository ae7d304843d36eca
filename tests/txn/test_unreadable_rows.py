"""One row that nobody here can read stops nobody else: it is shown by name, and left alone."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Column, update

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    HIVE_LOCKS,
    TXNS,
)
from hms_bridge.model.compaction import CompactionState
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.txn import TxnState, TxnType
from tests.support.txns import Txns, component
from tests.support.world import World

FAULTS = {
    "CQ_TBLPROPERTIES": "1:3:ke",
    "CQ_TYPE": "z",
}
BAD = pytest.mark.parametrize("column", FAULTS)


def spoil(world: World, number: int, column: str, value: str | None = None) -> None:
    fault = {column: FAULTS[column] if value is None else value}
    change(world, COMPACTION_QUEUE.c.CQ_ID, number, fault)


def change(world: World, key: Column[Any], number: int, values: dict[str, Any]) -> None:
    world.execute(update(key.table).where(key == number).values(values))


def message_of(world: World, number: int) -> str:
    (entry,) = [one for one in world.metastore.show_compactions() if one.id == number]
    return entry.error_message or ""


@BAD
def test_workers_take_the_next_entry(world: World, txns: Txns, column: str) -> None:
    txns.compact("bad")
    spoil(world, 1, column)
    txns.compact("good")
    taken = txns.claim()
    assert taken is not None
    assert (taken.id, taken.target.table) == (2, "good")
    assert txns.claim() is None
    (left, _) = world.records(COMPACTION_QUEUE)
    assert (left["CQ_STATE"], left["CQ_WORKER_ID"], left[column]) == ("i", None, FAULTS[column])


def test_workers_find_an_entry_behind_many(world: World, txns: Txns) -> None:
    for number in range(1, 61):
        txns.compact(f"bad{number}")
        spoil(world, number, "CQ_TYPE")
    txns.compact("good", pool_name="p")
    taken = txns.claim(pool="p")
    assert taken is not None
    txns.compact("good2")
    taken = txns.claim()
    assert taken is not None
    assert taken.target.table == "good2"


@BAD
def test_it_is_shown_by_name_among_the_others(world: World, txns: Txns, column: str) -> None:
    txns.compact("bad")
    spoil(world, 1, column)
    txns.compact("good")
    assert txns.show() == [(1, "initiated"), (2, "initiated")]
    assert column in message_of(world, 1)
    assert FAULTS[column] in message_of(world, 1)
    assert "ABORT COMPACTIONS 1" in message_of(world, 1)
    assert message_of(world, 2) == ""


def test_a_state_of_a_newer_hive_is_shown(world: World, txns: Txns) -> None:
    txns.compact("bad")
    spoil(world, 1, "CQ_STATE", "q")
    txns.compact("good")
    assert txns.show() == [(1, "unknown"), (2, "initiated")]
    assert "CQ_STATE 'q'" in message_of(world, 1)
    outcome = world.metastore.abort_compactions([CompactionId(1)])
    assert not outcome[CompactionId(1)].is_aborted


@BAD
def test_its_target_is_not_queued_twice_and_it_can_be_aborted(
    world: World, txns: Txns, column: str
) -> None:
    txns.compact("bad")
    spoil(world, 1, column)
    again = txns.compact("bad")
    assert not again.is_accepted
    assert "id=1" in (again.error_message or "")
    assert world.metastore.abort_compactions([CompactionId(1)])[CompactionId(1)].is_aborted
    assert txns.compact("bad").is_accepted
    assert [state for _, state in txns.show()] == ["initiated", "aborted"]


@BAD
def test_the_cleaner_takes_others_and_leaves_it(world: World, txns: Txns, column: str) -> None:
    txns.compacted(3, table="bad")
    txns.compacted(4, table="good")
    spoil(world, 1, column)
    txns.grow_old()
    assert txns.ready() == [2]
    assert [row["CQ_STATE"] for row in world.records(COMPACTION_QUEUE)] == ["r", "r"]


def test_what_is_not_known_to_be_a_compaction_is_not_settled(world: World, txns: Txns) -> None:
    """It may be of the directory of a table that was never made, which names no transaction."""
    for table in ("bad", "good"):
        txns.compact(table)
        txns.mark_compacted(txns.start_compaction(1))
        world.execute(update(COMPACTION_QUEUE).values(CQ_TXN_ID=None))
    spoil(world, 1, "CQ_TBLPROPERTIES")
    txns.housekeep()
    settled = {row["CQ_ID"]: row["CQ_NEXT_TXN_ID"] for row in world.records(COMPACTION_QUEUE)}
    assert settled[1] is None
    assert settled[2] is not None


@pytest.mark.parametrize("fault", [{"CC_TBLPROPERTIES": "x"}, {"CC_TYPE": "z"}, {"CC_STATE": "q"}])
def test_one_of_the_history_is_shown_and_kept(
    world: World, txns: Txns, fault: dict[str, Any]
) -> None:
    for number in range(1, 7):
        txns.compact()
        entry = txns.start_compaction(number)
        txns.mark_compacted(entry)
        txns.mark_cleaned(entry)
    change(world, COMPLETED_COMPACTIONS.c.CC_ID, 1, fault)
    assert len(txns.show()) == 6
    assert next(iter(fault)) in message_of(world, 1)
    txns.housekeep()
    assert {row["CC_ID"] for row in world.records(COMPLETED_COMPACTIONS)} == {1, 4, 5, 6}


def test_a_transaction_of_a_kind_that_is_not_known_stops_nobody(world: World, txns: Txns) -> None:
    """It counts as one that may read and write."""
    strange, other = txns.open(2)
    change(world, TXNS.c.TXN_ID, strange, {"TXN_TYPE": 77})
    assert [txn.type for txn in txns.all().txns] == [TxnType.DEFAULT] * 2
    assert [info.id for info in world.metastore.get_open_txns_info()] == [strange, other]
    txns.beat(strange)
    world.clock.advance_ms(world.settings.txn.timeout_ms + 1)
    txns.housekeep()
    assert {txn.state for txn in txns.all().txns} <= {TxnState.ABORTED}
    strange, other = txns.open(2)
    change(world, TXNS.c.TXN_ID, strange, {"TXN_TYPE": 77})
    txns.abort_many([strange, other])
    assert not [txn for txn in txns.all().txns if txn.state is TxnState.OPEN]


def test_a_transaction_in_a_state_that_is_not_known_counts_as_open(
    world: World, txns: Txns
) -> None:
    strange, other = txns.open(2)
    change(world, TXNS.c.TXN_ID, strange, {"TXN_STATE": "q"})
    assert txns.snapshot().open_ids == (strange, other)
    assert [info.state for info in world.metastore.get_open_txns_info()] == [TxnState.OPEN] * 2
    result = world.metastore.heartbeat_txn_range(strange, other)
    assert (result.aborted, result.missing) == ((), ())


def test_a_lock_of_a_kind_that_is_not_known_is_listed(world: World, txns: Txns) -> None:
    for _ in range(2):
        txns.lock(txns.open_one(), component())
    fault = {"HL_LOCK_TYPE": "q", "HL_LOCK_STATE": "q"}
    change(world, HIVE_LOCKS.c.HL_LOCK_EXT_ID, 1, fault)
    assert sorted(lock.lock_id for lock in world.metastore.show_locks()) == [1, 2]


def test_states_here_have_letters_of_their_own() -> None:
    assert len({state.stored for state in CompactionState}) == len(CompactionState)
