"""Writes that nobody told the metastore about: a client that adds no write notification.

The log then has write id and commit, but no files (docs/hive/metastore.md §19), and Hive's dump
carries an empty commit: the rows are never on the replica. What the write left behind is looked
for: its own directories, or once they were compacted and cleaned its files in the archive
(``write_traces``). A commit that wrote no files (TRUNCATE, ALTER, ADD PARTITION) left nothing.
Where the two cannot be told apart, the dump refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from changemanager.location import Resolver
from changemanager.uri import decode_uri, encode_uri
from hms_bridge.errors import EventGapError, NoSuchObjectError, ReplError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.event import EventType, NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.txn import TxnToWriteId, WriteEvent
from hms_bridge.repl.emptied import is_emptied
from hms_bridge.repl.event_payload import AllocWriteIdPayload, OpenTxnPayload, message_json
from hms_bridge.repl.remedies import begin_anew, bring_anew
from hms_bridge.repl.table_fates import TableFates
from hms_bridge.repl.target_objects import is_external, is_view
from hms_bridge.repl.write_traces import Archive, WriteTrace, WriteTraces
from hms_bridge.wire.object_json import (
    partition_from_json,
    partition_to_json,
    table_from_json,
    table_to_json,
)

_NAMED_IN_MESSAGE = 5
_LOOK_BACK_EVENTS = 1000
_UNTOLD = "the table is not there, and the log tells of no drop or rename"


def earlier_allocations(
    store: NotificationStore, database: str, txn_ids: Iterable[TxnId], until: EventId
) -> Iterator[tuple[EventId, AllocWriteIdPayload]]:
    """The ALLOC_WRITE_ID events (id and payload) of the database from ``until`` back to where all
    transactions were opened. A transaction that was open at the last dump got its write ids in
    events that no later range holds. Raises EventGapError where the log does not go back so far,
    once all that it has is told.
    """
    sought, upper = set(txn_ids), until
    while sought and upper > 0:
        lower = EventId(max(0, upper - _LOOK_BACK_EVENTS))
        page = store.get_next_notification(
            NotificationRequest(last_event_id=lower, max_events=upper - lower)
        )
        for event in page:
            if event.id > upper:
                break
            if event.type == EventType.OPEN_TXN.value:
                sought -= set(OpenTxnPayload.parse(message_json(event), _where(event)).txn_ids)
            elif event.type == EventType.ALLOC_WRITE_ID.value:
                given = AllocWriteIdPayload.parse(message_json(event), _where(event))
                if given.database_name == database:
                    yield event.id, given
        if not page or page[0].id != lower + 1:
            break
        upper = lower
    if sought:
        raise EventGapError(
            f"the notification log does not go back to where transaction {min(sought)} was opened"
        )


def _where(event: NotificationEvent) -> str:
    return f"event {event.id} ({event.type})"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Given:
    """A write id, and the name that its table had when it was given away."""

    table_name: str
    event_id: EventId
    write_id: WriteId


class UnreportedWrites:
    """Remembers which write ids a range of events gives away, and looks for what they wrote.

    ``doubts``: writes whose files may have been compacted and cleaned without a trace, in words.
    """

    def __init__(
        self,
        source: Metastore,
        resolve: Resolver,
        database_name: str,
        archive: Archive,
        fates: TableFates,
        anew: frozenset[str] = frozenset(),
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._database_name = database_name
        self._archive = archive
        self._fates = fates
        self._anew = anew
        self._given: dict[TxnId, list[_Given]] = {}
        self._tables: dict[str, tuple[Table, WriteTraces] | None] = {}
        self.doubts: list[str] = []
        self._doubted: list[str] = []

    def note(self, event_id: EventId, table_name: str, allocated: Iterable[TxnToWriteId]) -> None:
        """Transactions got write ids of a table, as an event tells."""
        for one in allocated:
            self._given.setdefault(one.txn_id, []).append(
                _Given(table_name=table_name, event_id=event_id, write_id=one.write_id)
            )

    def given_at(self, txn_id: TxnId, write: WriteEvent) -> EventId | None:
        """The event that gave away the id of a write; None if no event that was seen did."""
        found = (
            one
            for one in self._given.get(txn_id, ())
            if (one.table_name, one.write_id) == (write.table_name, write.write_id)
        )
        return next((one.event_id for one in found), None)

    def find(
        self, commit: NotificationEvent, txn_id: TxnId, reported: Sequence[WriteEvent]
    ) -> tuple[WriteEvent, ...]:
        """What a committed transaction wrote to tables of which it reported nothing."""
        known = {one.table_name for one in reported}
        return tuple(
            event
            for given in self._given.get(txn_id, ())
            if given.table_name not in known
            for event in self._writes(commit, given, known)
        )

    @property
    def doubted_tables(self) -> frozenset[str]:
        """The tables of all doubts; none if one of them is of no table that is there."""
        return frozenset(self._doubted if len(self._doubted) == len(self.doubts) else ())

    def name_at(self, name: str, given: EventId, commit: EventId) -> str | None:
        """The name, at a commit, of the table that a write id was given for; None: dropped."""
        return self._fates.name_at(name, given, commit)

    def with_checksums(self, commit: NotificationEvent, write: WriteEvent) -> WriteEvent:
        """The same write; a reference without checksum gets that of the file, or of the archived
        one, if it is in either place."""
        files = [decode_uri(one) for one in write.files]
        if all(one.checksum is not None for one in files):
            return write
        given = _Given(table_name=write.table_name, event_id=commit.id, write_id=write.write_id)
        found = self._traces_of(write.table_name, commit.id, given)
        if found is None:
            return write
        traced = {
            one.uri: one
            for trace in found[1].of(write.write_id, commit.time_seconds * 1000)
            for one in trace.files
        }
        whole = (one if one.checksum is not None else traced.get(one.uri, one) for one in files)
        return replace(write, files=tuple(encode_uri(one) for one in whole))

    def is_emptied(self, commit: NotificationEvent, write: WriteEvent) -> bool:
        """Whether a write without files left an empty base where its table or partition is."""
        text = write.partition_object
        place = table_from_json(write.table_object).storage.location
        if text is not None:
            place = partition_from_json(text).storage.location
        if place is not None and is_emptied(self._resolve(place), write.write_id):
            return True
        given = _Given(table_name=write.table_name, event_id=commit.id, write_id=write.write_id)
        found = self._traces_of(write.table_name, commit.id, given)
        trace = None if found is None else found[1].emptied(write.partition, write.write_id)
        if trace is not None and trace.doubt is not None:
            self._doubt(write.table_name, given, trace.doubt)
        return trace is not None and trace.is_emptied

    def _writes(
        self, commit: NotificationEvent, given: _Given, known: Collection[str]
    ) -> Iterator[WriteEvent]:
        """A rename or drop may stand between the write id and the commit, in the transaction
        itself too (Hive's DDLTask): the name is followed from where the write id was given away.
        The replica knows the table by the name that it has when the commit is replayed.
        """
        name = self._fates.name_at(given.table_name, given.event_id, commit.id)
        if name is None or name in known or name in self._anew:
            return
        found = self._traces_of(name, commit.id, given)
        if found is None:
            return
        table, traces = found
        for trace in traces.of(given.write_id, commit.time_seconds * 1000):
            if trace.doubt is not None:
                self._doubt(name, given, trace.doubt)
            if trace.files or trace.is_emptied:
                yield _event(replace(table, name=name), given.write_id, trace)

    def _doubt(self, name: str, given: _Given, why: str) -> None:
        full_name = f"{self._database_name}.{name}"
        if why != _UNTOLD:
            self._doubted.append(name)
        self.doubts.append(f"write id {given.write_id} of {full_name} ({why})")

    def _traces_of(self, name: str, at: EventId, given: _Given) -> tuple[Table, WriteTraces] | None:
        """None for a table that was dropped since, and for one whose files do not come along."""
        for is_last in (False, True):
            now = self._fates.name_now(name, at)
            if now is None:
                return None
            try:
                return self._traces(now)
            except NoSuchObjectError:
                if is_last:
                    self._doubt(name, given, _UNTOLD)
            self._fates.read_again()  # it may have been dropped or renamed since the log was read
        return None

    def _traces(self, name: str) -> tuple[Table, WriteTraces] | None:
        """Looked up once for each table; None for one whose files do not come with commits."""
        if name not in self._tables:
            self._tables[name] = self._look(name)
        return self._tables[name]

    def _look(self, name: str) -> tuple[Table, WriteTraces] | None:
        table = self._source.get_table(self._database_name, name)
        if is_view(table) or is_external(table) or table.storage.location is None:
            return None
        return table, WriteTraces(self._source, self._resolve, table, self._archive)


def _event(table: Table, write_id: WriteId, trace: WriteTrace) -> WriteEvent:
    partition = trace.partition
    if partition is not None:
        partition = replace(partition, table_name=table.name)
    return WriteEvent(
        write_id=write_id,
        database_name=table.database_name,
        table_name=table.name,
        partition=(
            "" if partition is None else partition_name(table.partition_columns, partition.values)
        ),
        table_object=table_to_json(table),
        partition_object=None if partition is None else partition_to_json(partition),
        files=tuple(encode_uri(one) for one in trace.files),
    )


def lost_writes(database_name: str, doubts: Sequence[str], tables: Collection[str]) -> ReplError:
    """The refusal of a dump that may lack rows. ``tables``: names, where they are known."""
    ways_out = bring_anew(database_name, sorted(tables)) if tables else begin_anew(database_name)
    return ReplError(
        f"{counted_writes(doubts)} of database {database_name} came from clients that did not "
        f"tell which files they wrote: {'; '.join(doubts[:_NAMED_IN_MESSAGE])}. A compacted "
        "directory named here may have taken up those files since, and they are neither at their "
        "place nor known to the archive, or the table itself is gone without a word: the replica "
        f"would lack their rows. {ways_out}. Or, if you know that those statements wrote nothing "
        "(ALTER, ADD PARTITION, an UPDATE without a match), dump with --assume-empty"
    )


def counted_writes(doubts: Sequence[str]) -> str:
    """For messages."""
    return "1 write" if len(doubts) == 1 else f"{len(doubts)} writes"
