"""What is done from time to time: time-outs, and forgetting what nobody can ask for any more
(docs/hive/transactions.md §11, §12 and §17).

Each function is one database transaction's work. Those that can find much to drop take about
:data:`ROWS_MAX` rows at once, so that nobody waits for long behind them, and are called again while
they find as many. What may go is chosen first and limited then: rows that have to stay, however
many and however old, hold up none of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    HIVE_LOCKS,
    HMSB_LATE_WRITER,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import NO_TXN, TxnId, WriteId
from hms_bridge.model.target import TableName
from hms_bridge.model.txn import AbortReason, TxnState, TxnType
from hms_bridge.txn import compaction_queue
from hms_bridge.txn.abort import AbortOutcome, abort_open
from hms_bridge.txn.compaction_history import fail_queued
from hms_bridge.txn.compaction_rows import from_queue, is_readable
from hms_bridge.txn.components import forget_aborted_without_table
from hms_bridge.txn.late_compactions import is_compaction
from hms_bridge.txn.low_boundary import low_boundary
from hms_bridge.txn.open_txns import min_open_txn_watermark
from hms_bridge.txn.txn_state import high_watermark, kind_of, state_of
from hms_bridge.txn.write_ids import of_table

_LOG = logging.getLogger(__name__)

TIMED_OUT_MAX = 1000
"""How many transactions one call times out."""

ROWS_MAX = 10_000
"""How many rows one call drops; some more where several have the number at which it stops."""

_T = TXNS.c
_W = TXN_TO_WRITE_ID.c
_Q = COMPACTION_QUEUE.c


def hear_anew(work: Work) -> int:
    """What was heard at a time that is yet to come was heard now at the latest; how many rows.

    Else who died while the clock was ahead would live, and hold his locks, until that time.
    """
    now, timeout_ms = work.now_ms, work.settings.txn.timeout_ms
    locks, rebuilds = HIVE_LOCKS.c, MATERIALIZATION_REBUILD_LOCKS.c
    is_open = _T.TXN_STATE == TxnState.OPEN.value
    own_now = work.clock.now_ms()  # see time_out_rebuild_locks
    heard = (
        update(TXNS)
        .where(is_open, _T.TXN_LAST_HEARTBEAT > now + timeout_ms)
        .values(TXN_LAST_HEARTBEAT=now),
        update(HIVE_LOCKS)
        .where(locks.HL_TXNID == NO_TXN, locks.HL_LAST_HEARTBEAT > now + timeout_ms)
        .values(HL_LAST_HEARTBEAT=now),
        update(MATERIALIZATION_REBUILD_LOCKS)
        .where(rebuilds.MRL_LAST_HEARTBEAT > own_now + timeout_ms)
        .values(MRL_LAST_HEARTBEAT=own_now),
    )
    return sum(work.connection.execute(statement).rowcount for statement in heard)


def time_out_txns(work: Work, replays_before_ms: int) -> AbortOutcome:
    """Abort open transactions without a heartbeat for too long, :data:`TIMED_OUT_MAX` at most;
    those that a load replays if nothing was heard of them since ``replays_before_ms``.

    The rows are locked with the condition, so a heartbeat that comes meanwhile wins.
    """
    connection = work.connection
    now = work.now_ms
    is_replayed = _T.TXN_TYPE == int(TxnType.REPL_CREATED)
    is_other = or_(_T.TXN_TYPE.is_(None), _T.TXN_TYPE != int(TxnType.REPL_CREATED))
    rows = connection.execute(
        select(_T.TXN_ID, _T.TXN_TYPE)
        .where(
            _T.TXN_STATE == TxnState.OPEN.value,
            or_(
                and_(is_other, _T.TXN_LAST_HEARTBEAT < now - work.settings.txn.timeout_ms),
                and_(is_replayed, _T.TXN_LAST_HEARTBEAT < replays_before_ms),
            ),
        )
        .order_by(_T.TXN_ID)
        .limit(TIMED_OUT_MAX)
        .with_for_update()
    )
    timed_out = {TxnId(txn_id): kind_of(kind) for txn_id, kind in rows}
    return abort_open(work, timed_out, reason=AbortReason.TIMEOUT) if timed_out else AbortOutcome()


def time_out_locks(work: Work) -> int:
    """Drop locks of no transaction without a heartbeat for too long; how many."""
    expired = work.now_ms - work.settings.txn.timeout_ms
    locks = HIVE_LOCKS.c
    is_silent = and_(locks.HL_TXNID == NO_TXN, locks.HL_LAST_HEARTBEAT < expired)
    gone = _first_of(work.connection, locks.HL_LOCK_EXT_ID, is_silent)
    return work.connection.execute(delete(HIVE_LOCKS).where(gone)).rowcount


def time_out_rebuild_locks(work: Work) -> int:
    """Drop materialized-view rebuild locks of transactions that ended unnoticed; how many."""
    m = MATERIALIZATION_REBUILD_LOCKS.c
    is_open = exists().where(_T.TXN_ID == m.MRL_TXN_ID, _T.TXN_STATE == TxnState.OPEN.value)
    # This table alone keeps the server's time, not the database's.
    expired = work.clock.now_ms() - work.settings.txn.timeout_ms
    return work.connection.execute(
        delete(MATERIALIZATION_REBUILD_LOCKS).where(m.MRL_LAST_HEARTBEAT < expired, ~is_open)
    ).rowcount


def forget_write_sets(work: Work) -> int:
    """Drop changes that were committed before every open transaction began; how many rows."""
    committed = WRITE_SET.c.WS_COMMIT_ID
    gone = _first_of(work.connection, committed, committed < min_open_txn_watermark(work))
    return work.connection.execute(delete(WRITE_SET).where(gone)).rowcount


def forget_write_ids(work: Work) -> int:
    """Drop who owns which write id, where everyone counts the owner as committed; how many rows.

    Owners below each of: the lowest that is open or may still appear, the lowest that any open
    transaction counts as open, the lowest aborted. And of each table only the lowest write ids:
    the list of a table ends at its highest row, so a row that stays must not be overtaken.
    """
    connection = work.connection
    bound = _finished_below(work)
    rows = connection.execute(
        select(_W.T2W_DATABASE, _W.T2W_TABLE).where(_W.T2W_TXNID < bound).distinct()
    )
    tables = [TableName(database, table) for database, table in rows]
    staying = _lowest_staying(connection, bound) if tables else {}
    count = 0
    for table in tables:
        gone = and_(of_table(table.database, table.table), _W.T2W_TXNID < bound)
        if table in staying:
            gone = and_(gone, _W.T2W_WRITEID < staying[table])
        gone = _first_of(connection, _W.T2W_WRITEID, gone)
        count += connection.execute(delete(TXN_TO_WRITE_ID).where(gone)).rowcount
        if count >= ROWS_MAX:
            break
    return count


def forget_txns(work: Work) -> int:
    """Drop transactions that ended and left nothing behind; how many rows were dropped or marked.

    Strictly below the boundary, so that the row there stays: gaps above it count, below it not.
    Aborted ones stay while TXN_COMPONENTS says that their files may exist, and aborted compactions
    of what was dropped while they may come late. Of committed ones the
    last below each row that stays does too, with the time 0, which is old for ever: else all that
    was dropped would count as open when the clock is set back, and its rows be unseen.
    """
    connection = work.connection
    forget_aborted_without_table(connection)
    is_committed = _T.TXN_STATE == TxnState.COMMITTED.value
    is_aborted = _T.TXN_STATE == TxnState.ABORTED.value
    is_bare = and_(
        ~exists().where(TXN_COMPONENTS.c.TC_TXNID == _T.TXN_ID),
        ~exists().where(MIN_HISTORY_WRITE_ID.c.MH_TXNID == _T.TXN_ID),
        ~_is_late_compaction(_T.TXN_ID, _T.TXN_TYPE),
    )
    has_gone = and_(is_bare, or_(is_aborted, and_(is_committed, _T.TXN_STARTED != 0)))
    boundary = _boundary_of_next(connection, has_gone, low_boundary(work))
    lasting = _lasting(connection, boundary)
    marked = connection.scalars(
        select(_T.TXN_ID).where(_T.TXN_ID < boundary, is_committed, _T.TXN_STARTED == 0)
    ).all()
    count = 0
    for batch in batches(sorted(lasting.difference(marked))):
        mark = update(TXNS).where(_T.TXN_ID.in_(batch)).values(TXN_STARTED=0)
        count += connection.execute(mark).rowcount
    count += connection.execute(delete(TXNS).where(_T.TXN_ID < boundary, has_gone)).rowcount
    for batch in batches(sorted(set(marked) - lasting)):
        gone = and_(is_bare, is_committed, _T.TXN_ID.in_(batch))
        count += connection.execute(delete(TXNS).where(gone)).rowcount
    return count


def _boundary_of_next(
    connection: Connection, has_gone: ColumnElement[bool], boundary: TxnId
) -> TxnId:
    """Below it are as many that may go as one call drops. Like the boundary given, which it does
    not pass, it is a row's, and no id below it can appear any more."""
    next_id = connection.scalar(
        select(_T.TXN_ID)
        .where(_T.TXN_ID < boundary, has_gone)
        .order_by(_T.TXN_ID)
        .offset(ROWS_MAX)
        .limit(1)
    )
    return boundary if next_id is None else TxnId(next_id)


