"""How transactions, locks and the compaction queue stand, in sums that the database makes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Row, func, select

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, HIVE_LOCKS, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import CompactionState
from hms_bridge.model.figures import (
    QUEUED_STATES,
    CompactionFigures,
    LockFigures,
    OpenFigures,
    TxnFigures,
)
from hms_bridge.model.lock import LockState
from hms_bridge.model.txn import TxnState, TxnType

_T = TXNS.c
_L = HIVE_LOCKS.c
_Q = COMPACTION_QUEUE.c


def txn_figures(work: Work) -> TxnFigures:
    """See FigureStore.txn_figures."""
    rows = work.connection.execute(
        select(_T.TXN_TYPE, func.count(), func.min(_T.TXN_STARTED))
        .where(_T.TXN_STATE == TxnState.OPEN.value)
        .group_by(_T.TXN_TYPE)
    ).all()
    now_ms = work.now_ms
    aborted = work.connection.scalar(
        select(func.count()).where(_T.TXN_STATE == TxnState.ABORTED.value)
    )
    return TxnFigures(
        own=_summed([row for row in rows if row[0] != TxnType.REPL_CREATED], now_ms),
        replayed=_summed([row for row in rows if row[0] == TxnType.REPL_CREATED], now_ms),
        aborted_count=aborted or 0,
    )


def lock_figures(connection: Connection) -> LockFigures:
    """See FigureStore.lock_figures."""
    rows = connection.execute(select(_L.HL_LOCK_STATE, func.count()).group_by(_L.HL_LOCK_STATE))
    counts = {row[0]: row[1] for row in rows}
    return LockFigures(
        acquired_count=counts.get(LockState.ACQUIRED.stored, 0),
        waiting_count=counts.get(LockState.WAITING.stored, 0),
    )


def compaction_figures(work: Work) -> CompactionFigures:
    """See FigureStore.compaction_figures."""
    rows = work.connection.execute(
        select(_Q.CQ_STATE, func.count(), func.min(_Q.CQ_ENQUEUE_TIME)).group_by(_Q.CQ_STATE)
    ).all()
    by_state = {state: (count, oldest_ms) for state, count, oldest_ms in rows}
    _, oldest_ms = by_state.get(CompactionState.INITIATED.stored, (0, None))
    return CompactionFigures(
        counts={state: by_state.get(state.stored, (0, None))[0] for state in QUEUED_STATES},
        oldest_initiated_age_ms=_age_ms(oldest_ms, work.now_ms),
    )


def _summed(rows: Sequence[Row[int | None, int, int]], now_ms: int) -> OpenFigures:
    return OpenFigures(
        count=sum(count for _, count, _ in rows),
        oldest_age_ms=max((_age_ms(oldest_ms, now_ms) for _, _, oldest_ms in rows), default=0),
    )


def _age_ms(time_ms: int | None, now_ms: int) -> int:
    return 0 if time_ms is None else max(0, now_ms - time_ms)
