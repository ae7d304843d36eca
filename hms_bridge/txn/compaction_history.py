"""The end of compactions, and what SHOW COMPACTIONS answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Table,
    bindparam,
    delete,
    insert,
    select,
)

from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, COMPLETED_COMPACTIONS
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import (
    AbortOutcome,
    Compaction,
    CompactionState,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.property_text import format_properties
from hms_bridge.txn.compaction_queue import is_lost
from hms_bridge.txn.compaction_rows import (
    HISTORY_COLUMNS,
    QUEUE_COLUMNS,
    STATES,
    ended_columns,
    from_history,
    from_queue,
    history_fields,
    queue_fields,
)

_Q = COMPACTION_QUEUE.c
_H = COMPLETED_COMPACTIONS.c
_ENTRY = bindparam("entry", type_=BigInteger)
_QUEUED_ONLY = frozenset(
    {CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING}
)


def _lock(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Select[Any]:
    return select(now, *QUEUE_COLUMNS).where(_Q.CQ_ID == _ENTRY).with_for_update()


_LOCK = TimedSql(_lock)
_FORGET_QUEUED = FixedSql(delete(COMPACTION_QUEUE).where(_Q.CQ_ID == _ENTRY))


@cache
def _keep_ended(*, is_success: bool, has_message: bool) -> FixedSql:
    """One statement: what a row of the queue has besides goes with it."""
    ended_ms = bindparam("ended_ms", type_=BigInteger)
    columns = ended_columns(ended_ms, is_success=is_success, has_message=has_message)
    ended = select(*columns.values()).where(_Q.CQ_ID == _ENTRY)
    return FixedSql(insert(COMPLETED_COMPACTIONS).from_select(list(columns), ended))


def mark_failed(work: Work, compaction: Compaction) -> Compaction | None:
    """Into the history with its error message; the entry, None if it is there already.

    Id 0 is one that the initiator did not queue: it gets an id, and counts as not initiated.
    Raises NoSuchCompactionError for an id that is not queued, or that another worker holds.
    """
    if compaction.id:
        return _end(work, compaction, CompactionState.FAILED)
    return _never_queued(work, compaction)


def mark_refused(work: Work, compaction: Compaction) -> Compaction | None:
    """Into the history as refused, with its error message; otherwise as :func:`mark_failed` of
    an id that is not 0."""
    return _end(work, compaction, CompactionState.REFUSED)


def abort_compactions(
    work: Work, ids: Sequence[CompactionId]
) -> tuple[Mapping[CompactionId, AbortOutcome], tuple[Compaction, ...]]:
    """Abort entries that nobody works on yet: what came of it for each id, in the words of Hive
    (AbortCompactionFunction); and those that were aborted. Raises NoSuchCompactionError for no ids.
    """
    connection = work.connection
    if not ids:
        raise NoSuchCompactionError("no compaction ids given; name the entries to abort")
    outcome: dict[CompactionId, AbortOutcome] = {}
    aborted = []
    for compaction_id in dict.fromkeys(ids):
        row = _lock_queued(work, compaction_id)
        state = row.entry.state if row else _state_it_ended_in(connection, compaction_id)
        outcome[compaction_id] = _abort_outcome(state)
        if row and outcome[compaction_id].is_aborted:
            message = "Compaction aborted by an Abort Compaction request."
            ended = CompactionState.ABORTED
            aborted.append(_move(connection, row, ended, message=message, has_message=True))
    return outcome, tuple(aborted)


def _abort_outcome(state: CompactionState | None) -> AbortOutcome:
    if state is None:
        return AbortOutcome(is_aborted=False, message="No Such Compaction Id Available")
    if state is CompactionState.INITIATED:
        return AbortOutcome(is_aborted=True, message="Successfully aborted compaction")
    reason = f"Error while aborting compaction as compaction is in state-{state.word}"
    return AbortOutcome(is_aborted=False, message=reason)


def succeed(work: Work, compaction_ids: Sequence[CompactionId]) -> list[Compaction]:
    """Move cleaned entries into the history. Raises NoSuchCompactionError if one is not queued."""
    # In the order of their ids: two that end several do not wait for each other.
    locks = {entry: _LOCK.later(work, entry=entry) for entry in sorted(compaction_ids)}
    queued = {entry: _locked(lock.rows) for entry, lock in locks.items()}
    ended = []
    for compaction_id in compaction_ids:
        row = queued[compaction_id]
        if row is None:
            raise _unknown(compaction_id)
        ended.append(_move(work.connection, row, CompactionState.SUCCEEDED))
    return ended


def fail_queued(work: Work, compaction_id: CompactionId, reason: str) -> Compaction | None:
    """Move an entry into the history as failed, whoever holds it; None if it is not queued."""
    row = _lock_queued(work, compaction_id)
    if row is None:
        return None
    failed = CompactionState.FAILED
    return _move(work.connection, row, failed, message=reason, has_message=True)


def show_compactions(
    connection: Connection, request: ShowCompactionsRequest | None = None
) -> tuple[Compaction, ...]:
    """Queue and history: what is not compacted yet, the oldest request first; then the rest, what
    happened last first."""
    (shown,) = show_each(connection, [request or ShowCompactionsRequest()])
    return shown


def show_each(
    connection: Connection, requests: Sequence[ShowCompactionsRequest]
) -> tuple[tuple[Compaction, ...], ...]:
    """Several at once."""
    answers = [(asked, *_ask_where_it_may_be(connection, asked)) for asked in requests]
    return tuple(_shown(*answer) for answer in answers)


def _ask_where_it_may_be(
    connection: Connection, asked: ShowCompactionsRequest
) -> tuple[Answer, Answer | None]:
    queued = _ask(connection, COMPACTION_QUEUE, "CQ_", asked)
    if asked.state in _QUEUED_ONLY:
        return queued, None
    return queued, _ask(connection, COMPLETED_COMPACTIONS, "CC_", asked)


def _shown(
    asked: ShowCompactionsRequest, queued: Answer, ended: Answer | None
) -> tuple[Compaction, ...]:
    entries = [from_queue(queue_fields(row)) for row in queued.rows]
    if ended is not None:
        entries += [from_history(history_fields(row)) for row in ended.rows]
    entries.sort(key=_recency)
    return tuple(entries[: asked.limit] if asked.limit and asked.limit > 0 else entries)


def _end(work: Work, compaction: Compaction, state: CompactionState) -> Compaction | None:
    connection = work.connection
    row = _lock_queued(work, compaction.id)
    if row is None:
        # Reported twice: the answer to the first time was lost.
        if _state_it_ended_in(connection, compaction.id) is state:
            return None
        raise _unknown(compaction.id)
    queued = row.entry
    is_ready = queued.state is CompactionState.READY_FOR_CLEANING
    if _is_done_by_another(queued, compaction) or (not is_ready and is_lost(queued, compaction)):
        raise NoSuchCompactionError(
            f"compaction {compaction.id} of {queued.target} is held by another worker "
            f"({queued.worker_id or 'none'}); leave it alone"
        )
    return _move(connection, row, state, message=compaction.error_message, has_message=True)


def _is_done_by_another(queued: Compaction, compaction: Compaction) -> bool:
    """Whether a worker speaks of an entry that another one has compacted meanwhile (I9).

    A cleaner speaks of an entry that is ready for cleaning, and may end it.
    """
    if queued.state is not CompactionState.READY_FOR_CLEANING:
        return False
    is_worker = compaction.state is CompactionState.WORKING
    is_other_txn = compaction.txn_id is not None and compaction.txn_id != queued.txn_id
    return is_worker and (is_other_txn or queued.next_txn_id is not None)


def _never_queued(work: Work, compaction: Compaction) -> Compaction:
    connection = work.connection
    now = work.now_ms
    entry = replace(
        compaction,
        id=next_compaction_id(connection),
        state=CompactionState.DID_NOT_INITIATE,
        enqueued_ms=compaction.enqueued_ms or now,
        started_ms=compaction.started_ms or now,
        ended_ms=now,
    )
    connection.execute(
        insert(COMPLETED_COMPACTIONS).values(
            CC_ID=entry.id,
            CC_DATABASE=entry.target.database,
            CC_TABLE=entry.target.table,
            CC_PARTITION=entry.target.partition,
            CC_STATE=entry.state.stored,
            CC_TYPE=entry.type.stored,
            CC_TBLPROPERTIES=format_properties(entry.properties) if entry.properties else None,
            CC_ENQUEUE_TIME=entry.enqueued_ms,
            CC_START=entry.started_ms,
            CC_END=entry.ended_ms,
            CC_RUN_AS=entry.run_as,
            CC_ERROR_MESSAGE=entry.error_message,
            CC_INITIATOR_ID=entry.initiator_id,
            CC_INITIATOR_VERSION=entry.initiator_version,
            CC_POOL_NAME=entry.pool_name,
        )
    )
    return entry


@dataclass(frozen=True, slots=True)
class _Locked:
    """An entry of the queue whose row is held, and when that was."""

    entry: Compaction
    now_ms: int


def _lock_queued(work: Work, compaction_id: CompactionId) -> _Locked | None:
    return _locked(_LOCK.all(work, entry=compaction_id))


def _locked(rows: Sequence[tuple[Any, ...]]) -> _Locked | None:
    return _Locked(from_queue(queue_fields(rows[0][1:])), int(rows[0][0])) if rows else None


def _move(
    connection: Connection,
    locked: _Locked,
    state: CompactionState,
    *,
    message: str | None = None,
    has_message: bool = False,
) -> Compaction:
    """From the queue into the history, with another error message if it ``has_message``."""
    entry, ended_ms = locked.entry, locked.now_ms
    is_success = state is CompactionState.SUCCEEDED
    values = {"entry": entry.id, "state": state.stored, "ended_ms": ended_ms}
    if has_message:
        values["message"] = message
    keep = _keep_ended(is_success=is_success, has_message=has_message)
    keep.later(connection, **values)
    _FORGET_QUEUED.later(connection, entry=entry.id)
    ended = replace(
        entry, state=state, ended_ms=ended_ms, cleaner_started_ms=None, retry_retention_ms=0
    )
    return replace(ended, error_message=message) if has_message else ended


def _state_it_ended_in(
    connection: Connection, compaction_id: CompactionId
) -> CompactionState | None:
    statement = select(_H.CC_STATE).where(_H.CC_ID == compaction_id)
    stored = connection.execute(statement).scalar_one_or_none()
    return None if stored is None else STATES.get(stored)


def _ask(
    connection: Connection, table: Table, prefix: str, asked: ShowCompactionsRequest
) -> Answer:
    wanted = {
        "ID": asked.id,
        "DATABASE": asked.scope.database and asked.scope.database.lower(),
        "TABLE": asked.scope.table and asked.scope.table.lower(),
        "PARTITION": asked.scope.partition,
        "POOL_NAME": asked.pool_name,
        "TYPE": asked.type and asked.type.stored,
        "STATE": asked.state and asked.state.stored,
    }
    given = {f"{prefix}{name}": value for name, value in wanted.items() if value is not None}
    return _listed(table, tuple(given)).read_later(connection, **given)


@cache
def _listed(table: Table, names: tuple[str, ...]) -> FixedSql:
    """Those with values in these columns."""
    columns = QUEUE_COLUMNS if table is COMPACTION_QUEUE else HISTORY_COLUMNS
    wanted = [table.c[name] == bindparam(name, type_=table.c[name].type) for name in names]
    return FixedSql(select(*columns).where(*wanted))


def _recency(entry: Compaction) -> tuple[int, int]:
    enqueued = entry.enqueued_ms or 0
    # Not compacted yet: above all that is, the oldest request first.
    if entry.ended_ms is None and entry.committed_ms is None:
        return (-(2**63), enqueued)
    latest = max(entry.ended_ms or 0, entry.started_ms or 0, entry.committed_ms or 0)
    return (-latest, enqueued)


def _unknown(compaction_id: CompactionId) -> NoSuchCompactionError:
    return NoSuchCompactionError(
        f"compaction {compaction_id} is not in the queue; see SHOW COMPACTIONS"
    )
