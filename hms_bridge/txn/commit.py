"""Commit transactions (Hive: CommitTxnFunction; docs/hive/transactions.md §8, §9).

**Write conflicts.** Two transactions that both update or delete in one table or partition, and of
which one began before the other committed, must not both commit: the later would undo the earlier
without having seen it. Hive looks for this only if the client asks (``exclWriteEnabled`` false);
otherwise it trusts that the client held an EXCL_WRITE lock. Clients that leave the field alone
and take SHARED_WRITE (Trino) get no check from Hive, and lose updates. So here:

* asked for: always checked, as in Hive;
* not asked for: checked unless the transaction holds EXCL_WRITE or EXCLUSIVE, acquired, on all it
  updates. With these locks a check would be wrong: one that waited for the lock began long ago.

And a change at table level (of partitions that were never named) conflicts with a change of any
partition of that table, where Hive compares the names only. Both differences abort a transaction
that Hive commits; neither ever commits one that Hive aborts.

**Compactions.** The commit of a compaction makes its output visible. If the entry of the queue is
not its own any more (the worker lost its lease), the transaction is aborted instead (I9). A worker
that refused its entry wrote nothing; its transaction commits, as Hive's does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from hms_bridge.backend.batches import insert_rows
from hms_bridge.backend.dialect import is_postgresql, is_sqlite
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import Compaction, CompactionState
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.txn import AbortReason, CommitTxnRequest, TxnState, TxnType, WriteEvent
from hms_bridge.txn.abort import OPEN_ONLY, AbortOutcome, abort_open, forget_open_one, forgetting
from hms_bridge.txn.compaction_rows import QUEUE_COLUMNS, from_queue, queue_fields
from hms_bridge.txn.foresight import Foresight
from hms_bridge.txn.late_writers import ended_writer_error
from hms_bridge.txn.plain_commits import (
    CHANGING,
    COMPLETED_COLUMNS,
    PlainEnd,
    completed_rows,
    expect_ends,
    is_there,
)
from hms_bridge.txn.replication import forget_source_txn, is_of_load, target_txn
from hms_bridge.txn.stepped_commits import SteppedEnd
from hms_bridge.txn.txn_state import (
    IN_ANY_STATE,
    TxnRow,
    high_watermark,
    lock_txn,
    purged_state,
)
from hms_bridge.txn.write_ids import WrittenTable, tables_written_by

_C = TXN_COMPONENTS.c
_L = HIVE_LOCKS.c
_Q = COMPACTION_QUEUE.c
_H = COMPLETED_COMPACTIONS.c
_S = WRITE_SET.c
# A soft drop asks for its cleaning within its transaction (Hive: InsertCompactionRequestCommand).
_QUEUED = frozenset(kind for kind in TxnType if kind.is_compaction) | {TxnType.SOFT_DELETE}
_HELD_FROM_OTHERS = (LockType.EXCL_WRITE.stored, LockType.EXCLUSIVE.stored)
_SAME_RESOURCE = and_(
    _S.WS_DATABASE == _C.TC_DATABASE,
    _S.WS_TABLE == _C.TC_TABLE,
    or_(
        _S.WS_PARTITION == _C.TC_PARTITION,
        _S.WS_PARTITION.is_(None),
        _C.TC_PARTITION.is_(None),
    ),
)
_TXN_ID = bindparam("txn_id", type_=BigInteger)


_TRACE_COLUMNS = (
    is_there(_C.TC_TXNID == _TXN_ID),
    is_there(
        and_(
            _C.TC_TXNID == _TXN_ID,
            or_(*(_C.TC_OPERATION_TYPE == kind for kind in CHANGING)),
        )
    ),
    is_there(TXN_TO_WRITE_ID.c.T2W_TXNID == _TXN_ID),
    *(is_there(column == _TXN_ID) for column in OPEN_ONLY.values()),
)
_TRACES = FixedSql(select(*_TRACE_COLUMNS))
_ROW_AND_TRACES = FixedSql(
    select(TXNS.c.TXN_STATE, TXNS.c.TXN_TYPE, *_TRACE_COLUMNS).where(
        TXNS.c.TXN_ID == _TXN_ID, IN_ANY_STATE
    )
)
_WRITTEN = completed_rows(_C.TC_TXNID == _TXN_ID, bindparam("has_changes", type_=LETTER))
_COMPLETE_ROWS = insert(COMPLETED_TXN_COMPONENTS).from_select(COMPLETED_COLUMNS, _WRITTEN)
_FORGET_COMPONENT_ROWS = delete(TXN_COMPONENTS).where(_C.TC_TXNID == _TXN_ID)
_COMMIT_ROW = (
    update(TXNS)
    .where(TXNS.c.TXN_ID == _TXN_ID, IN_ANY_STATE)
    .values(TXN_STATE=TxnState.COMMITTED.value)
)
_COMPLETE, _FORGET_COMPONENTS = FixedSql(_COMPLETE_ROWS), FixedSql(_FORGET_COMPONENT_ROWS)
_COMMIT = FixedSql(_COMMIT_ROW)
_FINISHED = FixedSql(select(*QUEUE_COLUMNS).where(_Q.CQ_TXN_ID == _TXN_ID))
# Who renames their table is waited for, and waits: the rows that are made of these have its name.
_HOLD_COMPONENTS = FixedSql(select(_C.TC_TXNID).where(_C.TC_TXNID == _TXN_ID).with_for_update())


def _finish(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    held = (CompactionState.WORKING.stored, CompactionState.READY_FOR_CLEANING.stored)
    is_held = or_(*(_Q.CQ_STATE == state for state in held))
    given = select(func.coalesce(func.max(TXNS.c.TXN_ID), 0)).scalar_subquery()
    return (
        update(COMPACTION_QUEUE)
        .where(_Q.CQ_TXN_ID == _TXN_ID, is_held)
        .values(CQ_NEXT_TXN_ID=given, CQ_COMMIT_TIME=now)
    )


_FINISH = TimedSql(_finish)
# Each part sees the rows as they were before all of them. The caller holds the transaction's row,
# so nobody adds any meanwhile.
_COMMIT_AT_ONCE = FixedSql(
    forgetting(_COMMIT_ROW.add_cte(_FORGET_COMPONENT_ROWS.cte("components")))
)
_COMPLETE_AT_ONCE = FixedSql(
    forgetting(
        _COMMIT_ROW.add_cte(
            _COMPLETE_ROWS.cte("completed"), _FORGET_COMPONENT_ROWS.cte("components")
        )
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitOutcome:
    """What a commit did.

    ``refusal``: the transaction was **aborted**; the caller commits the database transaction and
    only then raises TxnAbortedError with this text (rolling back would leave it open); ``abort``
    is then set and says which event to log.
    ``is_event_due``: log COMMIT_TXN for ``txn_id``, then COMMIT_COMPACTION for each of
    ``compactions``. ``txn_id`` None: a replayed transaction that is not known any more.
    """

    txn_id: TxnId | None
    is_event_due: bool = False
    written: tuple[WrittenTable, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    refusal: str | None = None
    abort: AbortOutcome | None = None


def commit_txn(work: Work, request: CommitTxnRequest) -> CommitOutcome:
    """Commit a transaction; nothing if it is committed already.

    ``repl_last_id`` and ``key_value`` of the request are the catalog's, in the same database
    transaction. Raises NoSuchTxnError, TxnAbortedError.
    """
    connection = work.connection
    txn_id = request.txn_id
    is_replayed = request.type is TxnType.REPL_CREATED
    if is_replayed:
        target = target_txn(connection, request.repl_policy or "", request.txn_id)
        if target is None:
            return CommitOutcome(txn_id=None)
        txn_id = target
    is_at_once = is_postgresql(connection) and not is_replayed
    plain = PlainEnd(connection, [txn_id]) if is_at_once else None
    traces: _Traces | None = None
    if plain is not None:
        row = plain.rows.get(txn_id)
    elif is_sqlite(connection):
        row, traces = _row_and_traces(connection, txn_id)
    else:
        row = lock_txn(connection, txn_id)
    state = row.state if row else purged_state(connection, txn_id)
    if state is TxnState.COMMITTED:
        return CommitOutcome(txn_id=txn_id)
    if row is None or state is not TxnState.OPEN:
        raise ended_writer_error(connection, txn_id, state)
    if plain is not None and plain.is_done:
        outcome = _plain_outcomes(plain)[txn_id]
        return replace(outcome, is_event_due=outcome.is_event_due and not is_of_load(request))
    traces = traces or _traces(connection, txn_id)
    refusal = None
    if row.type in _QUEUED:
        refusal = _finish_compaction(work, txn_id)
    elif traces.has_changes and not (is_replayed or row.type is TxnType.READ_ONLY):
        refusal = _settle_changes(connection, request, txn_id)
    if refusal is not None:
        return _abort_instead(work, txn_id, row.type, refusal)
    return _end(connection, request, txn_id, row.type, traces)


def ask_commits(
    connection: Connection, txn_ids: Sequence[TxnId]
) -> Callable[[], Mapping[TxnId, CommitOutcome] | None] | None:
    """Commit several at once, as requests do that say no more than the id; None, and nothing is
    done, where each must be committed by itself. Nothing is locked when the outcomes are looked
    at."""
    # On SQLite a statement more is cheaper than one for several.
    if is_sqlite(connection) or len(set(txn_ids)) < len(txn_ids):
        return None
    plain = (PlainEnd if is_postgresql(connection) else SteppedEnd)(connection, txn_ids)
    return lambda: _plain_outcomes(plain) if plain.is_done else None


def expect_commits(
    connection: Connection, txn_ids: Sequence[TxnId], foresight: Foresight
) -> Mapping[TxnId, CommitOutcome] | None:
    """As :func:`ask_commits`, with the outcomes at once, if nothing is against them: else the
    statement fails, when it is done. None, and nothing is asked, where they are not known."""
    expected = foresight.writes_of(txn_ids) if len(set(txn_ids)) == len(txn_ids) else None
    if expected is None or not expect_ends(connection, txn_ids, expected):
        return None
    return {
        txn_id: CommitOutcome(
            txn_id=txn_id,
            is_event_due=writes.kind is not TxnType.READ_ONLY,
            written=tuple(
                WrittenTable(database_name=database, table_name=table, write_id=write_id)
                for database, table, write_id in writes.written
            ),
        )
        for txn_id, writes in zip(txn_ids, expected, strict=True)
    }


def _plain_outcomes(plain: PlainEnd | SteppedEnd) -> Mapping[TxnId, CommitOutcome]:
    written = plain.written
    return {
        txn_id: CommitOutcome(
            txn_id=txn_id,
            is_event_due=row.type is not TxnType.READ_ONLY,
            written=tuple(written.get(txn_id, ())),
        )
        for txn_id, row in plain.rows.items()
    }


@dataclass(frozen=True, slots=True)
class _Traces:
    """What an open transaction has left in the tables; most leave little."""

    has_components: bool
    has_changes: bool
    has_write_ids: bool
    tables: tuple[Table, ...]


def _row_and_traces(connection: Connection, txn_id: TxnId) -> tuple[TxnRow | None, _Traces | None]:
    """In one, where nobody else writes: on SQLite."""
    row = _ROW_AND_TRACES.first(connection, txn_id=txn_id)
    if row is None:
        return None, None
    state, kind, *traces = row
    return TxnRow.read(state, kind), _traces_of(traces)


def _traces(connection: Connection, txn_id: TxnId) -> _Traces:
    """The caller holds the transaction's row: what it writes, it writes under that lock."""
    (traces,) = _TRACES.all(connection, txn_id=txn_id)
    return _traces_of(traces)


