"""REPL DUMP: a bootstrap or the events since the last dump, in Hive 4's layout.

Dump and load alternate: a dump that is not loaded yet blocks the next one. The finish marker is
written last; without it nobody reads the dump (docs/format/dump.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

from changemanager.durable import settle_names, settle_tree
from changemanager.uri import EncodedUri
from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.bootstrap import write_database
from hms_bridge.repl.dump.dropped import write_dropped
from hms_bridge.repl.dump.event_limit import ended_within
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.external import external_list_text, list_external
from hms_bridge.repl.dump.going_on import GoingOn
from hms_bridge.repl.dump.incremental import IncrementalDump
from hms_bridge.repl.dump.named_files import hold_named
from hms_bridge.repl.dump.origin import read_origin, write_origin
from hms_bridge.repl.dump.plain_tables import (
    PLAIN_TABLES,
    PlainPlaces,
    plain_places,
    read_plain,
    require_reported,
    write_plain,
)
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpReport, DumpRequest
from hms_bridge.repl.dump.planner import DumpPlanner
from hms_bridge.repl.dump.progress import DumpProgress, forget_progress
from hms_bridge.repl.dump.resumed import can_go_on, request_note, take_up
from hms_bridge.repl.dump.scope_change import (
    AnewNames,
    LeftOutTables,
    names_anew,
    table_list,
    tables_in,
)
from hms_bridge.repl.dump.size import DumpSize
from hms_bridge.repl.dump.source_mark import marked_source
from hms_bridge.repl.dump.tables import TablesDump, WrittenTables
from hms_bridge.repl.dump.tables_anew import read_names, without_tables
from hms_bridge.repl.dump.verb import DumpVerb
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.directories import (
    DumpDirectory,
    later_than,
    list_dumps,
    newest_finished,
)
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.manifest import FinishMark
from hms_bridge.repl.format.non_recoverable import marking_dump
from hms_bridge.repl.format.progress import DumpRange, WrittenEvent
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.format.scope_note import ScopeNote
from hms_bridge.repl.format.side_texts import format_names
from hms_bridge.repl.format.texts import ensure_content
from hms_bridge.repl.lease import Lease
from hms_bridge.repl.lookup import all_tables
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.storage import explained_refusals


class ReplDump(DumpVerb):
    """Dumps from one metastore."""

    def plan(self, request: DumpRequest) -> DumpPlan:
        """Choose between bootstrap, incremental and nothing. Changes nothing.

        Raises EventGapError if events are gone, ReplError if the database cannot be dumped.
        """
        with explained_refusals(partial(_unreachable, request)):
            return self._planner.plan(request)

    def run(self, plan: DumpPlan) -> DumpReport:
        """Carry a plan out. Raises ReplError if dumps have come or gone since it was made, or if
        another dump of the database is at work.

        A dump that fails leaves an unfinished directory behind, which nobody reads. The next dump
        goes on with it, or removes it.
        """
        request = plan.request
        news = self._news(request.database_name, request.root)
        if plan.kind in (DumpKind.NOTHING, DumpKind.BLOCKED):
            news.settle(is_alone=False)
            return DumpReport(kind=plan.kind, reason=plan.reason, directory=plan.previous)
        with (
            explained_refusals(partial(_unreachable, request)),
            self._alone(request, request.database_name) as lease,
        ):
            news.settle(is_alone=True)
            if plan.kind is DumpKind.DROP:
                return self._run_dropped(plan, lease)
            return self._run(plan, lease)

    def size(self, plan: DumpPlan) -> DumpSize:
        """How much a plan would name now. Changes nothing."""
        return self._planner.size(plan)

    def marking(self, request: DumpRequest) -> AbstractContextManager[None]:
        """Where plan and run are to leave Hive's mark of what no further dump ends."""
        return marking_dump(
            self._resolve, request.root, request.database_name, self._clock, self._new_name
        )

    @property
    def _planner(self) -> DumpPlanner:
        return DumpPlanner(source=self._source, resolve=self._resolve, manifest=self._manifest)

    def _run(self, plan: DumpPlan, lease: Lease) -> DumpReport:
        request = plan.request
        name = request.database_name
        dumps = self._dumps_as_planned(plan)
        pins = replace(self._pins(name, request.root), is_apart=request.is_apart)
        above = self._resolve(database_directory(request.root, name))
        pins.release_loaded(dumps, above.uri)
        # Before anything is read: the next dump may name what is archived from here on.
        began_at_ms = pins.now_ms()
        self._show_pins(request.cm_root)
        texts = NotedTexts(self._resolve, DumpPaths(above.child(self._new_name()).uri))
        if plan.resumed is not None:
            began_at_ms = min(began_at_ms, plan.resumed.began_at_ms)

        def require_unfinished() -> None:
            lease.check()
            self._dumps_as_planned(plan)

        with (
            marked_source(self._source, request, pins, require_unfinished),
            self._given_up_if_refused(texts.paths),
        ):
            if plan.kind is DumpKind.BOOTSTRAP:
                report, files = self._run_bootstrap(plan, texts)
            else:
                report, files = self._run_incremental(plan, texts, began_at_ms)
            self._finish(plan, report, pins, texts, files, lease)
        # Not before the marker: without it the next dump goes on from an older one, and may name
        # what was archived since that began.
        left_after = report.to_event_id if report.left_event_count else None
        left_since_ms = None if left_after is None else self._needed_since_ms(left_after)
        pins.finish(began_at_ms, left_since_ms)
        self._let_go(plan, pins)
        return report

    @contextmanager
    def _given_up_if_refused(self, paths: DumpPaths) -> Iterator[None]:
        """What is refused is made anew from nothing: were it gone on with, it might be again."""
        try:
            yield
        except ReplError:
            forget_progress(self._resolve, paths)
            raise

    def _run_dropped(self, plan: DumpPlan, lease: Lease) -> DumpReport:
        """The database's last dump: no next one needs an archived file."""
        name = plan.request.database_name
        dumps = self._dumps_as_planned(plan)
        above = self._resolve(database_directory(plan.request.root, name))
        pins = self._pins(name, plan.request.root)
        pins.release_loaded(dumps, above.uri)
        texts = NotedTexts(self._resolve, DumpPaths(above.child(self._new_name()).uri))
        report = write_dropped(self._source, texts, plan)
        self._finish(plan, report, pins, texts, [], lease)
        pins.end()
        self._let_go(plan, pins)
        return report

    def _finish(
        self,
        plan: DumpPlan,
        report: DumpReport,
        pins: DumpPins,
        texts: NotedTexts,
        files: list[EncodedUri],
        lease: Lease,
    ) -> None:
        """Pin what the dump names, and make it one that is read."""
        paths = texts.paths
        hold_named(self._source, self._resolve, pins, paths, files)
        try:
            lease.check()
            dumps = self._dumps_as_planned(plan)
        except ReplError:
            pins.release(paths.root)
            raise
        forget_progress(self._resolve, paths)
        mark = FinishMark(
            manifest_digest=texts.manifest(len(files)),
            time_ms=later_than(dumps, self._clock.now_ms()),
        )
        dumped, marker = self._resolve(paths.root), self._resolve(paths.finished_dump)
        with FilePool() as pool:  # a finished dump survives a loss of power whole
            settle_tree(dumped.volume, dumped.path, pool.all)
        news = self._news(plan.request.database_name, plan.request.root)
        if not plan.request.is_apart:
            news.announce(report, paths.root)
        ensure_content(marker, mark.format().encode())
        settle_names(marker.volume, marker.parent.path)
        news.finish(paths.root)

    def _let_go(self, plan: DumpPlan, pins: DumpPins) -> None:
        resumed = () if plan.resumed is None else (plan.resumed.directory,)
        for directory in (*plan.removed, *resumed):
            pins.release(directory)
        self._remove_older(plan.request.database_name, plan.removed)

    def _dumps_as_planned(self, plan: DumpPlan) -> tuple[DumpDirectory, ...]:
        """All dumps. Raises ReplError if another one was finished since the plan.

        Asked again before this one is finished: the other took it for abandoned and removed what
        it had written so far, so that tables or events may be missing in it.
        """
        request = plan.request
        name = request.database_name
        dumps = list_dumps(self._resolve, request.root, name)
        newest = newest_finished(dumps, is_mark_ignored=request.is_bootstrap_forced)
        if (None if newest is None else newest.paths.root) != plan.previous:
            raise ReplError(f"dumps of {name} have changed since the plan; plan the dump again")
        return dumps

    def _run_bootstrap(
        self, plan: DumpPlan, texts: NotedTexts
    ) -> tuple[DumpReport, list[EncodedUri]]:
        """The event id comes before the snapshot: events between are in both, and may be."""
        request, paths = plan.request, texts.paths
        name = request.database_name
        event_id = self._source.get_current_event_id()
        tables = tables_in(plan.scope_now, all_tables(self._source, name))
        write_plain(texts, plain_places(self._source, self._resolve, tables))
        work = self._tables_dump(request, paths, texts, event_id)
        write_database(self._source, texts, name, event_id)
        written = work.write(tables, request.external_base)
        files = [*written.all_files, *work.write_functions()]
        write_origin(self._source, texts, event_id, written.until)
        self._list_tables(plan.scope_now, texts)
        texts.write_metadata(
            DumpType.BOOTSTRAP, plan.scope_now, request.cm_root, event_id, written.until
        )
        report = DumpReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=paths.root,
            from_event_id=event_id,
            to_event_id=written.until,
            last_event_id=event_id,
            tables=written.counts,
            file_count=len(files),
            idle_txn_ids=written.idle_txn_ids,
            removed=plan.removed,
            scope=plan.scope_now,
        )
        return report, files

    def _tables_dump(
        self, request: DumpRequest, paths: DumpPaths, texts: NotedTexts, event_id: EventId
    ) -> TablesDump:
        return TablesDump(
            self._source,
            self._clock,
            request,
            paths,
            texts,
            event_id=event_id,
            on_waiting=self._on_waiting,
        )

    def _run_incremental(
        self, plan: DumpPlan, texts: NotedTexts, began_at_ms: int
    ) -> tuple[DumpReport, list[EncodedUri]]:
        request, paths = plan.request, texts.paths
        written = None if plan.resumed is None else take_up(self._resolve, plan.resumed, paths)
        name = request.database_name
        after, change = plan.wanted.after, plan.scope_change
        # Before the end of the range: what is dropped or renamed after it has no event in it.
        listed = all_tables(self._source, name)
        covered = tables_in(change.now, listed)
        now = plain_places(self._source, self._resolve, covered)
        write_plain(texts, now)
        # In this order: whoever is not open now and has no event up to the end ended without one.
        txns_before = self._source.get_open_txns()
        newest = self._source.get_current_event_id()
        whole = EventRange(after=after, until=newest)
        anew = names_anew(self._source, change, whole, plan.asked, listed)
        # What comes whole is as it is now.
        until = newest if anew.all else plan.end(newest)
        beyond = EventRange(after=until, until=newest)
        wanted = EventRange(after=after, until=until)
        previous = None if plan.previous is None else DumpPaths(plan.previous)
        dump = IncrementalDump(
            self._source,
            request,
            wanted,
            LeftOutTables(anew.all, change),
            manifest=self._manifest,
            txns_before=txns_before,
            replays_before=None if previous is None else Replays.read(self._resolve, previous),
            ended_later=ended_within(self._source, beyond),
        )
        progress = self._progress(
            plan, texts, wanted, began_at_ms, written, is_whole=bool(anew.all)
        )
        self._require_explained(plan, previous, without_tables(now, anew.all), newest)
        self._write_going_on(plan, texts, until, newest)
        noted_before = None if previous is None else read_origin(self._resolve, previous)
        write_origin(self._source, texts, after, until, noted_before)
        counts, files = dump.write(self._resolve, paths, texts, progress)
        whole_tables = self._write_anew(plan, texts, until, anew)
        if whole_tables is not None:
            files += whole_tables.all_files
        self._list_external(plan, texts)
        self._write_metadata(plan, texts, wanted)
        report = DumpReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=paths.root,
            from_event_id=after,
            to_event_id=until,
            last_event_id=until,
            tables={} if whole_tables is None else whole_tables.counts,
            events=counts,
            file_count=len(files),
            removed=plan.removed,
            left_event_count=newest - until,
            scope=change.now,
        )
        return report, files

    def _progress(
        self,
        plan: DumpPlan,
        texts: NotedTexts,
        wanted: EventRange,
        began_at_ms: int,
        written: Mapping[EventId, WrittenEvent] | None,
        *,
        is_whole: bool,
    ) -> DumpProgress:
        """What is noted of a dump that may be gone on with. ``is_whole``: tables come whole, as
        they are now and will not be again."""
        request = plan.request
        if is_whole and plan.resumed is not None:
            raise ReplError(
                f"tables of {request.database_name} come whole now, which they did not when the "
                "dump was planned; dump again"
            )
        if is_whole or plan.previous is None or not can_go_on(self._resolve, request):
            return DumpProgress(texts)
        begun = DumpRange(
            previous=plan.previous,
            after=wanted.after,
            until=wanted.until,
            began_at_ms=began_at_ms,
            request=request_note(request),
        )
        return DumpProgress(texts, begun, written, request.events.noted_each)

    def _require_explained(
        self, plan: DumpPlan, previous: DumpPaths | None, now: PlainPlaces, newest: EventId
    ) -> None:
        """Raises ReplError if files of tables without transactions changed without an event."""
        if previous is None or PLAIN_TABLES in plan.request.events.passed_kinds:
            return
        # The next dump has the events beyond; these tables are as they are now. What is left of a
        # limit, before that look, explains nothing after it.
        after = plan.files_seen_at or plan.wanted.after
        seen = EventRange(after=after, until=newest)
        before = read_plain(self._resolve, previous)
        require_reported(self._source, plan.request.database_name, before, now, seen)

    def _list_external(self, plan: DumpPlan, texts: NotedTexts) -> None:
        """The directories of external tables, if their data is dumped."""
        base = plan.request.external_base
        if base is None:
            return
        tables = tables_in(plan.scope_now, all_tables(self._source, plan.request.database_name))
        directories = list_external(self._source, self._resolve, tables, base)
        texts.write(external_list_text(texts.paths, directories))

    def _write_metadata(self, plan: DumpPlan, texts: NotedTexts, covered: EventRange) -> None:
        """What the dump covers: the tables, and the events."""
        change = plan.scope_change
        self._list_tables(change.now, texts)
        texts.write_metadata(
            DumpType.INCREMENTAL,
            change.now,
            plan.request.cm_root,
            covered.after,
            covered.until,
            is_scope_modified=change.is_modified,
        )

    def _list_tables(self, scope: ReplScope, texts: NotedTexts) -> None:
        """Hive's list of what a limited scope covers; a whole database is not asked for it."""
        if not scope.is_whole_database:
            tables = all_tables(self._source, scope.database_name)
            texts.write(table_list(scope, tables, texts.paths))

    def _write_going_on(
        self, plan: DumpPlan, texts: NotedTexts, until: EventId, newest: EventId
    ) -> None:
        together = plan.at_least or EventId(0)
        if plan.previous is not None and read_names(self._resolve, DumpPaths(plan.previous)):
            together = until
        if together > plan.wanted.after or newest > until:
            note = GoingOn(together_until=together, files_seen_at=newest)
            texts.write({texts.paths.going_on: note.format()})

    def _write_anew(
        self, plan: DumpPlan, texts: NotedTexts, until: EventId, names: AnewNames
    ) -> WrittenTables | None:
        """The tables that the dump brings whole; None if there are none."""
        change, paths = plan.scope_change, texts.paths
        if change.is_limited:
            note = ScopeNote(before=change.before, names=names.by_scope)
            texts.write({paths.scope_note: note.format()})
        if not names.all:
            return None
        texts.write({paths.names_anew: format_names(names.all)})
        there = tables_in(change.now, all_tables(self._source, plan.request.database_name))
        others = tuple(table.name for table in there if table.name not in names.all)
        tables = [table for table in there if table.name in names.all]
        if not tables:
            return None
        work = self._tables_dump(plan.request, paths.tables_anew, texts, until)
        return work.write(tables, None, others)


def _unreachable(request: DumpRequest, error: Exception) -> str:
    return (
        f"dumping {request.database} below {request.root}: {error}. Check the file systems of the "
        "warehouse, the archive and the dump, then dump again"
    )
