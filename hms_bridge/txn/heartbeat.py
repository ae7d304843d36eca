"""Keep transactions and locks alive (Hive: HeartbeatTxnFunction, HeartbeatLockFunction;
docs/hive/transactions.md §12)."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import ColumnElement, Update, bindparam, select, update

from hms_bridge.backend.fixed_sql import TimedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError, NoSuchLockError, NoSuchTxnError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.txn import HeartbeatRangeResult, TxnState
from hms_bridge.txn.txn_state import ended_error, purged_state, state_of

RANGE_MAX = 1_000_000
"""How many transactions one call keeps alive."""

_T = TXNS.c
_L = HIVE_LOCKS.c


def _touch(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    return (
        update(TXNS)
        .where(_T.TXN_ID == bindparam("txn_id"), _T.TXN_STATE == TxnState.OPEN.value)
        .values(TXN_LAST_HEARTBEAT=now)
    )


def _touch_range(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    here = _T.TXN_ID.between(bindparam("first"), bindparam("last"))
    return (
        update(TXNS).where(here, _T.TXN_STATE == TxnState.OPEN.value).values(TXN_LAST_HEARTBEAT=now)
    )


def _touch_lock(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    here = _L.HL_LOCK_EXT_ID == bindparam("lock_id")
    return update(HIVE_LOCKS).where(here).values(HL_LAST_HEARTBEAT=now)


_TOUCH, _TOUCH_RANGE, _TOUCH_LOCK = map(TimedSql, (_touch, _touch_range, _touch_lock))


def heartbeat(work: Work, txn_id: TxnId, lock_id: LockId) -> None:
    """Keep a transaction and a lock alive; 0 means none.

    Raises NoSuchTxnError, TxnAbortedError, NoSuchLockError.
    """
    ask_heartbeat(work, txn_id, lock_id)()


def ask_heartbeat(work: Work, txn_id: TxnId, lock_id: LockId) -> Callable[[], None]:
    """As :func:`heartbeat`, for who asks more before he looks (see ``later``)."""
    lock = _TOUCH_LOCK.later(work, lock_id=lock_id) if lock_id else None
    txn = _TOUCH.later(work, txn_id=txn_id) if txn_id else None

    def look() -> None:
        if lock is not None and not lock.count:
            raise NoSuchLockError(f"No such lock: lockid:{lock_id}")
        if txn is not None:
            _require_txn(work, txn, txn_id)

    return look


def _require_txn(work: Work, touched: Answer, txn_id: TxnId) -> None:
    if touched.count:
        return
    connection = work.connection
    stored = connection.execute(select(_T.TXN_STATE).where(_T.TXN_ID == txn_id)).scalar()
    state = state_of(stored) if stored else purged_state(connection, txn_id)
    if state is TxnState.COMMITTED:
        raise NoSuchTxnError(f"No such txn: {txn_id}")
    raise ended_error(txn_id, state)


def heartbeat_txn_range(work: Work, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
    """Keep alive all that are open of a range, both ends included.

    Raises MetaError only for a range of more than :data:`RANGE_MAX`.
    """
    count = last - first + 1
    if count > RANGE_MAX:
        raise MetaError(
            f"cannot keep {count} transactions alive at once; send ranges of at most {RANGE_MAX}"
        )
    if _TOUCH_RANGE.change(work, first=first, last=last) == count:
        return HeartbeatRangeResult()
    rows = work.connection.execute(
        select(_T.TXN_ID, _T.TXN_STATE).where(_T.TXN_ID.between(first, last))
    )
    states = {TxnId(txn_id): state_of(state) for txn_id, state in rows}
    ids = [TxnId(txn_id) for txn_id in range(first, last + 1)]
    gone = (None, TxnState.COMMITTED)
    return HeartbeatRangeResult(
        aborted=tuple(txn_id for txn_id in ids if states.get(txn_id) is TxnState.ABORTED),
        missing=tuple(txn_id for txn_id in ids if states.get(txn_id) in gone),
    )
