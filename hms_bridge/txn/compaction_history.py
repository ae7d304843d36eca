"""The end of compactions, and what SHOW COMPACTIONS answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, COMPLETED_COMPACTIONS
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.property_text import format_properties
from hms_bridge.model.target import Target
from hms_bridge.txn.compaction_queue import is_lost
from hms_bridge.txn.compaction_rows import from_history, from_queue, history_row

_Q = COMPACTION_QUEUE.c
_H = COMPLETED_COMPACTIONS.c

KEPT = {
    CompactionState.SUCCEEDED: 3,
    CompactionState.FAILED: 3,
    CompactionState.REFUSED: 3,
    CompactionState.DID_NOT_INITIATE: 2,
}
"""How many entries of a state the history keeps for one target (Hive:
PurgeCompactionHistoryFunction; docs/hive/compaction.md §24)."""

OVERTAKEN_AFTER_MS = 7 * 24 * 3_600_000
"""After it an unsuccessful entry goes if a later compaction succeeded in its place."""


def mark_failed(work: Work, compaction: Compaction) -> Compaction | None:
    """Into the history with its error message; the entry, None if it is there already.

    Id 0 is one that the initiator did not queue: it gets an id, and counts as not initiated.
    Raises NoSuchCompactionError for an id that is not queued, or that another worker holds.
    """
    if compaction.id:
        return _end(work, compaction, CompactionState.FAILED)
    return _never_queued(work, compaction)


def mark_refused(work: Work, compaction: Compaction) -> None:
    """Into the history as refused, with its error message; otherwise as :func:`mark_failed`."""
    _end(work, compaction, CompactionState.REFUSED)


def abort_compactions(work: Work, ids: Sequence[CompactionId]) -> Mapping[CompactionId, str]:
    """Abort entries that nobody works on yet.

    For each id: ``aborted``, ``busy`` (too late), ``ended`` (in the history) or ``unknown``.
    Raises NoSuchCompactionError for no ids.
    """
    connection = work.connection
    if not ids:
        raise NoSuchCompactionError("no compaction ids given; name the entries to abort")
    outcome: dict[CompactionId, str] = {}
    for compaction_id in dict.fromkeys(ids):
        row = _lock_queued(connection, compaction_id)
        if row is None:
            outcome[compaction_id] = "ended" if _is_ended(connection, compaction_id) else "unknown"
        elif row["CQ_STATE"] != CompactionState.INITIATED.stored:
            outcome[compaction_id] = "busy"
        else:
            _move(work, row, CompactionState.ABORTED, {})
            outcome[compaction_id] = "aborted"
    return outcome


def succeed(work: Work, compaction_id: CompactionId) -> Compaction:
    """Move a cleaned entry into the history. Raises NoSuchCompactionError if it is not queued."""
    row = _lock_queued(work.connection, compaction_id)
    if row is None:
        raise _unknown(compaction_id)
    return _move(work, row, CompactionState.SUCCEEDED, {})


def fail_queued(work: Work, compaction_id: CompactionId, reason: str) -> Compaction | None:
    """Move an entry into the history as failed, whoever holds it; None if it is not queued."""
    row = _lock_queued(work.connection, compaction_id)
    if row is None:
        return None
    return _move(work, row, CompactionState.FAILED, {"ERROR_MESSAGE": reason})


def show_compactions(
    connection: Connection, request: ShowCompactionsRequest | None = None
) -> tuple[Compaction, ...]:
    """Queue and history: what is not compacted yet, the oldest request first; then the rest, what
    happened last first."""
    asked = request or ShowCompactionsRequest()
    entries = [
        *(from_queue(row) for row in _matching(connection, COMPACTION_QUEUE, "CQ_", asked)),
        *(from_history(row) for row in _matching(connection, COMPLETED_COMPACTIONS, "CC_", asked)),
    ]
    entries.sort(key=_recency)
    return tuple(entries[: asked.limit] if asked.limit and asked.limit > 0 else entries)


def purge_history(work: Work) -> int:
    """Drop what :func:`overtaken` names; how many."""
    connection = work.connection
    rows = connection.execute(select(COMPLETED_COMPACTIONS)).mappings()
    ids = overtaken((from_history(row) for row in rows), work.now_ms)
    for batch in batches(ids):
        connection.execute(delete(COMPLETED_COMPACTIONS).where(_H.CC_ID.in_(batch)))
    return len(ids)


def overtaken(history: Iterable[Compaction], now: int) -> tuple[CompactionId, ...]:
    """Entries that the history need not keep: beyond :data:`KEPT`, and unsuccessful ones that are
    old and were made good by a later major, or a minor by a later minor."""
    dropped: list[CompactionId] = []
    counts: dict[tuple[Target, CompactionState], int] = {}
    succeeded: dict[Target, set[CompactionType]] = {}
    # The newest first: so `made_good` holds what came after an entry.
    for entry in sorted(history, key=lambda compaction: compaction.id, reverse=True):
        made_good = succeeded.setdefault(entry.target, set())
        if entry.state is CompactionState.SUCCEEDED:
            made_good.add(entry.type)
        if entry.state not in KEPT:
            continue
        counted = (entry.target, entry.state)
        counts[counted] = counts.get(counted, 0) + 1
        is_old = (entry.enqueued_ms or entry.ended_ms or 0) < now - OVERTAKEN_AFTER_MS
        is_made_good = CompactionType.MAJOR in made_good or (
            entry.type is CompactionType.MINOR and CompactionType.MINOR in made_good
        )
        is_useless = entry.state is not CompactionState.SUCCEEDED and is_old and is_made_good
        if counts[counted] > KEPT[entry.state] or is_useless:
            dropped.append(entry.id)
    return tuple(dropped)


def _end(work: Work, compaction: Compaction, state: CompactionState) -> Compaction | None:
    connection = work.connection
    row = _lock_queued(connection, compaction.id)
    if row is None:
        # Reported twice: the answer to the first time was lost.
        if _is_ended(connection, compaction.id, state):
            return None
        raise _unknown(compaction.id)
    queued = from_queue(row)
    is_ready = queued.state is CompactionState.READY_FOR_CLEANING
    if _is_done_by_another(queued, compaction) or (not is_ready and is_lost(queued, compaction)):
        raise NoSuchCompactionError(
            f"compaction {compaction.id} of {queued.target} is held by another worker "
            f"({queued.worker_id or 'none'}); leave it alone"
        )
    return _move(work, row, state, {"ERROR_MESSAGE": compaction.error_message})


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


def _lock_queued(connection: Connection, compaction_id: CompactionId) -> Mapping[Any, Any] | None:
    return (
        connection.execute(
            select(COMPACTION_QUEUE).where(_Q.CQ_ID == compaction_id).with_for_update()
        )
        .mappings()
        .first()
    )


def _move(
    work: Work, row: Mapping[Any, Any], state: CompactionState, changes: Mapping[str, Any]
) -> Compaction:
    connection = work.connection
    ended = history_row(row, state, work.now_ms, **changes)
    connection.execute(insert(COMPLETED_COMPACTIONS).values(ended))
    connection.execute(delete(COMPACTION_QUEUE).where(_Q.CQ_ID == row["CQ_ID"]))
    return from_history(ended)


def _is_ended(
    connection: Connection, compaction_id: CompactionId, state: CompactionState | None = None
) -> bool:
    statement = select(_H.CC_ID).where(_H.CC_ID == compaction_id)
    if state is not None:
        statement = statement.where(_H.CC_STATE == state.stored)
    return connection.execute(statement).first() is not None


def _matching(
    connection: Connection, table: Table, prefix: str, asked: ShowCompactionsRequest
) -> Iterable[Mapping[Any, Any]]:
    wanted = {
        "ID": asked.id,
        "DATABASE": asked.scope.database and asked.scope.database.lower(),
        "TABLE": asked.scope.table and asked.scope.table.lower(),
        "PARTITION": asked.scope.partition,
        "POOL_NAME": asked.pool_name,
        "TYPE": asked.type and asked.type.stored,
        "STATE": asked.state and asked.state.stored,
    }
    conditions = [
        table.c[f"{prefix}{name}"] == value for name, value in wanted.items() if value is not None
    ]
    return connection.execute(select(table).where(*conditions)).mappings()


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
