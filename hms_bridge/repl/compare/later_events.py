"""What happened to a database after an event, as its log says: for a source that has gone on.

Definitions are as they are now, so what changed them since makes a table undecided. Rows are not:
write ids that were committed since can be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hms_bridge.errors import EventGapError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.compare.definitions import partition_definition, table_definition
from hms_bridge.repl.dump.backlog import WITHOUT_A_CHANGE
from hms_bridge.repl.dump.event_source import (
    EventRange,
    concerns,
    foreign_keys,
    function_of,
    is_of,
    read_events,
)
from hms_bridge.repl.dump.table_names import TableNames
from hms_bridge.repl.dump.unreported_writes import earlier_allocations
from hms_bridge.repl.format.event_payload import (
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
)
from hms_bridge.repl.format.stored_message import is_harmless_compaction

_OF_FUNCTIONS = frozenset({EventType.CREATE_FUNCTION.value, EventType.DROP_FUNCTION.value})
_OF_STATISTICS = frozenset(
    {
        EventType.UPDATE_TABLE_STATISTICS.value,
        EventType.DELETE_TABLE_STATISTICS.value,
        EventType.UPDATE_PARTITION_STATISTICS.value,
        EventType.DELETE_PARTITION_STATISTICS.value,
        "UPDATE_PART_COL_STAT_EVENT_BATCH",  # of Hive 4.1 and later
    }
)
_OTHERS = WITHOUT_A_CHANGE | _OF_FUNCTIONS | _OF_STATISTICS | {EventType.RELOAD.value}
"""Kinds of events that change no table, partition or database."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    """Of a table, or of some of its partitions; of the database where no table is named."""

    event_id: EventId
    what: str
    table: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"event {self.event_id} ({self.what})"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Allocation:
    """A write id of a table, by the name that it had at the event."""

    event_id: EventId
    table: str
    write_id: WriteId


@dataclass(frozen=True, kw_only=True, slots=True)
class _Commit:
    event_id: EventId
    txn_id: TxnId


@dataclass(frozen=True, kw_only=True, slots=True)
class LaterWriteIds:
    """By table: ``given`` after the event, or before it and ``committed`` after it.
    ``unknown_txns`` committed after it too, and the log has not any more what they wrote."""

    given: Mapping[str, frozenset[WriteId]] = field(default_factory=dict)
    committed: Mapping[str, frozenset[WriteId]] = field(default_factory=dict)
    unknown_txns: tuple[TxnId, ...] = ()

    def of(self, table: str) -> frozenset[WriteId]:
        """All that a reader at the event does not see."""
        return self.given.get(table, frozenset()) | self.committed.get(table, frozenset())


class LaterEvents:
    """Reads a log after an event, and on as it grows."""

    def __init__(self, store: NotificationStore, database: str, after: EventId) -> None:
        self._store = store
        self._database = database
        self._after = self.until = after
        self._names = TableNames(store, database, after)
        self._changes: list[_Change] = []
        self._functions: dict[str, _Change] = {}
        self._statistics: dict[str, _Change] = {}
        self._opened: set[TxnId] = set()
        self._allocations: dict[TxnId, list[_Allocation]] = {}
        self._commits: list[_Commit] = []
        self._looked_back: dict[TxnId, bool] = {}
        self._known: dict[tuple[EventId, EventId], LaterWriteIds] = {}

    def read_on(self) -> None:
        """Up to the newest event. Raises EventGapError if any is gone."""
        wanted = EventRange(after=self.until, until=self._store.get_current_event_id())
        try:
            for event in read_events(self._store, wanted):
                self.until = event.id
                if concerns(event, self._database):
                    self._note(event)
        except EventGapError as error:
            raise EventGapError(
                f"the notification log has no longer all events after {self.until}, so nobody can "
                f"tell what changed in {self._database} since. Load what was dumped, then compare "
                "again"
            ) from error
        self._names.read_again()

    def table_change(self, table: str, after: EventId) -> str | None:
        """What last changed the definition of a table, or of the database (""), as a text; None
        for nothing."""
        changes = [
            change
            for change in self._changes
            if change.event_id > after and change.table == table and not change.partitions
        ]
        return changes[-1].text if changes else None

    def function_change(self, name: str, after: EventId) -> str | None:
        """What last made or dropped a function, as a text; None for nothing."""
        return _if_after(self._functions.get(name.lower()), after)

    def statistics_change(self, table: str, after: EventId) -> str | None:
        """What last changed column statistics of a table or its partitions, as a text; None for
        nothing."""
        return _if_after(self._statistics.get(table), after)

    def partition_changes(self, table: str, after: EventId) -> Mapping[str, str]:
        """Partitions that were added since, by name, with the event as a text."""
        return {
            name: change.text
            for change in self._changes
            if change.event_id > after and change.table == table
            for name in change.partitions
        }

    def write_ids(self, after: EventId) -> LaterWriteIds:
        """What a reader of the tables, by their names now, does not see at an event."""
        # Only the newest answer is kept: every event that was read since makes older ones wrong.
        key = (after, self.until)
        if key not in self._known:
            self._known = {key: self._write_ids(after)}
        return self._known[key]

    def _write_ids(self, after: EventId) -> LaterWriteIds:
        given: dict[str, set[WriteId]] = {}
        committed: dict[str, set[WriteId]] = {}
        unknown: list[TxnId] = []
        for commit in self._commits:
            if commit.event_id > after:
                if not self._looks_back(commit.txn_id):
                    unknown.append(commit.txn_id)
                self._sort_in(self._allocations.get(commit.txn_id, ()), committed)
        for allocations in self._allocations.values():
            later = (allocation for allocation in allocations if allocation.event_id > after)
            self._sort_in(later, given)
        return LaterWriteIds(
            given={name: frozenset(ids) for name, ids in given.items()},
            committed={name: frozenset(ids) for name, ids in committed.items()},
            unknown_txns=tuple(unknown),
        )

    def _sort_in(self, allocations: Iterable[_Allocation], into: dict[str, set[WriteId]]) -> None:
        for allocation in allocations:
            name = self._names.name_now(allocation.table, allocation.event_id)
            if name is not None:
                into.setdefault(name, set()).add(allocation.write_id)

    def _looks_back(self, txn_id: TxnId) -> bool:
        """Whether all is known that a transaction was given, also before this log begins."""
        if txn_id in self._opened:
            return True
        if txn_id not in self._looked_back:
            earlier = earlier_allocations(self._store, self._database, txn_id, self._after)
            try:
                for event_id, payload in earlier:
                    self._allocate(event_id, payload, only=txn_id)
                self._looked_back[txn_id] = True
            except EventGapError:
                self._looked_back[txn_id] = False
        return self._looked_back[txn_id]

    def _allocate(
        self, event_id: EventId, payload: AllocWriteIdPayload, only: TxnId | None = None
    ) -> None:
        for pair in payload.allocated:
            if only is None or pair.txn_id == only:
                self._allocations.setdefault(pair.txn_id, []).append(
                    _Allocation(event_id=event_id, table=payload.table_name, write_id=pair.write_id)
                )

    def _note(self, event: NotificationEvent) -> None:
        # Transactions are of no database; of everything else only the database's own counts.
        if event.type == EventType.ALLOC_WRITE_ID.value:
            self._allocate(event.id, AllocWriteIdPayload.of(event))
        elif event.type == EventType.OPEN_TXN.value:
            self._opened.update(OpenTxnPayload.of(event).txn_ids)
        elif event.type == EventType.COMMIT_TXN.value:
            commit = CommitTxnPayload.of(event)
            self._commits.append(_Commit(event_id=event.id, txn_id=commit.txn_id))
        elif (function := function_of(event)) is not None:
            self._functions[function.lower()] = _Change(event_id=event.id, what=event.type)
        elif event.type in _OF_STATISTICS:
            table = (event.table_name or "").lower()
            self._statistics[table] = _Change(event_id=event.id, what=event.type)
        elif is_of(event, self._database):
            self._changes += _changes(event)


def _changes(event: NotificationEvent) -> Iterator[_Change]:
    """A kind of event that nobody knows yet counts as a change of its table; so does a rebalance,
    which gives rows other ids."""
    is_rebalance = event.type == EventType.COMMIT_COMPACTION.value and not (
        is_harmless_compaction(event.message)
    )
    if event.type in _OTHERS and not is_rebalance:
        return
    if event.type == EventType.ADD_FOREIGN_KEY.value:
        # Its event names the table to which it refers.
        for added in foreign_keys(event):
            yield _Change(event_id=event.id, what=event.type, table=added.table_name.lower())
        return
    payload = Payload.of(event)
    table = (event.table_name or "").lower()
    if is_rebalance:
        table = payload.text("tableName").lower()
        yield _Change(event_id=event.id, what=event.type, table=table)
    elif event.type == EventType.ALTER_TABLE.value:
        yield from _altered_table(event, payload)
    elif event.type == EventType.ALTER_PARTITION.value and _is_same_partition(payload):
        return
    elif event.type == EventType.ADD_PARTITION.value:
        columns = payload.table().partition_columns
        names = tuple(
            partition_name(columns, partition.values) for partition in payload.partitions()
        )
        yield _Change(event_id=event.id, what=event.type, table=table, partitions=names)
    else:
        yield _Change(event_id=event.id, what=event.type, table=table)


def _if_after(change: _Change | None, after: EventId) -> str | None:
    return change.text if change is not None and change.event_id > after else None


def _altered_table(event: NotificationEvent, payload: Payload) -> Iterator[_Change]:
    """Both names of a renamed one; nothing where only statistics were noted."""
    before, after = payload.altered_tables()
    is_same = before.full_name == after.full_name and (
        table_definition(before) == table_definition(after)
    )
    if is_same and not payload.is_true("isTruncateOp"):
        return
    for name in dict.fromkeys((before.name, after.name)):
        yield _Change(event_id=event.id, what=event.type, table=name)


def _is_same_partition(payload: Payload) -> bool:
    altered, table = payload.altered_partitions(), payload.table()
    if altered is None or payload.is_true("isTruncateOp"):
        return False
    before, after = altered
    return before.values == after.values and (
        partition_definition(before, table) == partition_definition(after, table)
    )