def _traces_of(columns: Sequence[Any]) -> _Traces:
    components, changes, write_ids, *has_rows = columns
    tables = tuple(table for table, is_there in zip(OPEN_ONLY, has_rows, strict=True) if is_there)
    return _Traces(bool(components), bool(changes), bool(write_ids), tables)


def _end(
    connection: Connection,
    request: CommitTxnRequest,
    txn_id: TxnId,
    kind: TxnType,
    traces: _Traces,
) -> CommitOutcome:
    compactions: tuple[Compaction, ...] = ()
    is_replayed = request.type is TxnType.REPL_CREATED
    if is_replayed:
        _complete_replayed(connection, txn_id, request.write_events)
        forget_source_txn(connection, request.repl_policy or "", request.txn_id)
    elif kind in _QUEUED:
        rows = _FINISHED.all(connection, txn_id=txn_id)
        compactions = tuple(from_queue(queue_fields(row)) for row in rows)
    is_written = kind is not TxnType.READ_ONLY and not (kind.is_compaction or is_replayed)
    written = tables_written_by(connection, txn_id) if traces.has_write_ids else ()
    _forget(connection, txn_id, traces, is_written=is_written)
    return CommitOutcome(
        txn_id=txn_id,
        is_event_due=not (is_of_load(request) or kind is TxnType.READ_ONLY),
        written=written,
        compactions=compactions,
    )


