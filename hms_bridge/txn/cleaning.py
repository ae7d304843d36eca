"""What the initiator and the cleaner ask, and what the cleaner reports.

Nothing is handed to the cleaner that an open or future transaction may need:

* an entry only if its transaction committed, and every transaction that is open, or may still
  appear, and may read something of its database, began after that. ``next_txn_id`` is the highest
  id that was given by then, so open ids must be **above** it (Hive lets the one with that very id
  pass, which may read the inputs: docs/hive/compaction.md §15). Nor while its inputs may be read
  under a lock alone;
* aborted writes only below every open write of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from hms_bridge.backend.dialect import null_safe_equals
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import (
    LOCATION,
    NEVER_QUEUED,
    Compaction,
    CompactionState,
    CompactionType,
    PotentialCompaction,
    Readers,
)
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.target import TableName, Target
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.compaction_history import succeed
from hms_bridge.txn.compaction_queue import at_queue
from hms_bridge.txn.compaction_rows import from_queue, queue_row
from hms_bridge.txn.components import at_target, forget_aborted, is_aborted_before
from hms_bridge.txn.open_txns import min_open_txn_watermark
from hms_bridge.txn.readers import locked_without_txn, txns_elsewhere
from hms_bridge.txn.write_ids import get_max_allocated_write_id, of_table

FETCH_MAX = 1000
"""How many targets one query hands out (Hive's metastore.compactor.fetch.size)."""

_Q = COMPACTION_QUEUE.c
_C = TXN_COMPONENTS.c
_D = COMPLETED_TXN_COMPONENTS.c
_H = COMPLETED_COMPACTIONS.c
_READY = CompactionState.READY_FOR_CLEANING.stored
_CLEANUP = CompactionType.ABORT_TXN_CLEANUP.stored


def find_ready_to_clean(work: Work, retention_ms: int = 0) -> tuple[Compaction, ...]:
    """Compacted entries whose inputs nobody can need; of each target the one with the lowest
    highest_write_id, in the order of their ids.

    Not before ``retention_ms`` after the commit, nor before a postponed entry's wait is over, nor
    while somebody may read the inputs under a lock without a transaction.
    """
    now = work.now_ms
    not_committed = exists().where(
        TXNS.c.TXN_ID == _Q.CQ_TXN_ID, TXNS.c.TXN_STATE != TxnState.COMMITTED.value
    )
    rows = work.connection.execute(
        select(COMPACTION_QUEUE)
        .where(
            _Q.CQ_STATE == _READY,
            _Q.CQ_TYPE != _CLEANUP,
            _Q.CQ_NEXT_TXN_ID.is_not(None),
            ~not_committed,
            _is_waited(now, retention_ms),
        )
        .order_by(_Q.CQ_ID)
    ).mappings()
    entries = tuple(map(from_queue, rows))
    found = readers(work, entries)
    lowest: dict[Target, Compaction] = {}
    for entry in entries:
        watermark = found.watermarks[entry.target.database]
        if (entry.next_txn_id or 0) >= watermark or entry.id in found.locks:
            continue
        known = lowest.get(entry.target)
        if known is None or _height(entry) < _height(known):
            lowest[entry.target] = entry
    return tuple(sorted(lowest.values(), key=lambda entry: entry.id)[:FETCH_MAX])


def readers(work: Work, entries: Sequence[Compaction]) -> Readers:
    """Who may read the inputs of these entries."""
    connection = work.connection
    databases = sorted({entry.target.database for entry in entries})
    return Readers(
        watermarks={database: min_open_txn_watermark(work, database) for database in databases},
        elsewhere={database: txns_elsewhere(connection, database) for database in databases},
        locks=locked_without_txn(connection, entries),
    )


def find_ready_to_clean_aborts(work: Work) -> tuple[Compaction, ...]:
    """Targets with more aborted writes than aborted_txn_threshold, or with one that is older than
    aborted_txn_time_threshold_ms, as entries of type ABORT_TXN_CLEANUP.

    Id 0 unless the target was postponed before. ``highest_write_id`` is below every write id that
    an open transaction has taken of the table, and not above the last that was given; targets
    without an aborted write down there are left out.
    """
    connection = work.connection
    now = work.now_ms
    asked = work.settings.compactor
    found = _aborted_targets(work, asked.aborted_txn_threshold, asked.aborted_txn_time_threshold_ms)
    postponed = _postponed_cleanups(connection)
    heights: dict[TableName, WriteId] = {}
    entries: list[Compaction] = []
    for target, (has_too_many, has_old, lowest) in found.items():
        waiting = postponed.get(target)
        if waiting is not None and _waits_until(waiting) > now:
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
    return tuple(entries[:FETCH_MAX])


def mark_cleaning_started(work: Work, compaction_id: CompactionId) -> None:
    """Record the start; nothing for an entry that is not queued."""
    work.connection.execute(
        update(COMPACTION_QUEUE)
        .where(_Q.CQ_ID == compaction_id, _Q.CQ_STATE == _READY)
        .values(CQ_CLEANER_START=work.now_ms)
    )


def mark_cleaning_postponed(
    work: Work, compaction: Compaction, *, reason: str, retry_retention_ms: int
) -> None:
    """Keep the entry ready for cleaning with the reason; not again before the wait is over.

    The wait counts from now. A cleanup of aborts that has no entry yet gets one.
    """
    connection = work.connection
    now = work.now_ms
    changed = connection.execute(
        update(COMPACTION_QUEUE)
        .where(_Q.CQ_ID == compaction.id, _Q.CQ_STATE == _READY)
        .values(
            CQ_RETRY_RETENTION=retry_retention_ms, CQ_ERROR_MESSAGE=reason, CQ_CLEANER_START=now
        )
    ).rowcount
    if changed or compaction.type is not CompactionType.ABORT_TXN_CLEANUP:
        return
    connection.execute(
        insert(COMPACTION_QUEUE).values(
            CQ_ID=next_compaction_id(connection),
            CQ_DATABASE=compaction.target.database,
            CQ_TABLE=compaction.target.table,
            CQ_PARTITION=compaction.target.partition,
            CQ_STATE=_READY,
            CQ_TYPE=_CLEANUP,
            CQ_ENQUEUE_TIME=now,
            CQ_COMMIT_TIME=now,
            CQ_CLEANER_START=now,
            CQ_RETRY_RETENTION=retry_retention_ms,
            CQ_ERROR_MESSAGE=reason,
        )
    )


def mark_cleaned(work: Work, compaction: Compaction) -> None:
    """The target's obsolete and aborted files up to highest_write_id are gone.

    Forgets what was committed and aborted there up to highest_write_id, never beyond; the caller's
    may be lower than the queue's, down to 0, if files of some aborted write are left (they share a
    delta with committed ones). A cleanup of aborts leaves no history. Raises
    NoSuchCompactionError for an entry that is not queued.
    """
    connection = work.connection
    target = compaction.target
    connection.execute(
        delete(COMPACTION_QUEUE).where(
            at_queue(target), _Q.CQ_TYPE == _CLEANUP, _Q.CQ_STATE == _READY
        )
    )
    highest = compaction.highest_write_id
    if compaction.type is CompactionType.ABORT_TXN_CLEANUP:
        if highest is not None:
            before = _aborts_end_ms(work)
            forget_aborted(
                connection, at_target(target), before_ms=before, highest_write_id=highest
            )
        return
    ended = succeed(work, compaction.id)
    highest = ended.highest_write_id
    is_dropped = LOCATION in ended.properties
    completed = _at_completed(target, is_whole_table=is_dropped and target.partition is None)
    if highest is not None and not is_dropped:
        completed = and_(completed, or_(_D.CTC_WRITEID <= highest, _D.CTC_WRITEID.is_(None)))
    connection.execute(delete(COMPLETED_TXN_COMPONENTS).where(completed))
    if highest is not None:
        told = compaction.highest_write_id
        highest = highest if told is None else min(highest, told)
        components = at_target(target)
        if is_dropped and target.partition is None:
            components = and_(_C.TC_DATABASE == target.database, _C.TC_TABLE == target.table)
        before = work.now_ms if is_dropped else _aborts_end_ms(work)
        forget_aborted(connection, components, before_ms=before, highest_write_id=highest)


def retry_failed_cleanings(work: Work, after_ms: int) -> int:
    """Entries that failed in their cleaning so long ago are ready for cleaning again; how many.

    They were compacted and committed; those whose target was cleaned by a later one stay.
    """
    connection = work.connection
    now = work.now_ms
    rows = connection.execute(
        select(COMPLETED_COMPACTIONS)
        .where(
            _H.CC_STATE == CompactionState.FAILED.stored,
            _H.CC_NEXT_TXN_ID > 0,
            _H.CC_COMMIT_TIME > 0,
            _H.CC_END < now - after_ms,
        )
        .order_by(_H.CC_ID)
        .limit(FETCH_MAX)
        .with_for_update()
    ).mappings()
    count = 0
    for row in rows.all():
        later = COMPLETED_COMPACTIONS.alias()
        is_made_good = exists().where(
            later.c.CC_DATABASE == row["CC_DATABASE"],
            later.c.CC_TABLE == row["CC_TABLE"],
            null_safe_equals(later.c.CC_PARTITION, row["CC_PARTITION"]),
            later.c.CC_STATE == CompactionState.SUCCEEDED.stored,
            later.c.CC_ID > row["CC_ID"],
        )
        if connection.execute(select(is_made_good)).scalar():
            continue
        connection.execute(insert(COMPACTION_QUEUE).values(queue_row(row)))
        connection.execute(delete(COMPLETED_COMPACTIONS).where(_H.CC_ID == row["CC_ID"]))
        count += 1
    return count


def forget_aborted_components(
    work: Work, compaction: Compaction, write_ids: Sequence[WriteId]
) -> None:
    """Drop the rows of aborted write ids whose files are gone; others of the target stay, and so
    do those that aborted within the retention."""
    target = at_target(compaction.target)
    forget_aborted(work.connection, target, before_ms=_aborts_end_ms(work), write_ids=write_ids)


def find_potential_compactions(
    work: Work, aborted_threshold: int, aborted_time_threshold_ms: int
) -> tuple[PotentialCompaction, ...]:
    """Targets with committed writes since they were compacted last, or with too many or too old
    aborted ones (a negative time: never too old).

    All that were written to: a limit, as Hive has it, would hide the same ones each time.
    """
    connection = work.connection
    written = connection.execute(
        select(
            _D.CTC_DATABASE,
            _D.CTC_TABLE,
            _D.CTC_PARTITION,
            func.count(),
            func.max(_D.CTC_WRITEID),
        )
        .where(_D.CTC_TABLE.is_not(None))
        .group_by(_D.CTC_DATABASE, _D.CTC_TABLE, _D.CTC_PARTITION)
    )
    found = {
        Target(database, table, partition): PotentialCompaction(
            target=Target(database, table, partition),
            write_count=count,
            highest_write_id=highest,
        )
        for database, table, partition, count, highest in written
    }
    aborted = _aborted_targets(work, aborted_threshold, aborted_time_threshold_ms)
    for target, (has_too_many, has_old, _) in aborted.items():
        known = found.get(target) or PotentialCompaction(target=target)
        found[target] = replace(known, has_too_many_aborts=has_too_many, has_old_abort=has_old)
    return tuple(found.values())


def _aborts_end_ms(work: Work) -> int:
    """What aborted before this time may be forgotten: its writer knows of it, or is no more.

    Hive forgets at once (CompactionTxnHandler.markCleaned), and reads what a late writer brings.
    """
    return work.now_ms - work.settings.compactor.abort_retention_ms


def _aborted_targets(
    work: Work, threshold: int, time_threshold_ms: int
) -> dict[Target, tuple[bool, bool, int | None]]:
    """Targets over a threshold: too many, too old, lowest aborted write id (None if untold).

    Of those only that may be forgotten: what stays would be found again each time.
    """
    now = work.now_ms
    count, oldest = func.count(), func.min(TXNS.c.TXN_STARTED)
    is_over = count > threshold
    if time_threshold_ms >= 0:
        is_over = or_(is_over, oldest + time_threshold_ms < now)
    rows = work.connection.execute(
        select(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION, count, oldest, func.min(_C.TC_WRITEID))
        .join_from(TXN_COMPONENTS, TXNS, TXNS.c.TXN_ID == _C.TC_TXNID)
        .where(is_aborted_before(_aborts_end_ms(work)), _C.TC_TABLE.is_not(None))
        .group_by(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
        .having(is_over)
        .limit(FETCH_MAX)
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


def _is_waited(now: int, retention_ms: int) -> ColumnElement[bool]:
    return and_(
        or_(
            _Q.CQ_COMMIT_TIME.is_(None),
            _Q.CQ_COMMIT_TIME + _Q.CQ_RETRY_RETENTION + retention_ms <= now,
        ),
        or_(
            _Q.CQ_CLEANER_START.is_(None),
            _Q.CQ_CLEANER_START + _Q.CQ_RETRY_RETENTION <= now,
        ),
    )


def _waits_until(entry: Compaction) -> int:
    last_try = max(entry.committed_ms or 0, entry.cleaner_started_ms or 0)
    return last_try + entry.retry_retention_ms


def _height(entry: Compaction) -> tuple[int, int]:
    return (entry.highest_write_id or 0, entry.id)


def _at_completed(target: Target, *, is_whole_table: bool) -> ColumnElement[bool]:
    table = and_(_D.CTC_DATABASE == target.database, _D.CTC_TABLE == target.table)
    if is_whole_table:
        return table
    return and_(table, null_safe_equals(_D.CTC_PARTITION, target.partition))
