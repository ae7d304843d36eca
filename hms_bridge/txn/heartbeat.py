"""Keep transactions and locks alive (Hive: HeartbeatTxnFunction, HeartbeatLockFunction;
docs/hive/transactions.md §12)."""

from __future__ import annotations

from sqlalchemy import select, update

from hms_bridge.backend.dialect import now_expression
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError, NoSuchLockError, NoSuchTxnError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.txn import HeartbeatRangeResult, TxnState
from hms_bridge.txn.txn_state import ended_error, purged_state

RANGE_MAX = 1_000_000
"""How many transactions one call keeps alive."""

_T = TXNS.c
_L = HIVE_LOCKS.c


def heartbeat(work: Work, txn_id: TxnId, lock_id: LockId) -> None:
    """Keep a transaction and a lock alive; 0 means none.

    Raises NoSuchTxnError, TxnAbortedError, NoSuchLockError.
    """
    if lock_id:
        heartbeat_lock(work, lock_id)
    if txn_id:
        heartbeat_txn(work, txn_id)


def heartbeat_txn(work: Work, txn_id: TxnId) -> None:
    """Raises NoSuchTxnError, TxnAbortedError."""
    connection = work.connection
    if _touch_open(work, txn_id, txn_id):
        return
    found = connection.execute(select(_T.TXN_STATE).where(_T.TXN_ID == txn_id)).scalar()
    state = TxnState(found) if found else purged_state(connection, txn_id)
    if state is TxnState.COMMITTED:
        raise NoSuchTxnError(f"No such txn: {txn_id}")
    raise ended_error(txn_id, state)


def heartbeat_lock(work: Work, lock_id: LockId) -> None:
    """Raises NoSuchLockError."""
    connection = work.connection
    changed = connection.execute(
        update(HIVE_LOCKS)
        .where(_L.HL_LOCK_EXT_ID == lock_id)
        .values(HL_LAST_HEARTBEAT=now_expression(connection, work.clock))
    )
    if not changed.rowcount:
        raise NoSuchLockError(f"No such lock: lockid:{lock_id}")


def heartbeat_txn_range(work: Work, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
    """Keep alive all that are open of a range, both ends included.

    Raises MetaError only for a range of more than :data:`RANGE_MAX`.
    """
    count = last - first + 1
    if count > RANGE_MAX:
        raise MetaError(
            f"cannot keep {count} transactions alive at once; send ranges of at most {RANGE_MAX}"
        )
    if _touch_open(work, first, last) == count:
        return HeartbeatRangeResult()
    rows = work.connection.execute(
        select(_T.TXN_ID, _T.TXN_STATE).where(_T.TXN_ID.between(first, last))
    )
    states = {TxnId(txn_id): TxnState(state) for txn_id, state in rows}
    ids = [TxnId(txn_id) for txn_id in range(first, last + 1)]
    gone = (None, TxnState.COMMITTED)
    return HeartbeatRangeResult(
        aborted=tuple(txn_id for txn_id in ids if states.get(txn_id) is TxnState.ABORTED),
        missing=tuple(txn_id for txn_id in ids if states.get(txn_id) in gone),
    )


def _touch_open(work: Work, first: TxnId, last: TxnId) -> int:
    connection = work.connection
    here = _T.TXN_ID == first if first == last else _T.TXN_ID.between(first, last)
    return connection.execute(
        update(TXNS)
        .where(here, _T.TXN_STATE == TxnState.OPEN.value)
        .values(TXN_LAST_HEARTBEAT=now_expression(connection, work.clock))
    ).rowcount