def _lasting(connection: Connection, boundary: TxnId) -> set[int]:
    """The last committed transaction below each row that stays, and that up to the boundary.

    Rows are gone through once, as ten thousand may stay side by side: to look below each of them
    would be to go through all of them ten thousand times.
    """
    is_committed = and_(_T.TXN_STATE == TxnState.COMMITTED.value, _T.TXN_ID > 0)
    before = func.max(case((is_committed, _T.TXN_ID))).over(order_by=_T.TXN_ID, rows=(None, -1))
    rows = (
        select(_T.TXN_ID, _T.TXN_STATE, _T.TXN_TYPE, before.label("below"))
        .where(_T.TXN_ID <= boundary)
        .subquery()
        .c
    )
    stays = or_(
        rows.TXN_STATE == TxnState.OPEN.value,
        exists().where(TXN_COMPONENTS.c.TC_TXNID == rows.TXN_ID),
        exists().where(MIN_HISTORY_WRITE_ID.c.MH_TXNID == rows.TXN_ID),
        _is_late_compaction(rows.TXN_ID, rows.TXN_TYPE),
    )
    txn_ids = connection.scalars(select(rows.below).where(stays).distinct()).all()
    last = connection.scalar(select(func.max(_T.TXN_ID)).where(is_committed, _T.TXN_ID <= boundary))
    return {txn_id for txn_id in (*txn_ids, last) if txn_id is not None}


