"""What a load is to be: which dump, what of it, whether it fits here; decided by reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from changemanager.containment import ResolverWithin
from changemanager.location import Resolver
from hms_bridge.errors import EventGapError, IncompatibleError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import CHECKPOINT, INCOMPATIBLE, is_true
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.format.layout import database_directory
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.verify import VerifyReport, verify_reader
from hms_bridge.repl.load.admission import Admission, require_manifest
from hms_bridge.repl.load.bootstrap import (
    check_bootstrap,
    check_tables,
    check_tables_anew,
    lacks_tables,
)
from hms_bridge.repl.load.dropped import drop_event, is_dropped_already, plan_drop
from hms_bridge.repl.load.external import require_there
from hms_bridge.repl.load.functions import require_root
from hms_bridge.repl.load.handed_over import refuse_successor, require_whole
from hms_bridge.repl.load.incremental import plan_incremental
from hms_bridge.repl.load.named_archive import require_archive
from hms_bridge.repl.load.own_source import (
    METASTORE_HINT,
    is_unloaded_source,
    own_source,
    refuse_own_source,
    tables_of_events,
)
from hms_bridge.repl.load.plan import LoadKind, LoadPlan, LoadRequest
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.same_source import require_same_source
from hms_bridge.repl.load.scope import lacks_scope, refuse_foreign, require_scope
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.target_objects import replica_event

_TABLES_COMPARED = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadPlanner:
    """Plans loads into one metastore, and reads what a plan and its execution both ask for."""

    target: Metastore
    resolve: Resolver
    admission: Admission

    def plan(self, request: LoadRequest) -> LoadPlan:
        """See ReplLoad.plan; what the file systems say comes as it is."""
        refuse_successor(self._replica(request).find_database())
        dump = self.newest(request)
        reader = DumpReader(self.resolve, dump.paths, request.rules)
        database = self._replica(request).find_database()
        require_same_source(reader, database)
        plan = LoadPlan(
            kind=LoadKind.NOTHING, request=request, reason="", directory=dump.paths.root
        )
        if is_dropped_already(self.resolve, reader, dump.state, database):
            why = f"{dump.paths.root} told of a drop, and the database is not there any more"
            return replace(plan, reason=why)
        if dump.state is DumpState.LOADED:
            stands_at = self.stands_at(request)
            if stands_at is None:
                raise self._loaded_elsewhere(request, dump.paths.root)
            if self._has_all(request, dump, stands_at):
                why = f"{dump.paths.root} is loaded already, and there is no newer dump"
                return replace(plan, reason=why, stands_at=stands_at)
            # Another replica loaded it, or this one was restored to an earlier state since.
        if reader.source_database != request.names.source_database:
            raise ReplError(
                f"{dump.paths.root} is a dump of {reader.source_database}, not of "
                f"{request.names.source_database}"
            )
        reader.require_known()
        if not request.is_from_hive:
            require_manifest(reader)
        if reader.is_bootstrap:
            return replace(self._plan_bootstrap(request, reader), state=dump.state)
        dropped = drop_event(reader)
        if dropped is not None:
            stands_at = None if database is None else self._incremental_start(request, reader)
            plan = plan_drop(request, reader, dropped, database, stands_at)
            return replace(plan, state=dump.state)
        return replace(self._plan_incremental(request, reader), state=dump.state)

    def _has_all(self, request: LoadRequest, dump: DumpDirectory, stands_at: EventId) -> bool:
        """Whether the target has what a loaded dump brought; whole tables need no event for it, nor
        does another scope."""
        if dump.metadata is None or stands_at != dump.metadata.last_event_id:
            return dump.metadata is None or stands_at > dump.metadata.last_event_id
        reader = DumpReader(self.resolve, dump.paths, request.rules)
        replica = self._replica(request)
        if reader.is_bootstrap:
            return True
        return not (lacks_tables(reader, replica) or lacks_scope(reader, replica))

    def _loaded_elsewhere(self, request: LoadRequest, directory: str) -> ReplError:
        database = self._replica(request).find_database()
        if is_unloaded_source(database):
            return own_source(directory, request.names.target_database)
        return ReplError(
            f"{directory} was loaded, but not into database {request.names.target_database} of "
            f"this metastore; {METASTORE_HINT} If this is another replica, make another dump for "
            f"it, at the source: repl dump {request.names.source_database} --bootstrap"
        )

    def newest(self, request: LoadRequest) -> DumpDirectory:
        """The dump to load. Raises ReplError if there is none, and as newest_finished does."""
        names = request.names
        dump = newest_finished(list_dumps(self.resolve, request.root, names.source_database))
        if dump is None:
            raise ReplError(
                f"no finished dump of {names.source_database} below "
                f"{database_directory(request.root, names.source_database)}: 'hms-bridge repl dump "
                f"{names.source_database}' at the source makes one, --root names where its dumps "
                "are if not there"
            )
        return dump

    def stands_at(self, request: LoadRequest) -> EventId | None:
        """The source's event up to which the target has everything; None before a bootstrap."""
        return replica_event(self._replica(request).find_database())

    def _replica(self, request: LoadRequest) -> Replica:
        """To look at: nothing is copied and no lease is held before the plan is carried out."""
        return Replica(self.target, self.resolve, request.names)

    def _verify(
        self,
        request: LoadRequest,
        reader: DumpReader,
        sources: Resolver,
        after: EventId | None = None,
    ) -> VerifyReport:
        require_archive(self.resolve, sources, reader)
        report = verify_reader(
            self.resolve,
            reader,
            sources_for=lambda *_: sources,
            after=after,
            retain_ms=request.retain_ms,
            reading=request.preflight,
        )
        report.require_complete(request.names.target_database)
        return report

    def _plan_bootstrap(self, request: LoadRequest, reader: DumpReader) -> LoadPlan:
        replica = self._replica(request)
        database = replica.find_database()
        stands_at = replica_event(database)
        begun = None if database is None else database.parameters.get(CHECKPOINT)
        # Stopped between the last change of the replica and the marks in the dump.
        if begun == reader.paths.hive and stands_at is not None:
            return self._plan_markers(request, reader, stands_at)
        tables = self.target.get_tables(request.names.target_database) if database else ()
        # What this dump has begun cannot be its source; any other database may be.
        if database is not None and begun != reader.paths.hive:
            common = (name for name in reader.table_names() if name in tables)
            dumped = (reader.table(name).table for name in common)
            refuse_own_source(reader.paths.root, database, dumped, replica.find_table, self.resolve)
        check_bootstrap(reader, database, len(tables))
        roots = self.admission.roots(request, reader)
        sources = ResolverWithin(self.resolve, roots)
        self._require_external(request, reader, sources)
        require_root(reader.functions(), request.functions_root)
        names = check_tables(reader, request.external_base)
        return LoadPlan(
            kind=LoadKind.BOOTSTRAP,
            request=request,
            reason=(
                "goes on with a bootstrap that was stopped"
                if begun
                else "first dump of the database"
            ),
            directory=reader.paths.root,
            last_event_id=reader.metadata.last_event_id,
            tables=names,
            files=self._verify(request, reader, sources),
            roots=roots,
        )

    def _plan_incremental(self, request: LoadRequest, reader: DumpReader) -> LoadPlan:
        self._refuse_own_events(request, reader)
        stands_at = self._incremental_start(request, reader)
        if stands_at >= reader.metadata.to_event_id and not reader.names_anew:
            return self._plan_markers(request, reader, stands_at)
        roots = self.admission.roots(request, reader, stands_at)
        sources = ResolverWithin(self.resolve, roots)
        self._require_external(request, reader, sources)
        check_tables_anew(reader, request.external_base)
        refuse_foreign(reader, self._replica(request))
        events = plan_incremental(reader, stands_at)
        require_root(events.functions, request.functions_root)
        return LoadPlan(
            kind=LoadKind.INCREMENTAL,
            request=request,
            reason=f"events after {stands_at}",
            directory=reader.paths.root,
            stands_at=stands_at,
            last_event_id=reader.metadata.last_event_id,
            tables=tuple(sorted(reader.names_anew)),
            events=events.counts,
            passed=events.passed,
            files=self._verify(request, reader, sources, after=stands_at),
            roots=roots,
            replay=events,
        )

    def _require_external(
        self, request: LoadRequest, reader: DumpReader, sources: Resolver
    ) -> None:
        directories = reader.external_directories()
        if directories and request.external_base is None:
            raise ReplError(
                f"the dump asks to copy data of external tables ({directories[0].table_name} …): "
                "say where to (hive.repl.replica.external.table.base.dir), then load again"
            )
        require_there(sources, directories)

    def _refuse_own_events(self, request: LoadRequest, reader: DumpReader) -> None:
        """A replica may be a source, too; the first tables of the dump show whether of this one."""
        replica = self._replica(request)
        database = replica.find_database()
        if database is None or not database.is_replication_source:
            return
        tables = islice(tables_of_events(reader), _TABLES_COMPARED)
        refuse_own_source(reader.paths.root, database, tables, replica.find_table, self.resolve)

    def _incremental_start(self, request: LoadRequest, reader: DumpReader) -> EventId:
        """Where the target stands. Raises ReplError, EventGapError if the dump does not follow."""
        target = request.names.target_database
        database = self._replica(request).find_database()
        stands_at = replica_event(database)
        if database is None or stands_at is None:
            raise ReplError(
                f"database {target} was not bootstrapped, but {reader.paths.root} is an "
                "incremental dump; load a bootstrap dump first"
            )
        if is_true(database.parameters, INCOMPATIBLE):
            raise IncompatibleError(
                f"database {target} is marked {INCOMPATIBLE}: a replayed transaction was aborted "
                "there, so later events do not fit. "
                + begin_anew(request.names.source_database, target)
            )
        require_whole(request.names, reader, database)
        require_scope(request.names, reader, database)
        first = reader.metadata.from_event_id
        # Hive does not ask (docs/hive/replication.md §18). What lies before is passed over.
        if first > stands_at:
            raise EventGapError(
                f"{reader.paths.root} begins after event {first}, database {target} stands at "
                f"{stands_at}: the events between are in no dump. "
                + begin_anew(request.names.source_database, target)
            )
        return stands_at

    def _plan_markers(
        self, request: LoadRequest, reader: DumpReader, stands_at: EventId
    ) -> LoadPlan:
        is_bootstrap = reader.is_bootstrap
        roots: tuple[str, ...] = ()
        if not is_bootstrap:
            roots = self.admission.roots(request, reader, stands_at)
            self._require_external(request, reader, ResolverWithin(self.resolve, roots))
        return LoadPlan(
            kind=LoadKind.BOOTSTRAP if is_bootstrap else LoadKind.INCREMENTAL,
            request=request,
            reason="is loaded already up to its marks; they are written now",
            roots=roots,
            directory=reader.paths.root,
            stands_at=stands_at,
            last_event_id=reader.metadata.last_event_id,
        )
