"""Write the events of a range as an incremental dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from changemanager.uri import EncodedUri
from hms_bridge.errors import EventGapError
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxns, TxnState, TxnType, WriteEvent
from hms_bridge.repl.dump.event_source import EventRange, concerns, left_out_events, read_events
from hms_bridge.repl.dump.events import EventTexts, EventWriter
from hms_bridge.repl.dump.functions import FunctionFiles, NamedFunction, created_function
from hms_bridge.repl.dump.partition_changes import (
    PartitionChanges,
    WriteVisibility,
    changed_under_writer,
)
from hms_bridge.repl.dump.plan import DumpRequest, EventCounts
from hms_bridge.repl.dump.progress import DumpProgress
from hms_bridge.repl.dump.scope_change import LeftOutTables, is_renamed_away
from hms_bridge.repl.dump.table_names import TableNames
from hms_bridge.repl.dump.table_writes import Archive
from hms_bridge.repl.dump.tables_anew import names_of_event
from hms_bridge.repl.dump.unreported_writes import (
    UnreportedWrites,
    earlier_allocations,
    lost_writes,
)
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
)
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.format.files_list import format_files
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths, EventPaths
from hms_bridge.repl.format.progress import WrittenEvent
from hms_bridge.repl.format.replays import Replays, still_open
from hms_bridge.wire.convert_function import function_from_struct
from hms_bridge.wire.object_json import struct_from_json


@dataclass(frozen=True, kw_only=True, slots=True)
class _MadeEvent:
    """An event and what its directory gets. ``is_final``: nothing more is to be said of it at the
    end of the dump."""

    event: NotificationEvent
    place: EventPaths
    texts: EventTexts
    is_final: bool = False


def _texts_of(written: WrittenEvent) -> EventTexts:
    """Of an event that is there already: nothing to be written, and the files that it names."""
    return EventTexts(type=written.kind, texts={}, jars=written.files)


def _written(texts: NotedTexts, made: _MadeEvent) -> tuple[_MadeEvent, Mapping[str, str]]:
    lists = {of_place.path: format_files(of_place.files) for of_place in made.texts.lists}
    return made, texts.write(lists | dict(made.texts.texts))


class IncrementalDump:
    """The events of one range that a request asks for; without those of tables ``left_out``.

    ``txns_before``: the source's, asked for before its newest event was; ``replays_before``: what
    the dump before names. ``ended_later``: what events end between the end of the range and that
    event."""

    def __init__(
        self,
        source: Metastore,
        request: DumpRequest,
        wanted: EventRange,
        left_out: LeftOutTables,
        *,
        manifest: ArchiveManifest | None = None,
        txns_before: OpenTxns | None = None,
        replays_before: Replays | None = None,
        ended_later: frozenset[TxnId] = frozenset(),
    ) -> None:
        self._ended_later = ended_later
        self._txns_before = txns_before
        self._replays_before = replays_before or Replays()
        self._source = source
        self._database_name = request.database_name
        self._wanted = wanted
        self._rules = request.events
        self._left_out = left_out
        self._has_checksums = request.has_checksums
        self._manifest = manifest
        self._writer = EventWriter(
            database_name=request.database_name,
            cm_root=request.cm_root,
            has_checksums=request.has_checksums,
            passed_kinds=request.events.passed_kinds,
        )
        self._function_files: FunctionFiles | None = None
        self._partition_changes = PartitionChanges(source, request.database_name)
        self._passed: Counter[str] = Counter()
        self._left_out_count = 0
        self._opened: set[TxnId] = set()
        self._allocated: set[TxnId] = set()
        self._ended: set[TxnId] = set()

    def count(self) -> EventCounts:
        """Go through the range without writing. Raises as ``write`` does."""
        dumped = Counter(made.texts.type for made in self._texts(DumpPaths("/plan"), None))
        return self._counts(dumped)

    def files(self) -> Iterator[EncodedUri]:
        """What the events name, without writing; writes that nobody reported are not looked for."""
        for made in self._texts(DumpPaths("/plan"), None):
            yield from made.texts.files

    def write(
        self,
        resolve: Resolver,
        paths: DumpPaths,
        texts: NotedTexts,
        progress: DumpProgress | None = None,
    ) -> tuple[EventCounts, list[EncodedUri]]:
        """Write every event but those that ``progress`` has, then the progress file. Returns also
        the files that are named.

        Raises EventGapError if events are gone, ReplError for one that no dump can carry, and for
        a write whose files were compacted away without a trace.
        """
        dumped: Counter[str] = Counter()
        files: list[EncodedUri] = []
        progress = progress or DumpProgress(texts)
        self._function_files = FunctionFiles(
            resolve=resolve, cm_root=self._writer.cm_root if self._has_checksums else None
        )
        unreported = UnreportedWrites(
            self._source,
            resolve,
            self._database_name,
            Archive(cmroot=self._writer.cm_root, manifest=self._manifest),
            TableNames(self._source, self._database_name, self._wanted.after),
            self._partition_changes,
            self._left_out,
        )
        with FilePool() as pool:
            made = self._noted(self._texts(paths, unreported, progress), dumped, files)
            for event, digests in pool.each(partial(_written, texts), made):
                if event.is_final:
                    progress.add(event.event, event.place, event.texts, digests)
        progress.end()
        # At the end, so that the refusal names all of them; nobody reads a dump without its marker.
        if unreported.unknown_writes and not self._rules.is_unknown_empty:
            tables = unreported.unknown_tables
            raise lost_writes(self._database_name, unreported.unknown_writes, tables)
        events_dump = EventsDump(
            last_event_id=self._wanted.until,
            event_count=sum(dumped.values()),
            is_batched=self._rules.batch_size is not None,
        )
        texts.write({paths.open_txns: f"{self._open_txns()}\n"})
        if self._txns_before is not None:
            known = self._replays_before.all | self._opened | self._allocated
            replays = still_open(known - self._ended, self._txns_before, self._ended_later)
            texts.write({paths.replays: replays.format()})
        texts.write({paths.events_dump: events_dump.format()})
        counts = replace(self._counts(dumped), assumed_empty=tuple(unreported.unknown_writes))
        return counts, files

    def _noted(
        self, made: Iterable[_MadeEvent], dumped: Counter[str], files: list[EncodedUri]
    ) -> Iterator[_MadeEvent]:
        """Each event, which is counted and its files added."""
        for event in made:
            dumped[event.texts.type] += 1
            files += event.texts.files
            yield event

    def _counts(self, dumped: Counter[str]) -> EventCounts:
        return EventCounts(
            dumped=dict(dumped), passed=dict(self._passed), left_out_count=self._left_out_count
        )

    def _texts(
        self,
        paths: DumpPaths,
        unreported: UnreportedWrites | None,
        progress: DumpProgress | None = None,
    ) -> Iterator[_MadeEvent]:
        left_out = left_out_events(
            self._source, self._wanted, self._database_name, is_filtered=self._rules.is_filtered
        )
        self._passed, self._left_out_count = Counter(), 0
        self._opened, self._allocated, self._ended = set(), set(), set()
        size, written = self._rules.batch_size, 0
        for event in read_events(self._source, self._wanted):
            if event.id in left_out or not concerns(event, self._database_name):
                self._left_out_count += 1
                continue
            is_renamed = is_renamed_away(event, self._left_out)
            if not is_renamed and self._is_left_out(event):
                self._left_out_count += 1
                continue
            place = paths.event(int(event.id), None if size is None else written // size + 1)
            taken_over = None if progress is None else progress.take_over(event, place)
            if taken_over is not None:
                self._note_txns(event, unreported)
                written += 1
                yield _MadeEvent(event=event, place=place, texts=_texts_of(taken_over))
                continue
            unknown_count = 0 if unreported is None else len(unreported.unknown_writes)
            writes = self._writes(event, unreported)
            texts = (
                self._writer.rename_away(event, place)
                if is_renamed
                else self._writer.write(
                    event,
                    place,
                    writes,
                    self._emptied(event, writes, unreported),
                    self._created(event),
                )
            )
            if texts is None:
                self._passed[event.type] += 1
                continue
            written += 1
            # Else who goes on with the dump would not hear of the writes that nobody knows.
            is_final = unreported is None or len(unreported.unknown_writes) == unknown_count
            yield _MadeEvent(event=event, place=place, texts=texts, is_final=is_final)

    def _is_left_out(self, event: NotificationEvent) -> bool:
        if not self._left_out.is_any:
            return False
        return any(name in self._left_out for name in names_of_event(event, self._database_name))

    def _writes(
        self, event: NotificationEvent, unreported: UnreportedWrites | None
    ) -> tuple[WriteEvent, ...]:
        """What a commit wrote and the source shows; nothing for an event of another kind."""
        self._note_txns(event, unreported)
        if event.type != EventType.COMMIT_TXN.value:
            return ()
        commit = CommitTxnPayload.of(event)
        notified = self._source.get_write_events(commit.txn_id, self._database_name)
        reported = tuple(write for write in notified if write.target.table not in self._left_out)
        if unreported is None:
            return reported
        if commit.txn_id not in self._opened:
            self._note_earlier(commit, reported, unreported)
        traced = unreported.find(event, commit.txn_id, notified)
        shown = (
            self._with_checksums(event, write, unreported)
            for write in reported
            if self._is_of_table(event, commit.txn_id, write, unreported)
            and self._is_seen(event, commit.txn_id, write, unreported)
        )
        return (*shown, *(write for write in traced if write.target.table not in self._left_out))

    def _note_txns(self, event: NotificationEvent, unreported: UnreportedWrites | None) -> None:
        """Transactions that an event opens, ends or allocates write ids for."""
        if event.type == EventType.OPEN_TXN.value:
            self._opened.update(OpenTxnPayload.of(event).txn_ids)
        elif event.type == EventType.COMMIT_TXN.value:
            self._ended.add(CommitTxnPayload.of(event).txn_id)
        elif event.type == EventType.ABORT_TXN.value:
            self._ended.add(AbortTxnPayload.of(event).txn_id)
        elif event.type == EventType.ALLOC_WRITE_ID.value and unreported is not None:
            payload = AllocWriteIdPayload.of(event)
            unreported.note(event.id, payload.table_name, payload.allocated)
            self._allocated.update(pair.txn_id for pair in payload.allocated)

    def _with_checksums(
        self, event: NotificationEvent, write: WriteEvent, unreported: UnreportedWrites
    ) -> WriteEvent:
        """A write that was reported before the database was a source came without checksums; its
        files may be in the archive since, where they are found by checksum only."""
        if not self._has_checksums or self._writer.cm_root is None:
            return write
        return unreported.with_checksums(event, write)

    def _is_of_table(
        self,
        event: NotificationEvent,
        txn_id: TxnId,
        write: WriteEvent,
        unreported: UnreportedWrites,
    ) -> bool:
        """Not if its table was dropped under it. Raises ReplError if it was renamed: what was
        written before is seen under the new name, what was written after is not."""
        allocated = unreported.allocated_at(txn_id, write)
        if allocated is None:
            return True
        name = unreported.name_at(write.target.table, allocated, event.id)
        if name in (None, write.target.table):
            return name is not None
        if name in self._left_out:
            return False
        raise changed_under_writer(event, write.target.database, write.target.table, str(name))

    def _created(self, event: NotificationEvent) -> NamedFunction | None:
        """The function of a CREATE FUNCTION; None for one that the replica does without."""
        if event.type != EventType.CREATE_FUNCTION.value:
            return None
        if event.type in self._rules.passed_kinds:
            return None
        payload = Payload.of(event)
        function = function_from_struct(
            struct_from_json("Function", payload.text("functionObjJson"))
        )
        return created_function(self._source, self._function_files, function)

    def _emptied(
        self,
        commit: NotificationEvent,
        writes: Sequence[WriteEvent],
        unreported: UnreportedWrites | None,
    ) -> tuple[Target, ...]:
        """Tables and partitions that were overwritten with nothing."""
        if unreported is None:
            return ()
        return tuple(
            write.target
            for write in writes
            if not write.files and unreported.is_emptied(commit, write)
        )

    def _is_seen(
        self,
        event: NotificationEvent,
        txn_id: TxnId,
        write: WriteEvent,
        unreported: UnreportedWrites,
    ) -> bool:
        """Not if its partition was dropped under it. Raises ReplError where that is not sure."""
        if not write.partition:
            return True
        where = f"{write.target.table}/{write.partition}"
        allocated = unreported.allocated_at(txn_id, write)
        try:
            if allocated is None:
                allocated = self._wanted.after
            visibility = self._partition_changes.visibility(
                write.target.table, write.partition, allocated, event.id
            )
        except EventGapError as error:
            raise changed_under_writer(event, write.target.database, where) from error
        if visibility is WriteVisibility.UNKNOWN:
            raise changed_under_writer(event, write.target.database, where)
        return visibility is WriteVisibility.VISIBLE

    def _note_earlier(
        self,
        commit: CommitTxnPayload,
        reported: Sequence[WriteEvent],
        unreported: UnreportedWrites,
    ) -> None:
        """A transaction from before the range: it may have got write ids there."""
        try:
            for event_id, payload in earlier_allocations(
                self._source, self._database_name, commit.txn_id, self._wanted.after
            ):
                own = [pair for pair in payload.allocated if pair.txn_id == commit.txn_id]
                unreported.note(event_id, payload.table_name, own)
        except EventGapError:
            # Who reported something is taken at their word; else it may have written anything.
            if not reported:
                unreported.unknown_writes.append(
                    f"transaction {commit.txn_id} (the notification log does not go back to where "
                    f"transaction {commit.txn_id} was opened)"
                )

    def _open_txns(self) -> str:
        """Source transactions that are open now, or were at the end of the range: what a target
        keeps open after the load. Hive's load aborts all others."""
        opened = self._source.get_open_txns()
        now = [
            txn.id
            for txn in opened.txns
            if txn.state is TxnState.OPEN and txn.type is TxnType.DEFAULT
        ]
        return ",".join(str(txn_id) for txn_id in sorted({*now, *self._ended_later}))
