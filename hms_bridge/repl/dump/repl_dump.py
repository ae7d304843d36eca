"""REPL DUMP: a bootstrap or the events since the last dump, in Hive 4's layout.

Dump and load alternate: a dump that is not loaded yet blocks the next one. The finish marker is
written last; without it nobody reads the dump (docs/format/dump.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace

from changemanager.durable import settle_names, settle_tree
from changemanager.errors import ChangeManagerError
from changemanager.location import parse_uri
from changemanager.uri import EncodedUri
from hms_bridge.errors import EventGapError, ReplError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import FIRST_INCREMENTAL_PENDING, SOURCE_FOR, TARGET_FOR
from hms_bridge.model.txn import OpenTxns
from hms_bridge.repl.dump.archive import named_archive
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.external import external_list_text, list_external
from hms_bridge.repl.dump.incremental import IncrementalDump
from hms_bridge.repl.dump.named_files import pin_files
from hms_bridge.repl.dump.origin import require_same_log, write_origin
from hms_bridge.repl.dump.plain_tables import (
    PLAIN_TABLES,
    plain_places,
    read_plain,
    require_reported,
    write_plain,
)
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpReport, DumpRequest, blocked_by
from hms_bridge.repl.dump.scope_change import (
    AnewNames,
    LeftOutTables,
    ScopeChange,
    names_anew,
    require_covered,
    require_told,
    scope_of,
    table_list,
    tables_in,
)
from hms_bridge.repl.dump.size import DumpSize, dump_size
from hms_bridge.repl.dump.snapshot_wait import try_snapshot
from hms_bridge.repl.dump.tables import TablesDump, WrittenTables, transactional_names
from hms_bridge.repl.dump.tables_anew import (
    is_replaceable,
    read_names,
    require_known_names,
    without_tables,
)
from hms_bridge.repl.dump.verb import DumpVerb
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.manifest import FinishMark
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.format.scope_note import ScopeNote, read_scope_note
from hms_bridge.repl.format.side_texts import format_names
from hms_bridge.repl.format.texts import ensure_content, is_there
from hms_bridge.repl.lease import Lease
from hms_bridge.repl.non_recoverable import marking_dump
from hms_bridge.repl.remedies import begin_anew, handed_over
from hms_bridge.repl.target_objects import is_replica, require_files_of_hive, with_parameters


class ReplDump(DumpVerb):
    """Dumps from one metastore."""

    def plan(self, request: DumpRequest) -> DumpPlan:
        """Choose between bootstrap, incremental and nothing. Changes nothing.

        Raises EventGapError if events are gone, ReplError if the database cannot be dumped.
        """
        try:
            return self._plan(request)
        except (OSError, ChangeManagerError) as error:
            raise _unreachable(request, error) from error

    def run(self, plan: DumpPlan) -> DumpReport:
        """Carry a plan out. Raises ReplError if dumps have come or gone since it was made, or if
        another dump of the database is at work.

        A dump that fails leaves an unfinished directory behind, which nobody reads and the next
        dump removes.
        """
        if plan.kind in (DumpKind.NOTHING, DumpKind.BLOCKED):
            return DumpReport(kind=plan.kind, reason=plan.reason, directory=plan.previous)
        try:
            with self._alone(plan.request) as lease:
                return self._run(plan, lease)
        except (OSError, ChangeManagerError) as error:
            raise _unreachable(plan.request, error) from error

    def size(self, plan: DumpPlan) -> DumpSize:
        """How much a plan would name now. Changes nothing."""
        name = plan.request.database_name
        whole = {*plan.tables, *plan.anew}
        covered = tables_in(plan.scope_now, self._tables(name))
        tables = [table for table in covered if table.name in whole]
        named: Iterable[EncodedUri] = ()
        if plan.kind is DumpKind.INCREMENTAL:
            after, until = plan.after_event_id or EventId(0), plan.until_event_id or EventId(0)
            wanted = EventRange(after=after, until=until)
            left_out = LeftOutTables(frozenset(plan.anew), plan.scope_change)
            named = self._incremental(plan.request, wanted, left_out).files()
        return dump_size(self._source, self._resolve, name, tables, named)

    def marking(self, request: DumpRequest) -> AbstractContextManager[None]:
        """Where plan and run are to leave Hive's mark of what no further dump ends."""
        return marking_dump(
            self._resolve, request.root, request.database_name, self._clock, self._new_name
        )

    def _plan(self, request: DumpRequest) -> DumpPlan:
        name = request.database_name
        database = self._source.get_database(name)
        _require_source(database)
        if request.is_apart and not database.is_replication_source:
            raise ReplError(
                f"database {name} is no replication source any more, so nothing archives what is "
                f"replaced there; 'repl dump {name}' makes it one"
            )
        self._require_lasting(request)
        request = self._with_archive(request, database)
        dumps = list_dumps(self._resolve, request.root, name)
        previous = newest_finished(dumps, is_mark_ignored=request.is_bootstrap_forced)
        removed = () if request.is_previous_kept else tuple(dump.paths.root for dump in dumps)
        if previous is None:
            return self._plan_bootstrap(request, None, removed)
        if previous.state is DumpState.FINISHED:
            is_begun_anew = request.is_bootstrap_forced and request.is_waiting_replaced
            if not (is_begun_anew or (request.anew and is_replaceable(previous))):
                return blocked_by(request, previous.paths.root)
            # Also where older dumps are kept: all that it has is in the new one, and nobody loads
            # it.
            removed = removed or (previous.paths.root,)
        if request.is_bootstrap_forced:
            return self._plan_bootstrap(request, previous, removed)
        return self._plan_incremental(request, previous, removed)

    def _require_lasting(self, request: DumpRequest) -> None:
        """Raises ReplError where dumps would go with a table: in its directory."""
        root = self._resolve(request.root)
        real = parse_uri(root.uri).prefix + root.volume.real_path(root.path)
        # Either may lie in a table: the path as it is written, or where its links lead.
        for place in dict.fromkeys((root.uri, real)):
            holder = self._source.find_holder(place, request.database_name)
            if holder is not None:
                raise ReplError(
                    f"dumps below {root.uri} would go with {holder}, in whose directory they are; "
                    "set hive.repl.rootdir (or --root) to another directory, outside of the "
                    "warehouse"
                )

    def _with_archive(self, request: DumpRequest, database: Database) -> DumpRequest:
        cm_root = named_archive(
            self._resolve,
            request.cm_root,
            database,
            is_elsewhere_allowed=request.is_archive_elsewhere_allowed or not request.has_checksums,
        )
        return replace(request, cm_root=cm_root)

    def _plan_bootstrap(
        self, request: DumpRequest, previous: DumpDirectory | None, removed: tuple[str, ...]
    ) -> DumpPlan:
        scope = request.scope or scope_of(previous, request.database_name)
        tables = tables_in(scope, self._tables(request.database_name))
        for table in tables:
            require_files_of_hive(table)
        _, writers = try_snapshot(self._source, request.database_name, transactional_names(tables))
        return DumpPlan(
            kind=DumpKind.BOOTSTRAP,
            request=request,
            reason="a bootstrap was asked for"
            if request.is_bootstrap_forced
            else "there is no earlier dump to go on from",
            previous=None if previous is None else previous.paths.root,
            tables=tuple(listed.name for listed in tables),
            removed=removed,
            waits_for="" if writers is None else writers.text,
            scope=scope,
        )

    def _plan_incremental(
        self, request: DumpRequest, previous: DumpDirectory, removed: tuple[str, ...]
    ) -> DumpPlan:
        if previous.metadata is None:
            raise ReplError(
                f"{previous.paths.metadata} is missing. " + begin_anew(request.database_name)
            )
        after = previous.metadata.last_event_id
        until = self._source.get_current_event_id()
        wanted = EventRange(after=after, until=until)
        try:
            require_same_log(self._source, self._resolve, previous, wanted)
        except EventGapError as error:
            if is_there(self._resolve(previous.paths.beginning)):
                raise ReplError(handed_over(request.database_name)) from error
            raise
        asked = request.anew
        scope = scope_of(previous, request.database_name)
        change = ScopeChange(before=scope, now=request.scope or scope)
        require_told(change, is_told=request.is_scope_changed)
        if until == after and not asked and not change.is_modified:
            return DumpPlan(
                kind=DumpKind.NOTHING,
                request=request,
                reason=f"no event since the last dump, which ended at {after}",
                previous=previous.paths.root,
                after_event_id=after,
                until_event_id=until,
                scope=scope,
            )
        reason = f"events after {after}"
        if previous.state is DumpState.FINISHED:
            after = previous.metadata.from_event_id
            note = read_scope_note(self._resolve, previous.paths, scope)
            change = replace(change, before=note.before)
            # What comes by the scope is found anew: the range begins where that one's does.
            asked |= read_names(self._resolve, previous.paths) - note.names
            reason = f"in place of {previous.paths.root}: events after {after}"
        wanted = EventRange(after=after, until=until)
        require_covered(change, request.anew)
        if asked:
            require_known_names(self._source, request.database_name, wanted, asked)
        tables = self._tables(request.database_name) if change.is_limited else ()
        anew = names_anew(self._source, change, wanted, asked, tables)
        if anew.all:
            reason += f", and anew {', '.join(sorted(asked | anew.by_scope))}"
        if change.is_modified:
            reason += f"; the scope was {change.before.text}, and becomes {change.now.text}"
        dump = self._incremental(request, wanted, LeftOutTables(anew.all, change))
        return DumpPlan(
            kind=DumpKind.INCREMENTAL,
            request=request,
            reason=reason,
            previous=previous.paths.root,
            after_event_id=after,
            until_event_id=until,
            events=dump.count(),
            removed=removed,
            anew=tuple(sorted(asked | anew.by_scope)),
            asked=tuple(sorted(asked)),
            previous_event_id=previous.metadata.last_event_id,
            scope=change.now,
            scope_before=change.before,
        )

    def _incremental(
        self,
        request: DumpRequest,
        wanted: EventRange,
        left_out: LeftOutTables,
        *,
        txns_before: OpenTxns | None = None,
        replays_before: Replays | None = None,
    ) -> IncrementalDump:
        return IncrementalDump(
            self._source,
            database_name=request.database_name,
            wanted=wanted,
            cm_root=request.cm_root,
            rules=request.events,
            left_out=left_out,
            has_checksums=request.has_checksums,
            manifest=self._manifest,
            txns_before=txns_before,
            replays_before=replays_before,
        )

    def _tables(self, database: str) -> tuple[Table, ...]:
        names = self._source.get_tables(database)
        return self._source.get_tables_by_names(database, names) if names else ()

    def _run(self, plan: DumpPlan, lease: Lease) -> DumpReport:
        request = plan.request
        name = request.database_name
        dumps = self._dumps_as_planned(plan)
        pins = replace(self._pins(name), is_apart=request.is_apart)
        above = self._resolve(database_directory(request.root, name))
        pins.release_loaded(dumps, above.uri)
        # Before anything is read: the next dump may name what is archived from here on.
        began_at_ms = self._clock.now_ms()
        self._show_pins(request.cm_root)
        # First the pin: once the database is a source, no purge may take what is archived.
        pins.begin()
        self._mark_source(request)
        paths = DumpPaths(above.child(self._new_name()).uri)
        texts = NotedTexts(self._resolve, paths)
        if plan.kind is DumpKind.BOOTSTRAP:
            report, files = self._run_bootstrap(plan, paths, texts)
        else:
            report, files = self._run_incremental(plan, paths, texts)
        pin_files(self._resolve, pins, paths, files, name, self._tables(name))
        try:
            lease.check()
            self._dumps_as_planned(plan)
        except ReplError:
            pins.release(paths.root)
            raise
        # Dumps are ordered by these times, so a clock that was set back must not count.
        newest_ms = max((dump.time_ms for dump in dumps), default=0)
        mark = FinishMark(
            manifest_digest=texts.manifest(len(files)),
            time_ms=max(self._clock.now_ms(), newest_ms + 1),
        )
        dumped, marker = self._resolve(paths.root), self._resolve(paths.finished_dump)
        settle_tree(dumped.volume, dumped.path)  # a finished dump survives a loss of power whole
        ensure_content(marker, mark.format().encode())
        settle_names(marker.volume, marker.parent.path)
        # Not before the marker: without it the next dump goes on from an older one, and may name
        # what was archived since that began.
        pins.finish(began_at_ms)
        for directory in plan.removed:
            pins.release(directory)
        self._remove_older(name, plan.removed)
        return report

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

    def _mark_source(self, request: DumpRequest) -> None:
        """From now on replaced files of the database are archived (I4)."""
        database = self._source.get_database(request.database_name)
        _require_source(database)
        if not database.is_replication_source:
            self._source.alter_database(
                request.database_name, with_parameters(database, {SOURCE_FOR: request.policy})
            )

    def _run_bootstrap(
        self, plan: DumpPlan, paths: DumpPaths, texts: NotedTexts
    ) -> tuple[DumpReport, list[EncodedUri]]:
        """The event id comes before the snapshot: events between are in both, and may be."""
        request = plan.request
        name = request.database_name
        event_id = self._source.get_current_event_id()
        tables = tables_in(plan.scope_now, self._tables(name))
        write_plain(texts, paths, plain_places(self._source, self._resolve, tables))
        work = self._tables_dump(request, paths, texts, event_id)
        work.write_database()
        written = work.write(tables, request.external_base)
        files = [*written.all_files, *work.write_functions()]
        write_origin(self._source, texts, paths, event_id, written.until)
        texts.write(table_list(plan.scope_now, self._tables(name), paths))
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
            self._source, self._resolve, self._clock, request, paths, texts, event_id=event_id
        )

    def _run_incremental(
        self, plan: DumpPlan, paths: DumpPaths, texts: NotedTexts
    ) -> tuple[DumpReport, list[EncodedUri]]:
        request = plan.request
        name = request.database_name
        after = plan.after_event_id or EventId(0)
        change = plan.scope_change
        # Before the end of the range: what is dropped or renamed after it has no event in it.
        listed = self._tables(name)
        covered = tables_in(change.now, listed)
        now = plain_places(self._source, self._resolve, covered)
        write_plain(texts, paths, now)
        # In this order: whoever is not open now and has no event up to the end ended without one.
        txns_before = self._source.get_open_txns()
        until = self._source.get_current_event_id()
        wanted = EventRange(after=after, until=until)
        anew = names_anew(self._source, change, wanted, plan.asked, listed)
        previous = None if plan.previous is None else DumpPaths(plan.previous)
        dump = self._incremental(
            request,
            wanted,
            LeftOutTables(anew.all, change),
            txns_before=txns_before,
            replays_before=None if previous is None else Replays.read(self._resolve, previous),
        )
        if previous is not None and PLAIN_TABLES not in request.events.passed_kinds:
            before = read_plain(self._resolve, previous)
            seen = EventRange(after=plan.previous_event_id or after, until=until)
            require_reported(self._source, name, before, without_tables(now, anew.all), seen)
        write_origin(self._source, texts, paths, after, until)
        counts, files = dump.write(self._resolve, paths, texts)
        written = self._write_anew(plan, paths, texts, until, anew)
        if written is not None:
            files += written.all_files
        if request.external_base is not None:
            tables = tables_in(change.now, self._tables(name))
            directories = list_external(self._source, self._resolve, tables, request.external_base)
            texts.write(external_list_text(paths, directories))
        texts.write(table_list(change.now, self._tables(name), paths))
        texts.write_metadata(
            DumpType.INCREMENTAL,
            change.now,
            request.cm_root,
            after,
            until,
            is_scope_modified=change.is_modified,
        )
        report = DumpReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=paths.root,
            from_event_id=after,
            to_event_id=until,
            last_event_id=until,
            tables={} if written is None else written.counts,
            events=counts,
            file_count=len(files),
            removed=plan.removed,
            scope=change.now,
        )
        return report, files

    def _write_anew(
        self, plan: DumpPlan, paths: DumpPaths, texts: NotedTexts, until: EventId, names: AnewNames
    ) -> WrittenTables | None:
        """The tables that the dump brings whole; None if there are none."""
        change = plan.scope_change
        if change.is_limited:
            note = ScopeNote(before=change.before, names=names.by_scope)
            texts.write({paths.scope_note: note.format()})
        if not names.all:
            return None
        texts.write({paths.names_anew: format_names(names.all)})
        there = tables_in(change.now, self._tables(plan.request.database_name))
        others = tuple(table.name for table in there if table.name not in names.all)
        tables = [table for table in there if table.name in names.all]
        if not tables:
            return None
        work = self._tables_dump(plan.request, paths.tables_anew, texts, until)
        return work.write(tables, None, others)


def _require_source(database: Database) -> None:
    """Raises ReplError for a replica whose first incremental load has not come yet, or any."""
    if database.parameters.get(FIRST_INCREMENTAL_PENDING, "").lower() == "true":
        raise ReplError(
            f"database {database.name} was bootstrapped itself and waits for its first "
            "incremental load; load it, then dump"
        )
    if is_replica(database.parameters):
        raise ReplError(
            f"database {database.name} is a replica ({TARGET_FOR}); dump its source instead, or, "
            f"after a failover, make it a database of its own: repl end {database.name}"
        )


def _unreachable(request: DumpRequest, error: Exception) -> ReplError:
    return ReplError(
        f"dumping {request.database} below {request.root}: {error}. Check the file systems of the "
        "warehouse, the archive and the dump, then dump again"
    )
