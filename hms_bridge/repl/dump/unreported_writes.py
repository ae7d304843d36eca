"""Writes that nobody reported to the metastore: a client that adds no write notification.

The log then has write id and commit, but no files (docs/hive/metastore.md §19), and Hive's dump
carries an empty commit: the rows are never on the replica. What the write left behind is looked
for: its own directories, or once they were compacted and cleaned its files in the archive
(``table_writes``). A commit that wrote no files (TRUNCATE, ALTER, ADD PARTITION) left nothing.
Where the two look the same, the dump refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from changemanager.location import Resolver
from changemanager.uri import decode_uri, encode_uri
from hms_bridge.errors import EventGapError, NoSuchObjectError, ReplError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.counted import counted
from hms_bridge.model.event import EventType, NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnToWriteId, WriteEvent
from hms_bridge.repl.dump.partition_changes import PartitionChanges, PartitionKey, partition_key
from hms_bridge.repl.dump.table_names import TableNames
from hms_bridge.repl.dump.table_writes import Archive, TableWrites, WrittenFiles
from hms_bridge.repl.format.emptied import is_emptied
from hms_bridge.repl.format.event_payload import AllocWriteIdPayload, OpenTxnPayload
from hms_bridge.repl.remedies import begin_anew, bring_anew
from hms_bridge.wire.object_json import (
    partition_from_json,
    partition_to_json,
    table_from_json,
    table_to_json,
)

_NAMED_IN_MESSAGE = 5
_LOOK_BACK_EVENTS = 1000
_NO_PLACE = "its partition was renamed, or its directory is not there"
_NO_EVENT = "the table is not there, and the log has no drop or rename"


def earlier_allocations(
    store: NotificationStore, database: str, txn_id: TxnId, until: EventId
) -> Iterator[tuple[EventId, AllocWriteIdPayload]]:
    """The ALLOC_WRITE_ID events (id and payload) of the database from ``until`` back to where a
    transaction was opened. One that was open at the last dump got its write ids in events that no
    later range holds. Raises EventGapError where the log does not go back so far, once all that it
    has is reported.
    """
    is_opened, upper = False, until
    while not is_opened and upper > 0:
        lower = EventId(max(0, upper - _LOOK_BACK_EVENTS))
        page = store.get_next_notification(
            NotificationRequest(last_event_id=lower, max_events=upper - lower)
        )
        for event in page:
            if event.id > upper:
                break
            if event.type == EventType.OPEN_TXN.value:
                opened = OpenTxnPayload.of(event)
                is_opened = is_opened or txn_id in opened.txn_ids
            elif event.type == EventType.ALLOC_WRITE_ID.value:
                payload = AllocWriteIdPayload.of(event)
                if payload.database_name == database:
                    yield event.id, payload
        if not page or page[0].id != lower + 1:
            break
        upper = lower
    if not is_opened:
        raise EventGapError(
            f"the notification log does not go back to where transaction {txn_id} was opened. "
            + begin_anew(database)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Allocated:
    """A write id, and the name that its table had when it was allocated."""

    table_name: str
    event_id: EventId
    write_id: WriteId


@dataclass(frozen=True, kw_only=True, slots=True)
class _Listing:
    """What a table has, looked at after one event and before another."""

    table: Table
    writes: TableWrites
    after: EventId
    until: EventId


class UnreportedWrites:
    """Remembers which write ids a range of events allocates, and looks for what they wrote.

    ``unknown_writes``: those whose files may have been compacted and cleaned without a trace, in
    words.
    """

    def __init__(
        self,
        source: Metastore,
        resolve: Resolver,
        database_name: str,
        archive: Archive,
        names: TableNames,
        partition_changes: PartitionChanges,
        left_out: Container[str] = frozenset(),
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._database_name = database_name
        self._archive = archive
        self._names = names
        self._partition_changes = partition_changes
        self._left_out = left_out
        self._allocated: dict[TxnId, list[_Allocated]] = {}
        self._tables: dict[str, _Listing | None] = {}
        self.unknown_writes: list[str] = []
        self._unknown_tables: list[str] = []

    def note(self, event_id: EventId, table_name: str, allocated: Iterable[TxnToWriteId]) -> None:
        """Transactions got write ids of a table, as an event says."""
        for pair in allocated:
            self._allocated.setdefault(pair.txn_id, []).append(
                _Allocated(table_name=table_name, event_id=event_id, write_id=pair.write_id)
            )

    def allocated_at(self, txn_id: TxnId, write: WriteEvent) -> EventId | None:
        """The event that allocated the id of a write; None if no event that was seen did."""
        allocations = (
            allocated
            for allocated in self._allocated.get(txn_id, ())
            if (allocated.table_name, allocated.write_id) == (write.target.table, write.write_id)
        )
        return next((allocated.event_id for allocated in allocations), None)

    def find(
        self, commit: NotificationEvent, txn_id: TxnId, reported: Sequence[WriteEvent]
    ) -> tuple[WriteEvent, ...]:
        """What a committed transaction wrote to tables of which it reported nothing."""
        known = {write.target.table for write in reported}
        return tuple(
            event
            for allocated in self._allocated.get(txn_id, ())
            if allocated.table_name not in known
            for event in self._writes(commit, allocated, known)
        )

    @property
    def unknown_tables(self) -> frozenset[str]:
        """The tables of all unknown writes; none if one of them is of no table that is there."""
        is_each_known = len(self._unknown_tables) == len(self.unknown_writes)
        return frozenset(self._unknown_tables if is_each_known else ())

    def name_at(self, name: str, allocated: EventId, commit: EventId) -> str | None:
        """The name, at a commit, of the table that a write id was allocated for; None: dropped."""
        return self._names.name_at(name, allocated, commit)

    def with_checksums(self, commit: NotificationEvent, write: WriteEvent) -> WriteEvent:
        """The same write; a reference without checksum gets that of the file, or of the archived
        one, if it is in either place."""
        files = [decode_uri(uri) for uri in write.files]
        if all(file.checksum is not None for file in files):
            return write
        listing = self._writes_to(write.target.table, commit.id, write.write_id)
        if listing is None:
            return write
        traced = {
            file.uri: file
            for written in listing.writes.of(write.write_id, commit.time_seconds * 1000)
            for file in written.files
        }
        whole = (
            file if file.checksum is not None else traced.get(file.uri, file) for file in files
        )
        return replace(write, files=tuple(encode_uri(file) for file in whole))

    def is_emptied(self, commit: NotificationEvent, write: WriteEvent) -> bool:
        """Whether a write without files left an empty base where its table or partition is."""
        text = write.partition_object
        place = table_from_json(write.table_object).storage.location
        if text is not None:
            place = partition_from_json(text).storage.location
        if place is not None and is_emptied(self._resolve(place), write.write_id):
            return True
        listing = self._writes_to(write.target.table, commit.id, write.write_id)
        if listing is None:
            return False
        name = write.target.table
        before, after = (
            self._partition_changes.key_at(
                name, partition_key(write.partition), since=commit.id, until=until
            )
            for until in (listing.after, listing.until)
        )
        if after is None:
            return False
        written = listing.writes.emptied(after, write.write_id) if before == after else None
        if written is None:
            self._note_unknown(name, write.write_id, _NO_PLACE)
            return False
        if written.maybe_in is not None:
            self._note_unknown(name, write.write_id, written.maybe_in)
        return written.is_emptied

    def _writes(
        self, commit: NotificationEvent, allocated: _Allocated, known: Collection[str]
    ) -> Iterator[WriteEvent]:
        """A rename or drop may stand between the write id and the commit, in the transaction
        itself too (Hive's DDLTask): the name is followed from where the write id was allocated.
        The replica knows the table by the name that it has when the commit is replayed.
        """
        name = self._names.name_at(allocated.table_name, allocated.event_id, commit.id)
        if name is None or name in known or name in self._left_out:
            return
        listing = self._writes_to(name, commit.id, allocated.write_id)
        if listing is None:
            return
        table = listing.table
        for written in listing.writes.of(allocated.write_id, commit.time_seconds * 1000):
            if written.maybe_in is not None:
                self._note_unknown(name, allocated.write_id, written.maybe_in)
            if written.files or written.is_emptied:
                then = self._named_as_then(written, commit.id, name, listing)
                if then is None:
                    self._note_unknown(name, allocated.write_id, _NO_PLACE)
                else:
                    yield _event(replace(table, name=name), allocated.write_id, then)

    def _named_as_then(
        self, written: WrittenFiles, commit: EventId, table_name: str, listing: _Listing
    ) -> WrittenFiles | None:
        """With the name that the partition had at the commit: the replica has not renamed it yet.
        None if it was renamed while it was looked at."""
        partition, table = written.partition, listing.table
        if partition is None:
            return written
        name = partition_name(table.partition_columns, partition.values)
        then, later = (
            self._partition_changes.key_before(
                table_name, partition_key(name), since=commit, until=until
            )
            for until in (listing.after, listing.until)
        )
        if then != later:
            return None
        if then == partition_key(name):
            return written
        return replace(written, partition=_renamed(table, partition, then))

    def _note_unknown(self, name: str, write_id: WriteId, why: str) -> None:
        full_name = f"{self._database_name}.{name}"
        # A table that is not there cannot be brought whole.
        if why != _NO_EVENT:
            self._unknown_tables.append(name)
        self.unknown_writes.append(f"write id {write_id} of {full_name} ({why})")

    def _writes_to(self, name: str, at: EventId, write_id: WriteId) -> _Listing | None:
        """None for a table that was dropped since, and for one whose files do not come along."""
        for is_last in (False, True):
            now = self._names.name_now(name, at)
            if now is None:
                return None
            try:
                return self._writes_once(now)
            except NoSuchObjectError:
                if is_last:
                    self._note_unknown(name, write_id, _NO_EVENT)
            self._names.read_again()  # it may have been dropped or renamed since the log was read
        return None

    def _writes_once(self, name: str) -> _Listing | None:
        """Looked up once for each table; None for one whose files do not come with commits."""
        if name not in self._tables:
            self._tables[name] = self._table_writes(name)
        return self._tables[name]

    def _table_writes(self, name: str) -> _Listing | None:
        after = self._source.get_current_event_id()
        table = self._source.get_table(self._database_name, name)
        if table.is_any_view or table.is_external or table.storage.location is None:
            return None
        writes = TableWrites(self._source, self._resolve, table, self._archive)
        until = self._source.get_current_event_id()
        return _Listing(table=table, writes=writes, after=after, until=until)


def _event(table: Table, write_id: WriteId, written: WrittenFiles) -> WriteEvent:
    partition = written.partition
    if partition is not None:
        partition = replace(partition, table_name=table.name)
    return WriteEvent(
        write_id=write_id,
        target=Target(
            table.database_name,
            table.name,
            None
            if partition is None
            else partition_name(table.partition_columns, partition.values),
        ),
        table_object=table_to_json(table),
        partition_object=None if partition is None else partition_to_json(partition),
        files=tuple(encode_uri(file) for file in written.files),
    )


def _renamed(table: Table, partition: Partition, key: PartitionKey) -> Partition:
    """With other values, and in the place of that name if it was in that of its own."""
    by_column, columns = dict(key), table.partition_columns
    values = tuple(by_column[column.name.lower()] for column in columns)
    own, other = (f"/{partition_name(columns, place)}" for place in (partition.values, values))
    location = (partition.storage.location or "").rstrip("/")
    if location.endswith(own):
        location = location.removesuffix(own) + other
    return replace(partition, values=values, storage=replace(partition.storage, location=location))


def lost_writes(database_name: str, writes: Sequence[str], tables: Collection[str]) -> ReplError:
    """The refusal of a dump that may lack rows. ``tables``: names, where they are known."""
    ways_out = bring_anew(database_name, sorted(tables)) if tables else begin_anew(database_name)
    return ReplError(
        f"{counted(len(writes), 'write')} of database {database_name} came from clients that did "
        f"not tell which files they wrote: {'; '.join(writes[:_NAMED_IN_MESSAGE])}. A compacted "
        "directory named here may have taken up those files since, and they are neither at their "
        "place nor known to the archive, or the table itself is gone without a word: the replica "
        f"would lack their rows. {ways_out}. Or, if you know that those statements wrote nothing "
        "(ALTER, ADD PARTITION, an UPDATE without a match), dump with --assume-empty"
    )
