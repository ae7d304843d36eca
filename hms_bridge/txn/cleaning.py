"""Compacted entries whose inputs the cleaner may take, and what it reports of them.

Nothing is handed to it that an open or future transaction may need: an entry only if its
transaction committed, and every transaction that is open, or may still appear, and may read
something of its database, began after that. ``next_txn_id`` is the highest id that was given by
then, so open ids must be **above** it (Hive lets the one with that very id pass, which may read
the inputs: docs/hive/compaction.md §15). Nor while its inputs may be read under a lock alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)

from hms_bridge.backend.dialect import null_safe_equals
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXNS,
)
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import (
    LOCATION,
    Compaction,
    CompactionState,
    CompactionType,
    Readers,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.aborted_writes import aborts_end_ms
from hms_bridge.txn.compaction_history import succeed
from hms_bridge.txn.compaction_rows import FETCH_MAX, from_queue, is_readable, queue_row
from hms_bridge.txn.components import forget_aborted_up_to
from hms_bridge.txn.named_target import is_named, values_of
from hms_bridge.txn.open_txns import min_open_txn_watermark
from hms_bridge.txn.readers import locked_without_txn, txns_elsewhere

_Q = COMPACTION_QUEUE.c
_D = COMPLETED_TXN_COMPONENTS.c
_H = COMPLETED_COMPACTIONS.c
_READY = CompactionState.READY_FOR_CLEANING.stored
_CLEANUP = CompactionType.ABORT_TXN_CLEANUP.stored


def _start(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    entry = bindparam("entry", type_=BigInteger)
    is_ready = and_(_Q.CQ_ID == entry, _Q.CQ_STATE == _READY)
    return update(COMPACTION_QUEUE).where(is_ready).values(CQ_CLEANER_START=now)


_START = TimedSql(_start)


def find_ready_to_clean(
    work: Work, retention_ms: int = 0, *, is_retried_now: bool = False
) -> tuple[Compaction, ...]:
    """Compacted entries whose inputs nobody can need; of each target the one with the lowest
    highest_write_id, in the order of their ids.

    Not before ``retention_ms`` after the commit, nor before a postponed entry's wait is over
    (unless ``is_retried_now``), nor while somebody may read the inputs under a lock without a
    transaction. Among them are the directories of tables that were never made, once their
    transaction is not open any more.
    """
    now = work.now_ms
    of_txn = exists().where(TXNS.c.TXN_ID == _Q.CQ_TXN_ID)
    is_committed = and_(
        _Q.CQ_NEXT_TXN_ID.is_not(None), ~of_txn.where(TXNS.c.TXN_STATE != TxnState.COMMITTED.value)
    )
    is_never_begun = and_(
        _Q.CQ_START.is_(None), _Q.CQ_WORKER_ID.is_(None), _Q.CQ_NEXT_TXN_ID.is_(None)
    )
    is_rolled_back = and_(is_never_begun, ~of_txn.where(TXNS.c.TXN_STATE != TxnState.ABORTED.value))
    rows = work.connection.execute(
        select(COMPACTION_QUEUE)
        .where(
            _Q.CQ_STATE == _READY,
            _Q.CQ_TYPE != _CLEANUP,
            or_(is_committed, is_rolled_back),
            _is_committed_for(now, retention_ms)
            if is_retried_now
            else _is_waited(now, retention_ms),
        )
        .order_by(_Q.CQ_ID)
    ).mappings()
    # Of those without a worker and a commit, only what names a directory is known to mean this.
    entries = tuple(
        entry
        for entry in map(from_queue, filter(is_readable, rows))
        if entry.is_never_created or entry.next_txn_id or entry.worker_id or entry.started_ms
    )
    current = readers(work, entries)
    lowest: dict[Target, Compaction] = {}
    for entry in entries:
        watermark = current.watermarks[entry.target.database]
        if (entry.next_txn_id or 0) >= watermark or entry.id in current.locks:
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


def mark_cleanings_started(work: Work, compaction_ids: Sequence[CompactionId]) -> None:
    """Record the start; nothing for an entry that is not queued."""
    for compaction_id in sorted(compaction_ids):
        _START.later(work, entry=compaction_id)


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


def mark_all_cleaned(work: Work, compactions: Sequence[Compaction]) -> None:
    """The targets' obsolete and aborted files up to highest_write_id are gone.

    Forgets what was committed and aborted there up to highest_write_id, never beyond; the caller's
    may be lower than the queue's, down to 0, if files of some aborted write are left (they share a
    delta with committed ones). A cleanup of aborts leaves no history. With the directory of a table
    that was never made nothing is forgotten: a table of that name may be there by now, and aborts
    have a clean-up of their own. Raises NoSuchCompactionError for an entry that is not queued.
    """
    connection = work.connection
    queued = []
    for compaction in sorted(compactions, key=lambda entry: entry.id):
        target, highest = compaction.target, compaction.highest_write_id
        has_partition = target.partition is not None
        _forget_cleanups(has_partition=has_partition).later(connection, **values_of(target))
        if compaction.type is not CompactionType.ABORT_TXN_CLEANUP:
            queued.append(compaction)
        elif highest is not None:
            before = aborts_end_ms(work, work.now_ms)
            forget_aborted_up_to(connection, target, highest, before_ms=before)
    all_ended = succeed(work, [compaction.id for compaction in queued])
    for compaction, ended in zip(queued, all_ended, strict=True):
        if not ended.is_never_created:
            _forget(work, compaction, ended)


def _forget(work: Work, compaction: Compaction, ended: Compaction) -> None:
    """What was committed and aborted in the target of an entry that has ended."""
    connection, target = work.connection, compaction.target
    named, has_partition = values_of(target), target.partition is not None
    now = ended.ended_ms or 0
    highest = ended.highest_write_id
    is_dropped = LOCATION in ended.properties
    is_whole_table = is_dropped and target.partition is None
    if is_dropped or highest is None:
        connection.execute(
            delete(COMPLETED_TXN_COMPONENTS).where(
                _at_completed(target, is_whole_table=is_whole_table)
            )
        )
    else:
        forget = _forget_completed(has_partition=has_partition)
        forget.later(connection, highest=highest, **named)
    if highest is not None:
        reported = compaction.highest_write_id
        highest = highest if reported is None else min(highest, reported)
        before = now if is_dropped else aborts_end_ms(work, now)
        forget_aborted_up_to(
            connection, target, highest, before_ms=before, is_whole_table=is_whole_table
        )


def retry_failed_cleanings(work: Work, after_ms: int) -> int:
    """Entries that failed in their cleaning so long ago are ready for cleaning again; how many.

    They were compacted and committed; those whose target was cleaned by a later one stay. What a
    clock that was ahead made wait for longer is judged anew.
    """
    connection, now = work.connection, work.now_ms
    _judge_anew(work, now)
    later = COMPLETED_COMPACTIONS.alias()
    is_made_good = exists().where(
        later.c.CC_DATABASE == _H.CC_DATABASE,
        later.c.CC_TABLE == _H.CC_TABLE,
        later.c.CC_PARTITION.is_not_distinct_from(_H.CC_PARTITION),
        later.c.CC_STATE == CompactionState.SUCCEEDED.stored,
        later.c.CC_ID > _H.CC_ID,
    )
    failed = (
        connection.execute(
            select(COMPLETED_COMPACTIONS)
            .where(
                _H.CC_STATE == CompactionState.FAILED.stored,
                _H.CC_NEXT_TXN_ID > 0,
                _H.CC_COMMIT_TIME > 0,
                ~_H.CC_END.between(now - after_ms, now),
                ~is_made_good,  # here: what stays is not to hide what follows it
            )
            .order_by(_H.CC_ID)
            .limit(FETCH_MAX)
            .with_for_update()
        )
        .mappings()
        .all()
    )
    for row in failed:
        connection.execute(insert(COMPACTION_QUEUE).values(queue_row(row)))
        connection.execute(delete(COMPLETED_COMPACTIONS).where(_H.CC_ID == row["CC_ID"]))
    return len(failed)


def _is_committed_for(now: int, retention_ms: int) -> ColumnElement[bool]:
    return or_(_Q.CQ_COMMIT_TIME.is_(None), _Q.CQ_COMMIT_TIME + retention_ms <= now)


def _judge_anew(work: Work, now: int) -> None:
    """What a clock that was ahead stamped happened now at the latest: else nothing would be cleaned
    until that time comes."""
    for column in (_Q.CQ_COMMIT_TIME, _Q.CQ_CLEANER_START):
        work.connection.execute(
            update(COMPACTION_QUEUE)
            .where(_Q.CQ_STATE == _READY, column > now)
            .values({column: now})
        )


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


def _height(entry: Compaction) -> tuple[int, int]:
    return (entry.highest_write_id or 0, entry.id)


def _at_completed(target: Target, *, is_whole_table: bool) -> ColumnElement[bool]:
    table = and_(_D.CTC_DATABASE == target.database, _D.CTC_TABLE == target.table)
    if is_whole_table:
        return table
    return and_(table, null_safe_equals(_D.CTC_PARTITION, target.partition))


@cache
def _forget_cleanups(*, has_partition: bool) -> FixedSql:
    here = is_named(_Q.CQ_DATABASE, _Q.CQ_TABLE, _Q.CQ_PARTITION, has_partition=has_partition)
    return FixedSql(
        delete(COMPACTION_QUEUE).where(here, _Q.CQ_TYPE == _CLEANUP, _Q.CQ_STATE == _READY)
    )


@cache
def _forget_completed(*, has_partition: bool) -> FixedSql:
    here = is_named(_D.CTC_DATABASE, _D.CTC_TABLE, _D.CTC_PARTITION, has_partition=has_partition)
    highest = bindparam("highest", type_=BigInteger)
    is_reached = or_(_D.CTC_WRITEID <= highest, _D.CTC_WRITEID.is_(None))
    return FixedSql(delete(COMPLETED_TXN_COMPONENTS).where(here, is_reached))
