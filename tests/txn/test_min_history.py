"""What readers registered lives as long as their transaction."""

from typing import Any

import pytest

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, MIN_HISTORY_WRITE_ID
from hms_bridge.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.compaction import CompactionState, CompactionType
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.txn import housekeeping
from tests.support.txns import Txns
from tests.support.world import World


def _register(world: World, txn_id: int, **ids: int) -> None:
    named = {name.replace("__", "."): WriteId(one) for name, one in ids.items()}
    world.metastore.add_write_ids_to_min_history(TxnId(txn_id), named)


def _rows(world: World) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in world.records(MIN_HISTORY_WRITE_ID))


def test_ids_are_kept_by_table_in_lower_case(world: World, txns: Txns) -> None:
    (txn_id,) = txns.open()
    _register(world, txn_id, DB__T=7, db__u=1)
    _register(world, txn_id, db__t=7)
    assert _rows(world) == [(txn_id, "db", "t", 6), (txn_id, "db", "t", 6), (txn_id, "db", "u", 1)]


def test_of_names_that_are_one_in_lower_case_the_lowest_id_counts(world: World, txns: Txns) -> None:
    (txn_id,) = txns.open()
    _register(world, txn_id, DB__T=3, db__t=7)
    assert min(number for *_, number in _rows(world)) == 2


def _compaction(world: World, state: CompactionState, **columns: Any) -> None:
    known = {"CQ_ID": 1, "CQ_DATABASE": "db", "CQ_TABLE": "t", "CQ_STATE": state.stored}
    world.put(COMPACTION_QUEUE, **known | {"CQ_TYPE": CompactionType.MAJOR.stored} | columns)


WORKING, READY = CompactionState.WORKING, CompactionState.READY_FOR_CLEANING


@pytest.mark.parametrize(
    ("state", "columns", "wanted"),
    [
        (WORKING, {"CQ_HIGHEST_WRITE_ID": 4}, 4),
        (WORKING, {"CQ_HIGHEST_WRITE_ID": 9}, 6),
        (WORKING, {}, 1),  # it does not say yet
        (WORKING, {"CQ_TXN_ID": 2}, 6),  # the reader's own
        (WORKING, {"CQ_HIGHEST_WRITE_ID": 4, "CQ_TXN_ID": 1}, 4),
        (WORKING, {"CQ_HIGHEST_WRITE_ID": 4, "CQ_TABLE": "u"}, 6),
        (READY, {"CQ_HIGHEST_WRITE_ID": 4}, 4),  # not committed
        (READY, {"CQ_HIGHEST_WRITE_ID": 4, "CQ_NEXT_TXN_ID": 0}, 4),
        (READY, {"CQ_HIGHEST_WRITE_ID": 4, "CQ_NEXT_TXN_ID": 2}, 4),  # after the reader began
        (READY, {"CQ_HIGHEST_WRITE_ID": 4, "CQ_NEXT_TXN_ID": 1}, 6),  # the reader sees it
        (READY, {"CQ_TYPE": CompactionType.ABORT_TXN_CLEANUP.stored}, 6),
        (CompactionState.INITIATED, {}, 6),
    ],
)
def test_no_more_than_what_an_unseen_compaction_covers(
    world: World, txns: Txns, state: CompactionState, columns: dict[str, Any], wanted: int
) -> None:
    txns.open(2)
    _compaction(world, state, **columns)
    _register(world, 2, db__t=7)
    assert _rows(world) == [(2, "db", "t", wanted)]


def test_the_lowest_of_several_compactions_counts(world: World, txns: Txns) -> None:
    (txn_id,) = txns.open()
    for number, highest in enumerate((5, 3, 4), start=1):
        _compaction(
            world, WORKING, CQ_ID=number, CQ_PARTITION=f"p={number}", CQ_HIGHEST_WRITE_ID=highest
        )
    _register(world, txn_id, db__t=7)
    assert _rows(world) == [(txn_id, "db", "t", 3)]


@pytest.mark.parametrize("how", ["commit", "abort", "time out"])
def test_they_end_with_their_transaction(world: World, txns: Txns, how: str) -> None:
    first, second = txns.open(2)
    _register(world, first, db__t=7)
    _register(world, second, db__t=8)
    if how == "commit":
        txns.commit(first)
    elif how == "abort":
        txns.abort(first)
    else:
        world.clock.advance_ms(world.settings.txn.timeout_ms)
        world.metastore.heartbeat(second, LockId(0))
        world.clock.advance_ms(1)
        world.do(housekeeping.time_out_txns, 0)
    assert _rows(world) == [(second, "db", "t", 7)]


def test_an_ended_transaction_registers_nothing(world: World, txns: Txns) -> None:
    first, second = txns.open(2)
    txns.abort(first)
    txns.commit(second)
    with pytest.raises(TxnAbortedError):
        _register(world, first, db__t=1)
    for gone in (second, 99):
        with pytest.raises(NoSuchTxnError):
            _register(world, gone, db__t=1)
    assert _rows(world) == []


@pytest.mark.parametrize("name", ["t", "__t", "db__", ""])
def test_a_name_without_its_database(world: World, txns: Txns, name: str) -> None:
    (txn_id,) = txns.open()
    with pytest.raises(MetaError, match=r"write it as database\.table"):
        _register(world, txn_id, **{name: 1})
    assert _rows(world) == []