def _is_late_compaction(
    txn_id: ColumnElement[int], kind: ColumnElement[int]
) -> ColumnElement[bool]:
    """It may still bring a directory, which is seen once nobody remembers that it was aborted."""
    is_noted = exists().where(txn_id == HMSB_LATE_WRITER.c.LW_TXN_ID)
    return and_(is_compaction(kind), is_noted)


def settle_compactions(work: Work) -> tuple[Compaction, ...]:
    """Judge entries that are ready for cleaning but have no time of their commit; those that
    failed.

    Their transaction is open: left alone. Aborted: failed, and nothing of their inputs is cleaned
    (HIVE-29572; docs/hive/compaction.md §15).
    Committed (by a Hive that does not note it for rebalance, or before it knew transactions): from
    now on everyone sees the output, so the inputs may go when all who are open now have ended.
    The directory of a table that was never made is no compaction: it stays as it is. So does an
    entry that cannot be read here, which may be of such a directory.
    """
    connection = work.connection
    waiting = (
        select(COMPACTION_QUEUE)
        .where(
            _Q.CQ_STATE == CompactionState.READY_FOR_CLEANING.stored, _Q.CQ_NEXT_TXN_ID.is_(None)
        )
        .where(_Q.CQ_TYPE != CompactionType.ABORT_TXN_CLEANUP.stored)
    )
    rows = connection.execute(waiting).mappings()
    readable = map(from_queue, filter(is_readable, rows))
    entries = [entry for entry in readable if not entry.is_never_created]
    if not entries:
        return ()
    lock_txns(connection, is_exclusive=True)
    states = _states(connection, [entry.txn_id for entry in entries if entry.txn_id])
    failed: list[Compaction] = []
    for entry in entries:
        state = states.get(entry.txn_id or NO_TXN, TxnState.COMMITTED)
        if state is TxnState.ABORTED:
            reason = f"the compaction's transaction txnid:{entry.txn_id} was aborted"
            ended = fail_queued(work, entry.id, reason)
            failed += [ended] if ended else []
        elif state is TxnState.COMMITTED:
            connection.execute(
                update(COMPACTION_QUEUE)
                .where(_Q.CQ_ID == entry.id, _Q.CQ_NEXT_TXN_ID.is_(None))
                .values(
                    CQ_NEXT_TXN_ID=high_watermark(connection),
                    CQ_COMMIT_TIME=func.coalesce(_Q.CQ_COMMIT_TIME, work.now_ms),
                )
            )
    return tuple(failed)


