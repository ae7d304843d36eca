"""The compaction queue: request, claim, work, ready for cleaning (Hive: CompactFunction,
NextCompactionFunction; docs/hive/compaction.md §1, §2 and §3).

A claim is a lease: an entry in state working belongs to the worker that CQ_WORKER_ID names, until
it is marked, given back because that worker's transaction has ended, or revoked because it was
started too long ago. What a worker reports about an entry that is not its own any more is refused;
so is the commit of its transaction (:mod:`commit`). Workers of a real Hive do not send their id; of
them only the state of the entry is checked.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    Update,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from hms_bridge.backend.dialect import is_sqlite, null_safe_equals
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, MOVE
from hms_bridge.backend.schema.catalog_tables import DBS, TABLE_PARAMS, TBLS
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, TXNS
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.compaction import (
    DONE_HERE,
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.properties import INSERT_ONLY, TRANSACTIONAL_PROPERTIES
from hms_bridge.model.property_text import format_properties
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.compaction_rows import QUEUE_COLUMNS, from_queue, is_readable, queue_fields
from hms_bridge.txn.components import note_compaction
from hms_bridge.txn.mutex import Mutex, hold
from hms_bridge.txn.names import lower_target, require_entry_fits, require_texts_fit
from hms_bridge.txn.txn_state import LockedTxns
from hms_bridge.txn.valid_write_ids import get_valid_write_ids

_Q = COMPACTION_QUEUE.c
_T = HMSB_FILE_TASK.c

WORKER_POOL_TIMEOUT_MS = 12 * 3_600_000
"""After it an entry of a named pool may be taken by workers without one."""

GIVEN_BACK = "given back"
"""Begins the error message of an entry whose worker died; it stays until a worker ends it."""

_GIVEN_BACK: dict[str, Any] = {
    "CQ_STATE": CompactionState.INITIATED.stored,
    "CQ_WORKER_ID": None,
    "CQ_START": None,
    "CQ_TXN_ID": None,
}
_CANDIDATES_MAX = 50

_CANDIDATE_COLUMNS = (_Q.CQ_ID, _Q.CQ_STATE, _Q.CQ_TYPE, _Q.CQ_TBLPROPERTIES)
_CANDIDATE_NAMES = tuple(column.name for column in _CANDIDATE_COLUMNS)
_ENTRY = bindparam("entry", type_=BigInteger)
_IS_MOVING = exists().where(
    _T.KIND == MOVE, _T.DB_NAME == _Q.CQ_DATABASE, _T.TBL_NAME == _Q.CQ_TABLE
)
_INITIATED = and_(_Q.CQ_STATE == CompactionState.INITIATED.stored, ~_IS_MOVING)
_QUEUED = FixedSql(select(*QUEUE_COLUMNS).where(_Q.CQ_ID == _ENTRY))
_SET_JOB = FixedSql(
    update(COMPACTION_QUEUE)
    .where(_Q.CQ_ID == _ENTRY)
    .values(CQ_HADOOP_JOB_ID=bindparam("job_id", type_=String))
)


_IS_INSERT_ONLY = exists().where(
    DBS.c.CTLG_NAME == DEFAULT_CATALOG,
    DBS.c.NAME == _Q.CQ_DATABASE,
    TBLS.c.DB_ID == DBS.c.DB_ID,
    TBLS.c.TBL_NAME == _Q.CQ_TABLE,
    TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID,
    TABLE_PARAMS.c.PARAM_KEY == TRANSACTIONAL_PROPERTIES,
    func.lower(TABLE_PARAMS.c.PARAM_VALUE) == INSERT_ONLY,
)
_IS_DONE_HERE = and_(
    or_(*(_Q.CQ_TYPE == kind.stored for kind in CompactionType if kind in DONE_HERE)),
    ~_IS_INSERT_ONLY,
)


def _of_no_pool(
    now: ColumnElement[int], _row_time: ColumnElement[int], *wanted: ColumnElement[bool]
) -> Select[Any]:
    pool = or_(_Q.CQ_POOL_NAME.is_(None), _Q.CQ_ENQUEUE_TIME < now - WORKER_POOL_TIMEOUT_MS)
    return _first_of(pool, *wanted)


def _first_of(*wanted: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*_CANDIDATE_COLUMNS)
        .where(_INITIATED, *wanted, _Q.CQ_ID > bindparam("after", type_=BigInteger))
        .order_by(_Q.CQ_ID)
        .limit(literal(_CANDIDATES_MAX))
    )


def _claim(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    return (
        update(COMPACTION_QUEUE)
        .where(_Q.CQ_ID == _ENTRY, _INITIATED)
        .values(
            CQ_STATE=CompactionState.WORKING.stored,
            CQ_WORKER_ID=bindparam("worker_id", type_=String),
            CQ_WORKER_VERSION=bindparam("worker_version", type_=String),
            CQ_START=now,
            CQ_HIGHEST_WRITE_ID=None,
            CQ_TXN_ID=None,
            CQ_NEXT_TXN_ID=None,
            CQ_COMMIT_TIME=None,
            CQ_HADOOP_JOB_ID=None,
        )
    )


_IS_OF_POOL = _Q.CQ_POOL_NAME == bindparam("pool_name", type_=String)
_CLAIM = TimedSql(_claim)
# By whether the worker is selective.
_OF_NO_POOL = {
    False: TimedSql(_of_no_pool),
    True: TimedSql(lambda now, row_time: _of_no_pool(now, row_time, _IS_DONE_HERE)),
}
_OF_POOL = {
    False: FixedSql(_first_of(_IS_OF_POOL)),
    True: FixedSql(_first_of(_IS_OF_POOL, _IS_DONE_HERE)),
}


def enqueue(work: Work, request: CompactionRequest) -> CompactionResponse:
    """Put a request into the queue, unless the same target is there already.

    There means initiated, being worked at, or compacted up to the same write id and not cleaned.
    Raises MetaError for texts that do not fit.
    """
    connection = work.connection
    hold(connection, Mutex.COMPACTION_SCHEDULER)
    target = lower_target(request.target)
    properties = format_properties(request.properties) if request.properties else None
    require_entry_fits(target, request.run_as, properties)
    require_texts_fit(
        ("initiatorId", request.initiator_id, _Q.CQ_INITIATOR_ID),
        ("initiatorVersion", request.initiator_version, _Q.CQ_INITIATOR_VERSION),
        ("poolName", request.pool_name, _Q.CQ_POOL_NAME),
        ("orderByClause", request.order_by, _Q.CQ_ORDER_BY),
    )
    known = _scheduled(work, target)
    if known is not None:
        return _refused(known)
    compaction_id = next_compaction_id(connection)
    # Hive lets the mutex go before it commits what it has queued, but not the counter.
    if not is_sqlite(connection):
        known = _scheduled(work, target)
        if known is not None:
            return _refused(known)
    connection.execute(
        insert(COMPACTION_QUEUE).values(
            CQ_ID=compaction_id,
            CQ_DATABASE=target.database,
            CQ_TABLE=target.table,
            CQ_PARTITION=target.partition,
            CQ_STATE=CompactionState.INITIATED.stored,
            CQ_TYPE=request.type.stored,
            CQ_TBLPROPERTIES=properties,
            CQ_ENQUEUE_TIME=work.now_ms,
            CQ_RUN_AS=request.run_as,
            CQ_INITIATOR_ID=request.initiator_id,
            CQ_INITIATOR_VERSION=request.initiator_version,
            CQ_POOL_NAME=request.pool_name or None,
            CQ_NUMBER_OF_BUCKETS=request.bucket_count,
            CQ_ORDER_BY=request.order_by,
        )
    )
    return CompactionResponse(
        id=compaction_id, is_accepted=True, state=CompactionState.INITIATED.word
    )


def _refused(known: Compaction) -> CompactionResponse:
    return CompactionResponse(
        id=None,
        is_accepted=False,
        state=CompactionState.REFUSED.word,
        error_message=(
            f"Compaction is already scheduled with state='{known.state.word}' and id={known.id}"
        ),
    )


def find_next_compaction(
    work: Work,
    worker_id: str,
    worker_version: str | None,
    pool_name: str | None = None,
    *,
    is_selective: bool = False,
) -> Compaction | None:
    """Claim the oldest initiated entry of the pool; None if there is none. A selective worker
    passes over what hms-bridge does not do.

    The claim is one conditional update, so no two workers get the same. Nobody gets an entry of a
    table of which a directory is being moved: it may look empty; nor one that cannot be read here.
    Raises MetaError for texts that do not fit.
    """
    connection = work.connection
    require_texts_fit(
        ("workerId", worker_id, _Q.CQ_WORKER_ID),
        ("workerVersion", worker_version, _Q.CQ_WORKER_VERSION),
    )
    after = 0
    while True:
        if pool_name:
            candidates = _OF_POOL[is_selective].all(connection, pool_name=pool_name, after=after)
        else:
            candidates = _OF_NO_POOL[is_selective].all(work, after=after)
        for row in candidates:
            candidate = row[0]
            if not is_readable(dict(zip(_CANDIDATE_NAMES, row, strict=True))):
                after = candidate
                continue
            claimed = _CLAIM.later(
                work, entry=candidate, worker_id=worker_id, worker_version=worker_version
            )
            queued = _QUEUED.later(connection, entry=candidate)
            if claimed.count == 1:
                return _first(queued)
        if not candidates:
            return None


def get_queued(connection: Connection, compaction_id: CompactionId) -> Compaction | None:
    """An entry of the queue; None if it is not there."""
    return _first(_QUEUED.later(connection, entry=compaction_id))


def _first(answer: Answer) -> Compaction | None:
    rows = answer.rows
    return from_queue(queue_fields(rows[0])) if rows else None


def update_compactor_state(connection: Connection, compaction: Compaction, txn_id: TxnId) -> None:
    """Record run_as, highest_write_id and the worker's transaction with a claimed entry.

    The transaction gets a TXN_COMPONENTS row, so that an aborted compaction is remembered until
    its output is gone. Raises NoSuchCompactionError if the entry is not this worker's any more,
    NoSuchTxnError and TxnAbortedError for the transaction, MetaError for texts that do not fit.
    """
    require_entry_fits(compaction.target, compaction.run_as)
    locked = LockedTxns(connection, [txn_id])
    highest = compaction.highest_write_id or WriteId(0)
    claim = _claim_of(compaction)
    changed = _started(tuple(claim)).later(
        connection, highest=highest, run_as=compaction.run_as, own_txn=txn_id, **claim
    )
    locked.require_open(txn_id)
    if changed.count != 1:
        raise _lost(compaction)
    note_compaction(connection, txn_id, compaction.target, highest)


def set_hadoop_job_id(connection: Connection, job_id: str, compaction_id: CompactionId) -> None:
    """Record which job does the work; nothing for an entry that is gone."""
    _SET_JOB.later(connection, entry=compaction_id, job_id=job_id[:32])


def mark_compacted(connection: Connection, compaction: Compaction) -> None:
    """From working to ready for cleaning. Again for the same transaction: nothing.

    Raises NoSuchCompactionError if the entry is not this worker's any more (I9).
    """
    claim = _claim_of(compaction)
    if _compacted(tuple(claim)).change(connection, **claim) == 1:
        return
    queued = get_queued(connection, compaction.id)
    is_repeat = (
        queued is not None
        and queued.state is CompactionState.READY_FOR_CLEANING
        and queued.txn_id is not None
        and queued.txn_id == compaction.txn_id
    )
    if not is_repeat:
        raise _lost(compaction)


def revoke_timed_out_workers(work: Work, timeout_ms: int) -> int:
    """Give entries whose workers started too long ago back to the queue; how many.

    The worker's transaction may still run; it cannot commit its compaction any more.
    """
    started_before = work.now_ms - timeout_ms
    return work.connection.execute(
        update(COMPACTION_QUEUE)
        .where(_Q.CQ_STATE == CompactionState.WORKING.stored, _Q.CQ_START < started_before)
        .values(_GIVEN_BACK)
    ).rowcount


def abandoned(work: Work) -> tuple[Compaction, ...]:
    """Entries whose worker can publish nothing any more: its transaction has ended, or it has not
    named one in hive.txn.timeout, although it does so as soon as it has the entry. Who took one at
    a time that is yet to come went by a clock that has been set back since.

    Hive gives entries back by worker time alone (revokeTimedoutWorkers, 24 h by default), or when
    the metastore of the worker's host starts anew (revokeFromLocalWorkers).
    """
    timeout_ms = work.settings.txn.timeout_ms
    is_recent = _Q.CQ_START.between(work.now_ms - timeout_ms, work.now_ms + timeout_ms)
    is_open = exists().where(TXNS.c.TXN_ID == _Q.CQ_TXN_ID, TXNS.c.TXN_STATE == TxnState.OPEN.value)
    rows = work.connection.execute(
        select(COMPACTION_QUEUE)
        .where(
            _Q.CQ_STATE == CompactionState.WORKING.stored,
            or_(
                and_(_Q.CQ_TXN_ID > 0, ~is_open),
                and_(func.coalesce(_Q.CQ_TXN_ID, 0) == 0, ~is_recent),
            ),
        )
        .order_by(_Q.CQ_ID)
    ).mappings()
    return tuple(from_queue(row) for row in rows)


def give_back(connection: Connection, compaction: Compaction, reason: str) -> bool:
    """From working to initiated, with the reason; False if a worker has done something since."""
    changed = connection.execute(
        update(COMPACTION_QUEUE)
        .where(
            _Q.CQ_ID == compaction.id,
            _Q.CQ_STATE == CompactionState.WORKING.stored,
            null_safe_equals(_Q.CQ_TXN_ID, compaction.txn_id),
            null_safe_equals(_Q.CQ_WORKER_ID, compaction.worker_id),
        )
        .values(_GIVEN_BACK | {"CQ_ERROR_MESSAGE": f"{GIVEN_BACK}: {reason}"})
    )
    return changed.rowcount == 1


def give_back_table(connection: Connection, database: str, table: str, reason: str) -> int:
    """Whatever is worked at in a table, from working to initiated; how many entries.

    Who looked into its directories publishes nothing."""
    changed = connection.execute(
        update(COMPACTION_QUEUE)
        .where(
            _Q.CQ_DATABASE == database,
            _Q.CQ_TABLE == table,
            _Q.CQ_STATE == CompactionState.WORKING.stored,
        )
        .values(_GIVEN_BACK | {"CQ_ERROR_MESSAGE": f"{GIVEN_BACK}: {reason}"})
    )
    return changed.rowcount


def is_lost(row: Compaction, claim: Compaction) -> bool:
    """Whether the queue's entry is not (any more) the one that a worker speaks of.

    Only what the worker sends is compared: those of a real Hive send neither id nor time.
    """
    pairs = (
        (claim.worker_id, row.worker_id),
        (claim.started_ms or None, row.started_ms),
        (claim.txn_id, row.txn_id if row.txn_id is not None else claim.txn_id),
    )
    return any(mine is not None and mine != theirs for mine, theirs in pairs)


def at_queue(target: Target) -> ColumnElement[bool]:
    """Entries of exactly one table or partition."""
    return and_(
        _Q.CQ_DATABASE == target.database,
        _Q.CQ_TABLE == target.table,
        null_safe_equals(_Q.CQ_PARTITION, target.partition),
    )


def _claim_of(compaction: Compaction) -> dict[str, Any]:
    """What a worker says of its claim; only what it sends is compared (see :func:`is_lost`)."""
    said = {
        "worker_id": compaction.worker_id,
        "started_ms": compaction.started_ms or None,
        "txn_id": compaction.txn_id,
    }
    return {"entry": compaction.id} | {
        name: value for name, value in said.items() if value is not None
    }


@cache
def _started(said: tuple[str, ...]) -> FixedSql:
    return FixedSql(
        update(COMPACTION_QUEUE)
        .where(_leased(said))
        .values(
            CQ_HIGHEST_WRITE_ID=bindparam("highest", type_=BigInteger),
            CQ_RUN_AS=bindparam("run_as", type_=String),
            CQ_TXN_ID=bindparam("own_txn", type_=BigInteger),
        )
    )


@cache
def _compacted(said: tuple[str, ...]) -> FixedSql:
    return FixedSql(
        update(COMPACTION_QUEUE)
        .where(_leased(said))
        .values(
            CQ_STATE=CompactionState.READY_FOR_CLEANING.stored,
            CQ_WORKER_ID=None,
            CQ_ERROR_MESSAGE=None,
        )
    )


def _leased(said: tuple[str, ...]) -> ColumnElement[bool]:
    """The entry in state working, held by the worker that is speaking."""
    txn_id = bindparam("txn_id", type_=BigInteger)
    parts = {
        "entry": _Q.CQ_ID == _ENTRY,
        "worker_id": _Q.CQ_WORKER_ID == bindparam("worker_id", type_=String),
        "started_ms": _Q.CQ_START == bindparam("started_ms", type_=BigInteger),
        "txn_id": or_(_Q.CQ_TXN_ID.is_(None), _Q.CQ_TXN_ID == txn_id),
    }
    is_working = _Q.CQ_STATE == CompactionState.WORKING.stored
    return and_(is_working, *(parts[name] for name in said))


def _lost(compaction: Compaction) -> NoSuchCompactionError:
    return NoSuchCompactionError(
        f"compaction {compaction.id} of {compaction.target} is not this worker's (any more): it "
        "was revoked, ended or never claimed; abort its transaction and publish nothing"
    )


def _scheduled(work: Work, target: Target) -> Compaction | None:
    """The entry that makes another one of the same target needless."""
    states = (
        CompactionState.INITIATED.stored,
        CompactionState.WORKING.stored,
        CompactionState.READY_FOR_CLEANING.stored,
    )
    rows = work.connection.execute(
        select(COMPACTION_QUEUE)
        .where(
            at_queue(target),
            _Q.CQ_STATE.in_(states),
        )
        .order_by(_Q.CQ_ID)
    ).mappings()
    entries = [from_queue(row) for row in rows]
    for entry in entries:
        if entry.state is not CompactionState.READY_FOR_CLEANING:
            return entry
    if not entries:
        return None
    (write_ids,) = get_valid_write_ids(work, [str(target.name)])
    compacted = write_ids.compactor_view().high_watermark
    return next((entry for entry in entries if entry.highest_write_id == compacted), None)