def _finish_compaction(work: Work, txn_id: TxnId) -> str | None:
    """Write into the queue from when on nobody needs the inputs; a refusal if the entry was lost.

    Under the exclusive lock nobody opens a transaction meanwhile: whoever opens one later has an
    id above CQ_NEXT_TXN_ID and sees the output.
    """
    connection = work.connection
    lock_txns(connection, is_exclusive=True)
    if _FINISH.change(work, txn_id=txn_id):
        return None
    # A soft drop claims nothing.
    claimed = select(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION).where(
        _C.TC_TXNID == txn_id, _C.TC_OPERATION_TYPE == DataOperation.COMPACT.stored
    )
    lost = connection.execute(claimed.limit(1)).first()
    if lost is None or _is_refused(connection, txn_id):
        return None
    return (
        f"Aborting [txnid:{txn_id}]: its compaction of {_resource(*lost)} was taken from it; "
        "another worker does it, or it was ended"
    )


def _is_refused(connection: Connection, txn_id: TxnId) -> bool:
    """Whether the compaction of this transaction ended as not worth it."""
    mine = exists().where(_H.CC_TXN_ID == txn_id, _H.CC_STATE == CompactionState.REFUSED.stored)
    return bool(connection.execute(select(mine)).scalar())


def _settle_changes(connection: Connection, request: CommitTxnRequest, txn_id: TxnId) -> str | None:
    """The refusal of a transaction that updates or deletes, if that conflicts.

    Without a conflict, what it changed is put into WRITE_SET for those who commit later; but not
    whole databases, which only a lock says: rows of data are of tables.
    """
    mine = and_(_C.TC_TXNID == txn_id, _C.TC_OPERATION_TYPE.in_(CHANGING))
    # Before the openers' lock, for which everybody waits.
    _HOLD_COMPONENTS.later(connection, txn_id=txn_id)
    lock_txns(connection, is_exclusive=True)
    commit_id = high_watermark(connection)
    if not (request.is_exclusive_write_enabled and _holds_all(connection, txn_id, mine)):
        refusal = _conflict(connection, txn_id, commit_id, mine)
        if refusal is not None:
            return refusal
    changes = select(
        _C.TC_DATABASE,
        _C.TC_TABLE,
        _C.TC_PARTITION,
        _C.TC_TXNID,
        literal(commit_id),
        _C.TC_OPERATION_TYPE,
    ).where(mine, _C.TC_TABLE.is_not(None))
    connection.execute(
        insert(WRITE_SET).from_select([column.name for column in WRITE_SET.c], changes.distinct())
    )
    return None