def give_back_abandoned(work: Work) -> tuple[Compaction, ...]:
    """Entries of dead workers go back to the queue; those that failed instead.

    An entry fails if the worker before died at it, too: it may be what kills them, and it stands
    first in the queue.
    """
    failed: list[Compaction] = []
    for entry in compaction_queue.abandoned(work):
        reason = (
            f"worker {entry.worker_id} has gone: its transaction {entry.txn_id} has ended"
            if entry.txn_id
            else f"worker {entry.worker_id} has gone before it began"
        )
        before = entry.error_message or ""
        if before.startswith(compaction_queue.GIVEN_BACK):
            reason = f"{reason}; {before}"
            ended = fail_queued(work, entry.id, reason)
            failed += [ended] if ended else []
        elif compaction_queue.give_back(work.connection, entry, reason):
            _LOG.warning("compaction %d of %s given back: %s", entry.id, entry.target, reason)
    return tuple(failed)


def _first_of(
    connection: Connection, number: ColumnElement[int], may_go: ColumnElement[bool]
) -> ColumnElement[bool]:
    """Of the rows that may go, the first :data:`ROWS_MAX` by a number; all of one number."""
    last = connection.scalar(
        select(number).where(may_go).order_by(number).offset(ROWS_MAX - 1).limit(1)
    )
    return may_go if last is None else and_(may_go, number <= last)


def _finished_below(work: Work) -> TxnId:
    watermark = min_open_txn_watermark(work)
    aborted = select(func.min(_T.TXN_ID)).where(_T.TXN_STATE == TxnState.ABORTED.value)
    history = select(func.min(MIN_HISTORY_LEVEL.c.MHL_MIN_OPEN_TXNID))
    others = work.connection.execute(
        select(aborted.scalar_subquery(), history.scalar_subquery())
    ).one()
    return TxnId(min([watermark, *(txn_id for txn_id in others if txn_id is not None)]))


def _lowest_staying(connection: Connection, bound: TxnId) -> Mapping[TableName, WriteId]:
    rows = connection.execute(
        select(_W.T2W_DATABASE, _W.T2W_TABLE, func.min(_W.T2W_WRITEID))
        .where(_W.T2W_TXNID >= bound)
        .group_by(_W.T2W_DATABASE, _W.T2W_TABLE)
    )
    return {TableName(database, table): WriteId(lowest) for database, table, lowest in rows}


def _states(connection: Connection, ids: list[TxnId]) -> dict[TxnId, TxnState]:
    states: dict[TxnId, TxnState] = {}
    for batch in batches(ids):
        rows = connection.execute(select(_T.TXN_ID, _T.TXN_STATE).where(_T.TXN_ID.in_(batch)))
        states.update((TxnId(txn_id), state_of(state)) for txn_id, state in rows)
    return states
