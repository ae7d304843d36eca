"""What a reader registers: never above what a compaction that it cannot see may cover."""

from __future__ import annotations

from typing import Any

import pytest

from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxn, OpenTxns, TxnState
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.session.min_history import lowest_needed, register_reader
from tests.support.fake_metastore import FakeMetastore

WORKING, READY = CompactionState.WORKING, CompactionState.READY_FOR_CLEANING


def _entry(state: CompactionState, highest: int | None, **other: Any) -> Compaction:
    return Compaction(
        id=other.pop("id", CompactionId(1)),
        target=Target("db", other.pop("table", "t"), other.pop("partition", None)),
        type=other.pop("type", CompactionType.MAJOR),
        state=state,
        highest_write_id=None if highest is None else WriteId(highest),
        **other,
    )


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([], 6),
        ([_entry(WORKING, 4)], 4),
        ([_entry(WORKING, 9)], 6),
        ([_entry(WORKING, None)], 1),
        ([_entry(READY, 4)], 4),  # its transaction is not committed yet
        ([_entry(READY, 4, next_txn_id=TxnId(8))], 6),
        ([_entry(WORKING, 4), _entry(WORKING, 3, partition="p=1")], 3),
        ([_entry(WORKING, 4, table="other")], 6),
        ([_entry(READY, None, type=CompactionType.ABORT_TXN_CLEANUP)], 6),
    ],
)
def test_the_lowest_id_that_is_needed(entries: list[Compaction], wanted: int) -> None:
    assert lowest_needed("db.t", WriteId(6), entries) == wanted


def _metastore(order: list[str], entries: tuple[Compaction, ...] = ()) -> FakeMetastore:
    def noted(name: str, answer: Any) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            order.append(name)
            return answer

        return call

    opened = OpenTxns(high_watermark=TxnId(9), txns=(OpenTxn(id=TxnId(9), state=TxnState.OPEN),))
    ids = ValidWriteIdList.parse("db.t:7:7:7:")
    return FakeMetastore(
        get_open_txns=noted("get_open_txns", opened),
        get_valid_write_ids=noted("get_valid_write_ids", (ids,)),
        show_compactions=noted("show_compactions", entries),
        add_write_ids_to_min_history=noted("add", None),
    )


def test_what_is_under_way_is_asked_after_the_open_ids() -> None:
    """A compaction that begins between the two covers what the first look saw; the other way round
    it would be missed."""
    order: list[str] = []
    metastore = _metastore(order)
    register_reader(metastore, TxnId(9), ["db.t"])
    assert order == [
        "get_open_txns", "get_valid_write_ids", "show_compactions", "show_compactions", "add",
    ]  # fmt: skip
    assert metastore.calls[-1][1] == (9, {"db.t": 6})  # its own open id 7 counts as open
    (_, txns), _ = metastore.calls[1][1:]
    assert isinstance(txns, ValidTxnList)
    assert not txns.is_valid(TxnId(9))


def test_a_compactor_does_not_stand_in_its_own_way() -> None:
    metastore = _metastore([], (_entry(WORKING, None, id=CompactionId(5)),))
    register_reader(metastore, TxnId(9), ["db.t"], own_compaction=CompactionId(5))
    assert metastore.calls[-1][1] == (9, {"db.t": 6})


def test_nothing_is_asked_for_no_table() -> None:
    metastore = FakeMetastore()
    register_reader(metastore, TxnId(9), [])
    assert metastore.calls == []