def latest_txn_in_conflict(connection: Connection, txn_id: TxnId) -> TxnId | None:
    """The newest committed transaction that changed what this one is about to change.

    Hive: GetLatestTxnIdInConflictHandler. Its clients ask once they hold their locks, and take a
    new snapshot if theirs does not see that transaction.
    """
    newest = connection.execute(
        select(func.max(_S.WS_TXNID))
        .join_from(TXN_COMPONENTS, WRITE_SET, _SAME_RESOURCE)
        .where(
            _C.TC_TXNID == txn_id,
            _C.TC_OPERATION_TYPE.in_(CHANGING),
            _S.WS_TXNID != txn_id,
            _S.WS_OPERATION_TYPE.in_(CHANGING),
        )
    ).scalar()
    return None if newest is None else TxnId(newest)


def _holds_all(connection: Connection, txn_id: TxnId, mine: ColumnElement[bool]) -> bool:
    """Whether acquired locks of its own keep others from all that the transaction changed."""
    kept = exists().where(
        _L.HL_TXNID == txn_id,
        _L.HL_LOCK_STATE == LockState.ACQUIRED.stored,
        _L.HL_LOCK_TYPE.in_(_HELD_FROM_OTHERS),
        _L.HL_DB == _C.TC_DATABASE,
        or_(_L.HL_TABLE.is_(None), _L.HL_TABLE == _C.TC_TABLE),
        or_(_L.HL_PARTITION.is_(None), _L.HL_PARTITION == _C.TC_PARTITION),
    )
    return connection.execute(select(literal(1)).where(mine, ~kept).limit(1)).first() is None


