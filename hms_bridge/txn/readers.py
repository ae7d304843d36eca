"""Who may read what: open transactions that surely read elsewhere, and locks without one.

An open transaction counts for every database, unless it has said completely what it reads and
nothing of that is in this one. It has said so

* by rows in MIN_HISTORY_WRITE_ID, which Hive 4.2's Cleaner trusts alone (a client registers every
  table before it reads; TxnHandler.addWriteIdsToMinHistory, docs/hive/transactions.md §16);
* by locks, if all of them are for reading and it writes nothing. A writer's locks say nothing of
  what it reads: with hive.txn.read.locks=false there is none for that.

Whoever takes write ids, locks or compacts something of the database counts for it in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    and_,
    bindparam,
    exists,
    func,
    null,
    or_,
    select,
    union_all,
)

from hms_bridge.backend.fixed_sql import TimedSql
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    HIVE_LOCKS,
    MIN_HISTORY_WRITE_ID,
    TXN_COMPONENTS,
    TXNS,
)
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.ids import NO_TXN, TxnId
from hms_bridge.model.lock import LockState, LockType
from hms_bridge.model.txn import TxnState, TxnType

LOCK_AFTER_SNAPSHOT_MS = 300_000
"""A reader without a transaction may take its lock so long after its snapshot."""
PLANNING_MS = 10_000
"""A reader asks for its lock within such a time after its transaction began."""
LISTING_MS = 30_000
"""It lists the directories of its table within such a time after it has its lock."""
GIVING_WAY_MS = 300_000
"""So long after a compaction its cleaning gives way to those who list: on a table that is always
read it must come to its end, too."""

_T = TXNS.c
_L = HIVE_LOCKS.c
_H = MIN_HISTORY_WRITE_ID.c
_C = TXN_COMPONENTS.c
_Q = COMPACTION_QUEUE.c


def reads_elsewhere(database: str | ColumnElement[str]) -> ColumnElement[bool]:
    """The condition, on a row of TXNS, that its transaction surely reads nothing of a database (its
    name, or a parameter of a fixed statement)."""
    is_here = or_(
        exists().where(_L.HL_TXNID == _T.TXN_ID, _L.HL_DB == database),
        exists().where(_H.MH_TXNID == _T.TXN_ID, _H.MH_DATABASE == database),
        exists().where(_C.TC_TXNID == _T.TXN_ID, _C.TC_DATABASE == database),
        # Who asks for a cleaning in its transaction has no component.
        exists().where(_Q.CQ_TXN_ID == _T.TXN_ID, _Q.CQ_DATABASE == database),
    )
    is_writer = or_(
        exists().where(_L.HL_TXNID == _T.TXN_ID, _L.HL_LOCK_TYPE != LockType.SHARED_READ.stored),
        exists().where(_C.TC_TXNID == _T.TXN_ID),
    )
    has_locks = exists().where(_L.HL_TXNID == _T.TXN_ID)
    is_reader = or_(_T.TXN_TYPE == int(TxnType.READ_ONLY), ~is_writer)
    has_said = or_(
        exists().where(_H.MH_TXNID == _T.TXN_ID),
        and_(has_locks, is_reader),
    )
    return and_(has_said, ~is_here)


def txns_elsewhere(connection: Connection, database: str) -> frozenset[TxnId]:
    """Open transactions that surely read nothing of a database."""
    return frozenset(
        TxnId(number)
        for number in connection.scalars(
            select(_T.TXN_ID).where(_T.TXN_STATE == TxnState.OPEN.value, reads_elsewhere(database))
        )
    )


def locked_without_txn(
    connection: Connection, entries: Collection[Compaction]
) -> dict[int, tuple[int, ...]]:
    """Entries (by id) whose inputs may be read under locks that no transaction holds: those locks.

    As in Hive before 4, where readers took locks only: a lock on the target, its table or its
    database counts unless it was taken well after the compaction was committed. A waiting one
    counts: its reader may have its snapshot already.
    """
    databases = sorted({entry.target.database for entry in entries})
    if not databases:
        return {}
    locks = connection.execute(
        select(_L.HL_LOCK_EXT_ID, _L.HL_DB, _L.HL_TABLE, _L.HL_PARTITION, _L.HL_ACQUIRED_AT)
        .where(_L.HL_TXNID == NO_TXN, _L.HL_DB.in_(databases))
        .order_by(_L.HL_LOCK_EXT_ID)
    ).all()
    by_entry: dict[int, tuple[int, ...]] = {}
    for entry in entries:
        until_ms = (entry.committed_ms or 0) + LOCK_AFTER_SNAPSHOT_MS
        mine = [
            lock.HL_LOCK_EXT_ID
            for lock in locks
            if lock.HL_DB == entry.target.database
            and lock.HL_TABLE in {None, entry.target.table}
            and (
                entry.target.partition is None
                or lock.HL_PARTITION in {None, entry.target.partition}
            )
            and (lock.HL_ACQUIRED_AT is None or lock.HL_ACQUIRED_AT <= until_ms)
        ]
        if mine:
            by_entry[entry.id] = tuple(dict.fromkeys(mine))
    return by_entry


def _listing(now: ColumnElement[int], _row_time: ColumnElement[int]) -> CompoundSelect[Any]:
    with_lock = (
        select(_L.HL_TABLE, func.min(_L.HL_ACQUIRED_AT))
        .where(
            _L.HL_DB == bindparam("database"),
            _L.HL_LOCK_TYPE == LockType.SHARED_READ.stored,
            _L.HL_LOCK_STATE == LockState.ACQUIRED.stored,
            _L.HL_ACQUIRED_AT > now - LISTING_MS,
            _L.HL_TABLE.is_not(None),
            # An INSERT has such a lock, too.
            ~exists().where(_C.TC_TXNID == _L.HL_TXNID),
        )
        .group_by(_L.HL_TABLE)
    )
    planning = select(null(), func.min(_T.TXN_STARTED)).where(
        _T.TXN_STATE == TxnState.OPEN.value,
        _T.TXN_TYPE == int(TxnType.READ_ONLY),
        _T.TXN_STARTED > now - PLANNING_MS,
        ~exists().where(_L.HL_TXNID == _T.TXN_ID),
        ~exists().where(_H.MH_TXNID == _T.TXN_ID),
    )
    return union_all(with_lock, planning)


_LISTING = TimedSql(_listing)


def are_listed(work: Work, entries: Sequence[Compaction]) -> tuple[bool, ...]:
    """Of each entry whether a reader may be listing its table in a moment: one that writes nothing
    has had its lock for a short time, or began a short time ago and has none yet, so that whoever
    is not among them has a plan to make first. Not of an entry that has given way for long enough.

    A SELECT of Hive's that meets a directory which goes at that moment finds no rows, and says
    nothing (FetchOperator.getNextSplits takes what is not there for an empty table). What writes is
    a job, and fails.
    """
    databases = sorted({entry.target.database for entry in entries})
    asked = [(database, _LISTING.later(work, database=database)) for database in databases]
    since: dict[tuple[str, str | None], int] = {
        (database, table): since_ms
        for database, answer in asked
        for table, since_ms in answer.rows
        if since_ms is not None
    }
    return tuple(
        any(
            _gives_way(entry, since[entry.target.database, table])
            for table in (entry.target.table, None)
            if (entry.target.database, table) in since
        )
        for entry in entries
    )


def _gives_way(entry: Compaction, since_ms: int) -> bool:
    """To who reads since then. One that was never queued always does: nobody knows how old it is,
    and it is queued when it is put off."""
    began_ms = entry.committed_ms or entry.enqueued_ms
    return began_ms is None or since_ms <= began_ms + GIVING_WAY_MS
