"""What became of a partition that an open transaction had written to, before and after its commit.

DROP and RENAME PARTITION of Hive lock writers out; clients without locks (Spark, thrift) do not.
A commit then names files of a partition that the source has no more: on a replica it would come
back with its rows. The log from the write id's event until now decides what the source shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.repl.dump.event_source import EventRange, is_of, read_events
from hms_bridge.repl.dump.table_names import name_change
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.stored_message import event_text
from hms_bridge.repl.lookup import find_partition
from hms_bridge.repl.remedies import bring_anew

PartitionKey = frozenset[tuple[str, str]]
"""Values by column, as no order of columns is known in a DROP."""


class PartitionChange(Enum):
    """What an event does to the name of a partition."""

    CREATED = "created"
    DROPPED = "dropped"
    RENAMED = "renamed"


class WriteVisibility(Enum):
    """Whether the source shows what a commit says was written to a partition."""

    VISIBLE = "visible"
    DROPPED = "dropped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    """A change of a partition (``key``), or of a table (without)."""

    event_id: EventId
    table_name: str
    key: PartitionKey | None = None
    kind: PartitionChange | None = None
    new_table_name: str | None = None
    new_key: PartitionKey | None = None


class PartitionChanges:
    """Follows partitions of a database through the log; read once, and on as it grows."""

    def __init__(self, source: Metastore, database_name: str) -> None:
        self._source = source
        self._database_name = database_name
        self._first: EventId | None = None
        self._last = EventId(0)
        self._changes: list[_Change] = []

    def visibility(
        self, table: str, partition: str, allocated: EventId, committed: EventId
    ) -> WriteVisibility:
        """What the source shows of a write whose id was allocated and committed at these events.

        Asked whether it is there now, it may change meanwhile: so the log is read on afterwards.
        Raises EventGapError if the log does not go back so far any more.
        """
        key = partition_key(partition)
        self._read(allocated)
        now = self._name_now(table, allocated)
        # Of a dropped table nobody can ask; counted as there, its writes are not left out unproven.
        is_there = now is None or self._is_there(now, partition)
        self._read(allocated)
        if self._name_now(table, allocated) != now:
            return self.visibility(table, partition, allocated, committed)
        changes = list(self._of(table, key, allocated))
        # If it changed after the commit, too, that may be why it is not there.
        is_gone = not is_there and not any(change.event_id > committed for change in changes)
        under_writer = {change.kind for change in changes if change.event_id < committed}
        if not under_writer & {PartitionChange.DROPPED, PartitionChange.RENAMED}:
            return WriteVisibility.VISIBLE
        if under_writer == {PartitionChange.DROPPED} and is_gone:
            return WriteVisibility.DROPPED
        return WriteVisibility.UNKNOWN

    def key_at(
        self, table: str, key: PartitionKey, since: EventId, until: EventId
    ) -> PartitionKey | None:
        """What a partition is called at a later event; None if it was dropped before that.

        Raises EventGapError if the log does not go back so far any more.
        """
        self._read(since)
        for change in self._within(table, since, until):
            is_of_table = change.key is None and change.new_table_name is None
            is_of_key = change.key == key and change.kind is PartitionChange.DROPPED
            if is_of_table or is_of_key:
                return None
            if change.key == key and change.new_key is not None:
                key = change.new_key
        return key

    def key_before(
        self, table: str, key: PartitionKey, since: EventId, until: EventId
    ) -> PartitionKey:
        """What the partition of that name at the later event was called at the earlier one.

        ``table``: its name at the earlier one. Raises EventGapError as ``key_at`` does.
        """
        self._read(since)
        for change in reversed(tuple(self._within(table, since, until))):
            if change.new_key == key and change.key is not None:
                key = change.key
        return key

    def _is_there(self, table: str, partition: str) -> bool:
        database = self._database_name
        return find_partition(self._source, database, table, partition) is not None

    def _name_now(self, table: str, since: EventId) -> str | None:
        """None for a table that was dropped."""
        name: str | None = table
        for change in self._changes:
            if change.event_id > since and change.key is None and change.table_name == name:
                name = change.new_table_name
        return name

    def _of(self, table: str, key: PartitionKey, since: EventId) -> Iterator[_Change]:
        return (change for change in self._within(table, since, self._last) if change.key == key)

    def _within(self, table: str, since: EventId, until: EventId) -> Iterator[_Change]:
        """Changes of a table and of its partitions, followed through its names."""
        name: str | None = table
        for change in self._changes:
            if not since < change.event_id <= until or change.table_name != name:
                continue
            yield change
            if change.key is None:
                name = change.new_table_name

    def _read(self, since: EventId) -> None:
        if self._first is None or since < self._first:
            self._first = self._last = since
            self._changes = []
        wanted = EventRange(after=self._last, until=self._source.get_current_event_id())
        for event in read_events(self._source, wanted):
            self._last = event.id
            if is_of(event, self._database_name):
                self._changes += _changes(event)


def changed_under_writer(
    event: NotificationEvent, database: str, what: str, name_now: str | None = None
) -> ReplError:
    """The refusal where rows may have gone with a table or partition, or come back with it.
    ``what``: ``table`` or ``table/partition``."""
    changed = f"renamed (to {name_now})" if name_now else "renamed, or dropped and made again,"
    return ReplError(
        f"{event_text(event)}: {database}.{what} was {changed} while a transaction "
        "that wrote to it was open (clients without locks do so), and no event tells which of its "
        "rows the source shows. " + bring_anew(database, [name_now or what.partition("/")[0]])
    )


def partition_key(name: str) -> PartitionKey:
    """Of the name of a partition ("": the table)."""
    return _keyed(parse_partition_name(name)) if name else frozenset()


def _keyed(values: Iterable[tuple[str, str]]) -> PartitionKey:
    return frozenset((column.lower(), value) for column, value in values)


def _changes(event: NotificationEvent) -> Iterator[_Change]:
    name = (event.table_name or "").lower()
    renamed = name_change(event)
    if renamed is not None:
        yield _Change(event_id=event.id, table_name=renamed.name, new_table_name=renamed.new_name)
    for key, kind, new_key in _partition_changes(event):
        yield _Change(event_id=event.id, table_name=name, key=key, kind=kind, new_key=new_key)


def _partition_changes(
    event: NotificationEvent,
) -> Iterator[tuple[PartitionKey, PartitionChange, PartitionKey | None]]:
    """Which partitions an event makes, drops or renames (and to what)."""
    if event.type == EventType.DROP_PARTITION.value:
        for values in Payload.of(event).objects("partitions"):
            yield _keyed(values.items()), PartitionChange.DROPPED, None
    elif event.type == EventType.ADD_PARTITION.value:
        payload = Payload.of(event)
        table = payload.table()
        for partition in payload.partitions():
            yield _key(table, partition), PartitionChange.CREATED, None
    elif event.type == EventType.ALTER_PARTITION.value:
        payload = Payload.of(event)
        altered = payload.altered_partitions()
        if altered is None:
            return
        before, after = (_key(payload.table(), partition) for partition in altered)
        if before != after:
            yield before, PartitionChange.RENAMED, after
            yield after, PartitionChange.CREATED, None


def _key(table: Table, partition: Partition) -> PartitionKey:
    names = (column.name for column in table.partition_columns)
    return _keyed(zip(names, partition.values, strict=True))
