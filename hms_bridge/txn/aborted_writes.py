"""Aborted writes: whose directories are to be cleaned, and when their rows may be forgotten.

Nothing is cleaned but what lies below every open write of the table (Hive: AbortedTxnCleaner;
docs/hive/compaction.md §20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, func, or_, select

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import NEVER_QUEUED, Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import WriteId
from hms_bridge.model.target import TableName, Target
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.compaction_rows import FETCH_MAX, from_queue
from hms_bridge.txn.components import forget_aborted, is_aborted_before
from hms_bridge.txn.write_ids import get_max_allocated_write_id, of_table

_Q = COMPACTION_QUEUE.c
_C = TXN_COMPONENTS.c
_READY = CompactionState.READY_FOR_CLEANING.stored
_CLEANUP = CompactionType.ABORT_TXN_CLEANUP.stored


def find_ready_to_clean_aborts(
    work: Work, *, is_retried_now: bool = False
) -> tuple[Compaction, ...]:
    """Targets with more aborted writes than aborted_txn_threshold, or with one that is older than
    aborted_txn_time_threshold_ms, as entries of type ABORT_TXN_CLEANUP.

    Id 0 unless the target was postponed before. ``highest_write_id`` is below every write id that
    an open transaction has taken of the table, and not above the last that was given; targets
    without an aborted write down there are left out, and those that were postponed until their wait
    is over, unless ``is_retried_now``.
    """
    connection = work.connection
    now = work.now_ms
    asked = work.settings.compactor
    targets = aborted_targets(
        work, asked.aborted_txn_threshold, asked.aborted_txn_time_threshold_ms
    )
    postponed = _postponed_cleanups(connection)
    heights: dict[TableName, WriteId] = {}
    entries: list[Compaction] = []
    for target, (has_too_many, has_old, lowest) in targets.items():
        if len(entries) == FETCH_MAX:
            break
        waiting = postponed.get(target)
        if waiting is not None and not is_retried_now and _waits_until(waiting) > now:
            continue
        table = target.name
        if table not in heights:
            heights[table] = _below_open_writes(connection, table.database, table.table)
        if (lowest or 0) > heights[table]:
            continue
        entries.append(
            Compaction(
                id=waiting.id if waiting else NEVER_QUEUED,
                target=target,
                type=CompactionType.ABORT_TXN_CLEANUP,
                state=CompactionState.READY_FOR_CLEANING,
                highest_write_id=heights[table],
                retry_retention_ms=waiting.retry_retention_ms if waiting else 0,
                has_too_many_aborts=has_too_many,
                has_old_abort=has_old,
            )
        )
    return tuple(entries)


def forget_aborted_components(
    work: Work, compaction: Compaction, write_ids: Sequence[WriteId]
) -> None:
    """Drop the rows of aborted write ids whose files are gone; others of the target stay, and so
    do those that aborted within the retention."""
    before_ms = aborts_end_ms(work, work.now_ms)
    forget_aborted(work.connection, compaction.target, before_ms=before_ms, write_ids=write_ids)


def aborts_end_ms(work: Work, now_ms: int) -> int:
    """What aborted before this time may be forgotten: its writer knows of it, or is no more.

    Hive forgets at once (CompactionTxnHandler.markCleaned), and reads what a late writer brings.
    """
    return now_ms - work.settings.compactor.abort_retention_ms


def aborted_targets(
    work: Work, threshold: int, time_threshold_ms: int
) -> dict[Target, tuple[bool, bool, int | None]]:
    """Targets over a threshold: too many, too old, lowest aborted write id (None if untold).

    Of those only that may be forgotten: what stays would be found again each time. And all of
    them: a limit here would give out the same ones each time, though they have to wait.
    """
    now = work.now_ms
    count, oldest = func.count(), func.min(TXNS.c.TXN_STARTED)
    is_over = count > threshold
    if time_threshold_ms >= 0:
        is_over = or_(is_over, oldest + time_threshold_ms < now)
    rows = work.connection.execute(
        select(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION, count, oldest, func.min(_C.TC_WRITEID))
        .join_from(TXN_COMPONENTS, TXNS, TXNS.c.TXN_ID == _C.TC_TXNID)
        .where(is_aborted_before(aborts_end_ms(work, now)), _C.TC_TABLE.is_not(None))
        .group_by(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
        .having(is_over)
    )
    return {
        Target(database, table, partition): (
            total > threshold,
            time_threshold_ms >= 0 and started + time_threshold_ms < now,
            lowest,
        )
        for database, table, partition, total, started, lowest in rows
    }


def _below_open_writes(connection: Connection, database: str, table: str) -> WriteId:
    """The counter is read first: a write id that is taken meanwhile is above it."""
    given = get_max_allocated_write_id(connection, database, table)
    w = TXN_TO_WRITE_ID.c
    lowest_open = connection.execute(
        select(func.min(w.T2W_WRITEID))
        .join_from(TXN_TO_WRITE_ID, TXNS, TXNS.c.TXN_ID == w.T2W_TXNID)
        .where(of_table(database, table), TXNS.c.TXN_STATE == TxnState.OPEN.value)
    ).scalar()
    return given if lowest_open is None else WriteId(min(given, lowest_open - 1))


def _postponed_cleanups(connection: Connection) -> Mapping[Target, Compaction]:
    rows = connection.execute(
        select(COMPACTION_QUEUE).where(_Q.CQ_TYPE == _CLEANUP, _Q.CQ_STATE == _READY)
    ).mappings()
    return {entry.target: entry for entry in map(from_queue, rows)}


def _waits_until(entry: Compaction) -> int:
    last_try = max(entry.committed_ms or 0, entry.cleaner_started_ms or 0)
    return last_try + entry.retry_retention_ms