def _conflict(
    connection: Connection, txn_id: TxnId, commit_id: TxnId, mine: ColumnElement[bool]
) -> str | None:
    """The refusal, if somebody who committed since this transaction began changed the same: whose
    commit id is not below its own id (docs/hive/transactions.md §9)."""
    row = connection.execute(
        select(
            _S.WS_TXNID,
            _S.WS_COMMIT_ID,
            _S.WS_OPERATION_TYPE,
            _C.TC_OPERATION_TYPE,
            _C.TC_DATABASE,
            _C.TC_TABLE,
            _C.TC_PARTITION,
        )
        .join_from(TXN_COMPONENTS, WRITE_SET, _SAME_RESOURCE)
        .where(
            mine,
            _S.WS_TXNID != txn_id,
            _S.WS_COMMIT_ID >= txn_id,
            _S.WS_OPERATION_TYPE.in_(CHANGING),
        )
        .limit(1)
    ).first()
    if row is None:
        return None
    other, other_commit, theirs, ours, *resource = row
    return (
        f"Aborting [txnid:{txn_id},{commit_id}] due to a write conflict on "
        f"{_resource(*resource)} committed by [txnid:{other},{other_commit}] {ours}/{theirs}"
    )


def _abort_instead(work: Work, txn_id: TxnId, kind: TxnType, refusal: str) -> CommitOutcome:
    reason = AbortReason.COMPACTION if kind.is_compaction else AbortReason.WRITE_CONFLICT
    abort = abort_open(work, {txn_id: kind}, reason=reason)
    return CommitOutcome(txn_id=txn_id, refusal=refusal, abort=abort)


def _forget(connection: Connection, txn_id: TxnId, traces: _Traces, *, is_written: bool) -> None:
    """End the transaction's row and drop all that only an open one needs; what it has written is
    remembered for the initiator."""
    values = {"txn_id": txn_id, "has_changes": "Y" if traces.has_changes else "N"}
    is_completed = is_written and traces.has_components
    if is_postgresql(connection):
        if is_completed:
            _COMPLETE_AT_ONCE.change(connection, **values)
        else:
            _COMMIT_AT_ONCE.change(connection, txn_id=txn_id)
        return
    if is_completed:
        _COMPLETE.change(connection, **values)
    if traces.has_components:
        _FORGET_COMPONENTS.change(connection, txn_id=txn_id)
    forget_open_one(connection, txn_id, traces.tables)
    _COMMIT.change(connection, txn_id=txn_id)


def _complete_replayed(
    connection: Connection, txn_id: TxnId, events: tuple[WriteEvent, ...]
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "CTC_TXNID": txn_id,
            "CTC_DATABASE": event.target.database.lower(),
            "CTC_TABLE": event.target.table.lower(),
            "CTC_PARTITION": event.target.partition,
            "CTC_WRITEID": event.write_id,
            "CTC_UPDATE_DELETE": "N",
        }
        for event in events
    ]
    insert_rows(connection, COMPLETED_TXN_COMPONENTS, rows)


def _resource(database: str, table: str | None, partition: str | None) -> str:
    return "/".join(part for part in (database, table, partition) if part)
