"""What a dump is to be: a bootstrap, the events since the last one, nothing; decided by reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from changemanager.uri import EncodedUri
from hms_bridge.errors import EventGapError, NoSuchObjectError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import FIRST_INCREMENTAL_PENDING, TARGET_FOR, is_true
from hms_bridge.repl.dump.archive import named_archive, require_dumps_beside
from hms_bridge.repl.dump.dropped import is_drop_loaded, plan_dropped
from hms_bridge.repl.dump.event_limit import limited_end
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.going_on import read_going_on
from hms_bridge.repl.dump.incremental import IncrementalDump
from hms_bridge.repl.dump.origin import require_same_log
from hms_bridge.repl.dump.place import require_lasting
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpRequest, blocked_by
from hms_bridge.repl.dump.resumed import find_unfinished
from hms_bridge.repl.dump.scope_change import (
    AnewNames,
    LeftOutTables,
    ScopeChange,
    names_anew,
    require_covered,
    require_meant,
    scope_of,
    tables_in,
)
from hms_bridge.repl.dump.size import DumpSize, dump_size
from hms_bridge.repl.dump.snapshot_wait import try_snapshot
from hms_bridge.repl.dump.tables import transactional_names
from hms_bridge.repl.dump.tables_anew import (
    is_replaceable,
    read_names,
    require_known_names,
)
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.format.dump_metadata import DumpMetadata
from hms_bridge.repl.format.scope_note import read_scope_note
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.lookup import all_tables
from hms_bridge.repl.remedies import begin_anew, handed_over
from hms_bridge.repl.successor import require_no_successor
from hms_bridge.repl.target_objects import is_replica, require_files_of_hive


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpPlanner:
    """Plans dumps of one metastore, and reads what a plan and its execution both ask for."""

    source: Metastore
    resolve: Resolver
    manifest: ArchiveManifest | None

    def plan(self, request: DumpRequest) -> DumpPlan:
        """See ReplDump.plan; what the file systems say comes as it is."""
        name = request.database_name
        try:
            database = self.source.get_database(name)
        except NoSuchObjectError:
            dropped = plan_dropped(self.source, self.resolve, request)
            if dropped is None:
                raise
            return dropped
        require_dumpable(database)
        if request.is_apart and not database.is_replication_source:
            raise ReplError(
                f"database {name} is no replication source any more, so nothing archives what is "
                f"replaced there; 'repl dump {name}' makes it one"
            )
        require_lasting(self.source, self.resolve, request)
        request = self._with_archive(request, database)
        dumps = list_dumps(self.resolve, request.root, name)
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
        if request.is_bootstrap_forced or is_drop_loaded(self.resolve, previous):
            return self._plan_bootstrap(request, previous, removed)
        return self._going_on(self._plan_incremental(request, previous, removed), previous, dumps)

    def _going_on(
        self, plan: DumpPlan, previous: DumpDirectory, dumps: tuple[DumpDirectory, ...]
    ) -> DumpPlan:
        """The same with an unfinished dump to go on with, if there is one that is of it."""
        whole = plan.anew or plan.scope_change.is_modified
        if plan.kind is not DumpKind.INCREMENTAL or whole or plan.until_event_id is None:
            return plan
        newest = EventId(plan.until_event_id + plan.left_event_count)
        log = EventRange(after=plan.wanted.after, until=newest)
        resumed = find_unfinished(self.resolve, plan.request, dumps, previous, log)
        if resumed is None:
            return plan
        wanted = EventRange(after=plan.wanted.after, until=resumed.until)
        left_out = LeftOutTables(frozenset(), plan.scope_change)
        return replace(
            plan,
            reason=f"{plan.reason}; goes on with {resumed.directory}, which was killed",
            until_event_id=resumed.until,
            events=self._events(plan.request, wanted, left_out).count(),
            removed=tuple(path for path in plan.removed if path != resumed.directory),
            left_event_count=newest - resumed.until,
            resumed=resumed,
        )

    def _with_archive(self, request: DumpRequest, database: Database) -> DumpRequest:
        cm_root = named_archive(
            self.resolve,
            request.cm_root,
            database,
            is_elsewhere_allowed=request.is_archive_elsewhere_allowed or not request.has_checksums,
        )
        if cm_root is not None:
            require_dumps_beside(self.resolve, request.root, cm_root)
        return replace(request, cm_root=cm_root)

    def _plan_bootstrap(
        self, request: DumpRequest, previous: DumpDirectory | None, removed: tuple[str, ...]
    ) -> DumpPlan:
        scope = request.scope or scope_of(previous, request.database_name)
        tables = tables_in(scope, all_tables(self.source, request.database_name))
        for table in tables:
            require_files_of_hive(table)
        _, writers = try_snapshot(self.source, request.database_name, transactional_names(tables))
        return DumpPlan(
            kind=DumpKind.BOOTSTRAP,
            request=request,
            reason="a bootstrap was asked for"
            if request.is_bootstrap_forced
            else "there is no earlier dump to go on from"
            if previous is None
            else f"{previous.paths.root} told of a drop, and the database is there again",
            previous=None if previous is None else previous.paths.root,
            tables=tuple(listed.name for listed in tables),
            removed=removed,
            waits_for="" if writers is None else writers.text,
            scope=scope,
        )

    def _plan_incremental(
        self, request: DumpRequest, previous: DumpDirectory, removed: tuple[str, ...]
    ) -> DumpPlan:
        metadata = self._known(previous, request.database_name)
        after, newest = metadata.last_event_id, self.source.get_current_event_id()
        self._require_going_on(request, previous, EventRange(after=after, until=newest))
        asked = request.anew
        scope = scope_of(previous, request.database_name)
        change = ScopeChange(before=scope, now=request.scope or scope)
        require_meant(change, is_meant=request.is_scope_changed)
        if newest == after and not asked and not change.is_modified:
            return DumpPlan(
                kind=DumpKind.NOTHING,
                request=request,
                reason=f"no event since the last dump, which ended at {after}",
                previous=previous.paths.root,
                after_event_id=after,
                until_event_id=newest,
                scope=scope,
            )
        reason = f"events after {after}"
        came_whole = read_names(self.resolve, previous.paths)
        if previous.state is DumpState.FINISHED:
            after = metadata.from_event_id
            note = read_scope_note(self.resolve, previous.paths, scope)
            change = replace(change, before=note.before)
            # What comes by the scope is found anew: the range begins where that one's does.
            asked |= came_whole - note.names
            reason = f"in place of {previous.paths.root}: events after {after}"
        anew = self._checked_anew(request, change, EventRange(after=after, until=newest), asked)
        if anew.all:
            reason += f", and anew {', '.join(sorted(asked | anew.by_scope))}"
        if change.is_modified:
            reason += f"; the scope was {change.before.text}, and becomes {change.now.text}"
        # Write ids of what comes whole may be there already in the next load, and in no later one.
        is_whole = bool(anew.all or came_whole)
        limit = None if is_whole or change.is_modified else request.event_limit
        going_on = read_going_on(self.resolve, previous.paths, metadata.last_event_id)
        at_least = max(metadata.to_event_id, going_on.together_until)
        until = limited_end(after, newest, limit, at_least=at_least)
        wanted = EventRange(after=after, until=until)
        return DumpPlan(
            kind=DumpKind.INCREMENTAL,
            request=request,
            reason=reason,
            previous=previous.paths.root,
            after_event_id=after,
            until_event_id=until,
            events=self._events(request, wanted, LeftOutTables(anew.all, change)).count(),
            removed=removed,
            anew=tuple(sorted(asked | anew.by_scope)),
            asked=tuple(sorted(asked)),
            files_seen_at=going_on.files_seen_at,
            event_limit=limit,
            at_least=at_least,
            left_event_count=newest - until,
            scope=change.now,
            scope_before=change.before,
        )

    def _known(self, previous: DumpDirectory, database: str) -> DumpMetadata:
        if previous.metadata is None:
            raise ReplError(f"{previous.paths.metadata} is missing. " + begin_anew(database))
        return previous.metadata

    def _require_going_on(
        self, request: DumpRequest, previous: DumpDirectory, wanted: EventRange
    ) -> None:
        try:
            require_same_log(self.source, self.resolve, previous, wanted)
        except EventGapError as error:
            if is_there(self.resolve(previous.paths.beginning)):
                raise ReplError(handed_over(request.database_name)) from error
            raise

    def _checked_anew(
        self, request: DumpRequest, change: ScopeChange, wanted: EventRange, asked: frozenset[str]
    ) -> AnewNames:
        require_covered(change, request.anew)
        if asked:
            require_known_names(self.source, request.database_name, wanted, asked)
        tables = all_tables(self.source, request.database_name) if change.is_limited else ()
        return names_anew(self.source, change, wanted, asked, tables)

    def _events(
        self, request: DumpRequest, wanted: EventRange, left_out: LeftOutTables
    ) -> IncrementalDump:
        return IncrementalDump(self.source, request, wanted, left_out, manifest=self.manifest)

    def size(self, plan: DumpPlan) -> DumpSize:
        """See ReplDump.size."""
        if plan.kind is DumpKind.DROP:
            return DumpSize()
        name = plan.request.database_name
        whole = {*plan.tables, *plan.anew}
        covered = tables_in(plan.scope_now, all_tables(self.source, name))
        tables = [table for table in covered if table.name in whole]
        named: Iterable[EncodedUri] = ()
        if plan.kind is DumpKind.INCREMENTAL:
            left_out = LeftOutTables(frozenset(plan.anew), plan.scope_change)
            named = self._events(plan.request, plan.wanted, left_out).files()
        return dump_size(self.source, self.resolve, name, tables, named)


def require_dumpable(database: Database) -> None:
    """Raises ReplError for a replica whose first incremental load has not come yet, or any, and for
    a source whose place another database took."""
    if is_true(database.parameters, FIRST_INCREMENTAL_PENDING):
        raise ReplError(
            f"database {database.name} was bootstrapped itself and waits for its first "
            "incremental load; load it, then dump"
        )
    require_no_successor(database)
    if is_replica(database.parameters):
        raise ReplError(
            f"database {database.name} is a replica ({TARGET_FOR}); dump its source instead, or, "
            f"after a failover, make it a database of its own: repl end {database.name}"
        )
