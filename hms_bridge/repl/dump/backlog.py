"""What a replica has not got yet: commits, changes, and since when.

The newest event id says nothing of it: a log has the events of all databases and of every reader,
and a commit with rows bears no name of a database there (docs/hive/replication.md §17).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from changemanager.location import Resolver
from changemanager.uri import decode_uri
from changemanager.whereabouts import locate
from hms_bridge.errors import EventGapError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import TxnId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.event_source import (
    EventRange,
    concerns,
    is_of,
    read_events,
    txn_step,
)
from hms_bridge.repl.dump.tables_anew import names_of_event
from hms_bridge.repl.dump.unreported_writes import earlier_allocations
from hms_bridge.repl.format.event_payload import CommitTxnPayload
from hms_bridge.repl.format.noted_statistics import notes_statistics_alone

WITHOUT_A_CHANGE = frozenset(
    {
        EventType.OPEN_TXN.value,
        EventType.ABORT_TXN.value,
        EventType.ALLOC_WRITE_ID.value,
        EventType.COMMIT_COMPACTION.value,
        EventType.REQUEST_COMPACTION.value,
        EventType.FAIL_COMPACTION.value,
        EventType.UPDATE_TABLE_STATISTICS.value,
        EventType.DELETE_TABLE_STATISTICS.value,
        EventType.UPDATE_PARTITION_STATISTICS.value,
        EventType.DELETE_PARTITION_STATISTICS.value,
    }
)
"""Nobody who reads the replica would see them. A kind that nobody knows yet counts as a change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """What one database's replica lacks. ``txns``: those behind ``commits``; ``changes``: events
    that change what a reader finds, without a transaction of their own (DDL, INSERT into plain
    tables). ``oldest_ms``: when the first of both happened; None if the replica lacks nothing."""

    txns: tuple[TxnId, ...] = ()
    changes: int = 0
    oldest_ms: int | None = None

    @property
    def commits(self) -> int:
        """How many commits to the database."""
        return len(self.txns)


@dataclass(slots=True)
class _Writers:
    """Which transactions write to tables of a scope, as far as the events until now show."""

    store: NotificationStore
    scope: ReplScope
    opened: set[TxnId] = field(default_factory=set)
    touched: set[TxnId] = field(default_factory=set)

    def note(self, event: NotificationEvent) -> TxnId | None:
        """Take an event in; returns the transaction if it is the commit of one that wrote."""
        step = txn_step(event, self.scope.database_name)
        if step is None:
            return None
        self.opened.update(step.opened)
        if self._is_touching(event):
            self.touched.update(step.touched)
        txn_id = step.ended
        if txn_id is None or event.type != EventType.COMMIT_TXN.value:
            return None
        is_ours = txn_id in self.touched or (
            txn_id not in self.opened and self._had_write_ids(event, txn_id)
        )
        self.opened.discard(txn_id)
        self.touched.discard(txn_id)
        return txn_id if is_ours else None

    def _is_touching(self, event: NotificationEvent) -> bool:
        """Not for tables that are not covered. A commit may name a database and no table of it;
        then it counts by its write ids, which it has from an event."""
        if self.scope.is_whole_database:
            return True
        if event.type != EventType.COMMIT_TXN.value:
            return _is_covered(event, self.scope)
        commit = CommitTxnPayload.of(event)
        return any(
            write.target.database == self.scope.database_name
            and self.scope.contains(write.target.table)
            for write in commit.writes or ()
        )

    def _had_write_ids(self, event: NotificationEvent, txn_id: TxnId) -> bool:
        """Of a transaction that was opened before the range. True where the log is too short to
        show it: rather a commit too many than one that nobody waits for."""
        database = self.scope.database_name
        allocations = earlier_allocations(self.store, database, txn_id, event.id)
        try:
            return any(
                pair.txn_id == txn_id and self.scope.contains(payload.table_name)
                for _, payload in allocations
                for pair in payload.allocated
            )
        except EventGapError:
            return True


def find_backlog(store: NotificationStore, wanted: EventRange, scope: ReplScope) -> Backlog:
    """What a range of events does to the tables of a scope, and to their database.

    Raises EventGapError if any event of the range is gone: no incremental dump can carry it.
    """
    database = scope.database_name
    writers = _Writers(store, scope)
    txns: list[TxnId] = []
    changes, oldest_seconds = 0, None
    for event in read_events(store, wanted):
        if not concerns(event, database):
            continue
        txn_id = writers.note(event)
        if txn_id is not None:
            txns.append(txn_id)
        elif _is_change(event, database) and _is_covered(event, scope):
            changes += 1
        else:
            continue
        if oldest_seconds is None:
            oldest_seconds = event.time_seconds
    return Backlog(
        txns=tuple(txns),
        changes=changes,
        oldest_ms=None if oldest_seconds is None else oldest_seconds * 1000,
    )


def bytes_to_copy(
    store: NotificationStore, resolve: Resolver, txns: Iterable[TxnId], scope: ReplScope
) -> int:
    """The size of the files that commits wrote, where they are now: in their table or in the
    archive. Each file is looked at; lost ones and those that no client reported count nothing."""
    return sum(
        locate(decode_uri(text), resolve, is_content_checked=False).size_bytes or 0
        for text in _written(store, txns, scope)
    )


def _written(store: NotificationStore, txns: Iterable[TxnId], scope: ReplScope) -> Iterator[str]:
    for txn_id in txns:
        for write in store.get_write_events(txn_id, scope.database_name):
            if scope.contains(write.target.table):
                yield from write.files


def _is_covered(event: NotificationEvent, scope: ReplScope) -> bool:
    """Whether an event is of a table in scope, or of no table. A rename is of two."""
    if scope.is_whole_database:
        return True
    names = names_of_event(event, scope.database_name)
    return not names or any(scope.contains(name) for name in names)


def _is_change(event: NotificationEvent, database: str) -> bool:
    is_commit = event.type == EventType.COMMIT_TXN.value
    if is_commit or event.type in WITHOUT_A_CHANGE or not is_of(event, database):
        return False
    return not notes_statistics_alone(event)
