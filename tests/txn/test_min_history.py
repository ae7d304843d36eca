"""What readers registered lives as long as their transaction."""

import pytest

from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_WRITE_ID
from hms_bridge.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.txn import heartbeat, housekeeping, min_history
from tests.support.txn_world import TxnWorld


def _register(world: TxnWorld, txn_id: int, **ids: int) -> None:
    named = {name.replace("__", "."): WriteId(one) for name, one in ids.items()}
    world.do(lambda c: min_history.add_write_ids(c, TxnId(txn_id), named))


def _rows(world: TxnWorld) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in world.rows(MIN_HISTORY_WRITE_ID))


def test_ids_are_kept_by_table_in_lower_case(world: TxnWorld) -> None:
    (txn_id,) = world.open()
    _register(world, txn_id, DB__T=7, db__u=1)
    _register(world, txn_id, db__t=7)
    assert _rows(world) == [(txn_id, "db", "t", 7), (txn_id, "db", "t", 7), (txn_id, "db", "u", 1)]


@pytest.mark.parametrize("how", ["commit", "abort", "time out"])
def test_they_end_with_their_transaction(world: TxnWorld, how: str) -> None:
    first, second = world.open(2)
    _register(world, first, db__t=7)
    _register(world, second, db__t=8)
    if how == "commit":
        world.commit(first)
    elif how == "abort":
        world.abort(first)
    else:
        world.time.advance_ms(world.settings.timeout_ms)
        world.do(lambda c: heartbeat.heartbeat(world.work(c), second, LockId(0)))
        world.time.advance_ms(1)
        world.do(lambda c: housekeeping.time_out_txns(world.work(c)))
    assert _rows(world) == [(second, "db", "t", 8)]


def test_an_ended_transaction_registers_nothing(world: TxnWorld) -> None:
    first, second = world.open(2)
    world.abort(first)
    world.commit(second)
    with pytest.raises(TxnAbortedError):
        _register(world, first, db__t=1)
    for gone in (second, 99):
        with pytest.raises(NoSuchTxnError):
            _register(world, gone, db__t=1)
    assert _rows(world) == []


@pytest.mark.parametrize("name", ["t", "__t", "db__", ""])
def test_a_name_without_its_database(world: TxnWorld, name: str) -> None:
    (txn_id,) = world.open()
    with pytest.raises(MetaError, match=r"write it as database\.table"):
        _register(world, txn_id, **{name: 1})
    assert _rows(world) == []
