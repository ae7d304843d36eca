"""REPL LOAD: bring the newest dump of a database to its replica.

Plan first: which dump, what it holds, whether every file can be had. Then carry it out; a stop at
any point is healed by loading again (docs/format/dump.md). Hive's load: docs/hive/replication.md
§18, §20 and §24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import islice

from changemanager.location import Resolver
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.errors import EventGapError, IncompatibleError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import (
    CHECKPOINT,
    FIRST_INCREMENTAL_PENDING,
    INCOMPATIBLE,
    LAST_EVENT,
    TARGET_LAST_EVENT,
    is_true,
)
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.format.layout import database_directory
from hms_bridge.repl.format.non_recoverable import marking_load
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.texts import write_text
from hms_bridge.repl.format.verify import VerifyReport, verify_reader
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.load.bandwidth import throttle
from hms_bridge.repl.load.bootstrap import (
    check_bootstrap,
    check_tables,
    check_tables_anew,
    lacks_tables,
    load_bootstrap,
    replace_tables,
)
from hms_bridge.repl.load.copy import Copier, Copies
from hms_bridge.repl.load.distributed import CopyJob, DistributedCopier
from hms_bridge.repl.load.dropped import drop_event, is_dropped_already, plan_drop, run_drop
from hms_bridge.repl.load.external import copy_external, require_there
from hms_bridge.repl.load.full_storage import CopiedBytes, StorageFullError, full_text
from hms_bridge.repl.load.functions import require_root
from hms_bridge.repl.load.handed_over import refuse_successor, require_whole
from hms_bridge.repl.load.incremental import plan_incremental, replay
from hms_bridge.repl.load.named_archive import require_archive
from hms_bridge.repl.load.own_source import (
    METASTORE_HINT,
    is_unloaded_source,
    own_source,
    refuse_own_source,
    tables_of_events,
)
from hms_bridge.repl.load.plan import LoadKind, LoadPlan, LoadReport, LoadRequest
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.same_source import origin_note, require_same_source
from hms_bridge.repl.load.scope import lacks_scope, refuse_foreign, require_scope, scope_parameter
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import DIVERGED, FIRST_INCREMENTAL_TABLES, replica_event

_TABLES_COMPARED = 10


class ReplLoad:
    """Loads dumps into one metastore. ``resolve`` must reach dumps, source, archive and target.

    ``job`` copies what is large, if there is one. ``on_copied`` is given the bytes of each file as
    it is there, ``on_waiting`` why a load waits for another one.
    """

    def __init__(
        self,
        target: Metastore,
        resolve: Resolver,
        *,
        clock: Clock | None = None,
        job: CopyJob | None = None,
        on_copied: Callable[[int], None] = lambda _: None,
        on_waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._target = target
        self._resolve = resolve
        self._clock = clock or SystemClock()
        self._job = job
        self._copied = CopiedBytes(on_copied)
        self._on_waiting = on_waiting

    def plan(self, request: LoadRequest) -> LoadPlan:
        """Choose the dump and prove that it can be loaded. Changes nothing.

        Raises SourceFileMissingError if a file is lost, EventGapError if the dump does not follow
        on what was loaded, DumpIncompleteError, ReplError.
        """
        with explained_refusals(partial(_unreachable, request)):
            return self._plan(request)

    def run(self, plan: LoadPlan) -> LoadReport:
        """Carry a plan out. Raises ReplError if the dumps or the target have changed since, or if
        another load into the database is at work.

        A load that was stopped is continued by planning and running again.
        """
        if plan.kind is LoadKind.NOTHING:
            return self._report(plan, self._replica(plan.request), plan.stands_at)
        request = plan.request
        target = request.names.target_database
        wanted = LeaseRequest.of(request, LeaseKind.LOAD, target, self._on_waiting)
        with (
            explained_refusals(partial(self._stopped, plan, self._copied.total)),
            held_lease(self._target, self._clock, wanted) as lease,
        ):
            return self._run(plan, lease.check)

    def _stopped(self, plan: LoadPlan, before_bytes: int, error: Exception) -> str:
        if not isinstance(error, StorageFullError):
            return _unreachable(plan.request, error)
        needed = None
        if plan.files is not None:
            needed = max(0, plan.files.size_bytes - (self._copied.total - before_bytes))
        return (
            f"loading {plan.request.source_database} below {plan.request.root}: "
            f"{full_text(error, needed)}. What was loaded stays: make room there, then load again "
            "('repl run', 'repl load'), which goes on from where it stands"
        )

    def marking(self, request: LoadRequest) -> AbstractContextManager[None]:
        """Where plan and run are to leave Hive's mark of what no further load ends."""
        return marking_load(self._resolve, request.root, request.names.source_database)

    def _plan(self, request: LoadRequest) -> LoadPlan:
        refuse_successor(self._replica(request).find_database())
        dump = self._newest(request)
        reader = DumpReader(self._resolve, dump.paths, request.rules)
        database = self._replica(request).find_database()
        require_same_source(reader, database)
        plan = LoadPlan(
            kind=LoadKind.NOTHING, request=request, reason="", directory=dump.paths.root
        )
        if is_dropped_already(self._resolve, reader, dump.state, database):
            why = f"{dump.paths.root} told of a drop, and the database is not there any more"
            return replace(plan, reason=why)
        if dump.state is DumpState.LOADED:
            stands_at = self._stands_at(request)
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
        reader = DumpReader(self._resolve, dump.paths, request.rules)
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

    def _newest(self, request: LoadRequest) -> DumpDirectory:
        names = request.names
        dump = newest_finished(list_dumps(self._resolve, request.root, names.source_database))
        if dump is None:
            raise ReplError(
                f"no finished dump of {names.source_database} below "
                f"{database_directory(request.root, names.source_database)}; run repl dump first"
            )
        return dump

    def _stands_at(self, request: LoadRequest) -> EventId | None:
        return replica_event(self._replica(request).find_database())

    def _replica(
        self,
        request: LoadRequest,
        check_lease: Callable[[], None] = lambda: None,
        sizes: Mapping[str, int] | None = None,
    ) -> Replica:
        copier = self._copier(request, check_lease, sizes or {})
        return Replica(self._target, self._resolve, request.names, check_lease, copier)

    def _copier(
        self, request: LoadRequest, check_lease: Callable[[], None], sizes: Mapping[str, int]
    ) -> Copies:
        pace = throttle(request.bandwidth, self._clock)
        copier = Copier(self._resolve, self._copied.add, check_lease, pace)
        if self._job is None:
            return copier
        return DistributedCopier(
            copier=copier,
            job=self._job,
            resolve=self._resolve,
            clock=self._clock,
            limits=request.copy_limits,
            sizes=sizes,
            bandwidth=request.bandwidth,
            on_copied=self._copied.add,
        )

    def _verify(
        self, request: LoadRequest, reader: DumpReader, after: EventId | None = None
    ) -> VerifyReport:
        require_archive(self._resolve, reader, request.rules)
        report = verify_reader(
            self._resolve,
            reader,
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
        tables = self._target.get_tables(request.names.target_database) if database else ()
        # What this dump has begun cannot be its source; any other database may be.
        if database is not None and begun != reader.paths.hive:
            common = (name for name in reader.table_names() if name in tables)
            dumped = (reader.table(name).table for name in common)
            refuse_own_source(
                reader.paths.root, database, dumped, replica.find_table, self._resolve
            )
        check_bootstrap(reader, database, len(tables))
        self._require_external(request, reader)
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
            files=self._verify(request, reader),
        )

    def _plan_incremental(self, request: LoadRequest, reader: DumpReader) -> LoadPlan:
        self._refuse_own_events(request, reader)
        stands_at = self._incremental_start(request, reader)
        if stands_at >= reader.metadata.to_event_id and not reader.names_anew:
            return self._plan_markers(request, reader, stands_at)
        self._require_external(request, reader)
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
            files=self._verify(request, reader, after=stands_at),
            replay=events,
        )

    def _require_external(self, request: LoadRequest, reader: DumpReader) -> None:
        directories = reader.external_directories()
        if directories and request.external_base is None:
            raise ReplError(
                f"the dump asks to copy data of external tables ({directories[0].table_name} …): "
                "say where to (hive.repl.replica.external.table.base.dir), then load again"
            )
        require_there(self._resolve, directories)

    def _refuse_own_events(self, request: LoadRequest, reader: DumpReader) -> None:
        """A replica may be a source, too; the first tables of the dump show whether of this one."""
        replica = self._replica(request)
        database = replica.find_database()
        if database is None or not database.is_replication_source:
            return
        tables = islice(tables_of_events(reader), _TABLES_COMPARED)
        refuse_own_source(reader.paths.root, database, tables, replica.find_table, self._resolve)

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
        if not is_bootstrap:
            self._require_external(request, reader)
        return LoadPlan(
            kind=LoadKind.BOOTSTRAP if is_bootstrap else LoadKind.INCREMENTAL,
            request=request,
            reason="is loaded already up to its marks; they are written now",
            directory=reader.paths.root,
            stands_at=stands_at,
            last_event_id=reader.metadata.last_event_id,
        )

    def _run(self, plan: LoadPlan, check_lease: Callable[[], None]) -> LoadReport:
        """Under the lease, so that what is checked now stays as it is."""
        request = plan.request
        sizes = None if self._job is None else plan.sizes
        replica = self._replica(request, check_lease, sizes)
        refuse_successor(replica.find_database())
        dump = self._newest(request)
        if dump.paths.root != plan.directory or dump.state is not plan.state:
            raise ReplError(
                f"{plan.directory} is not the newest dump to load any more; plan the load again"
            )
        if self._stands_at(request) != plan.stands_at:
            raise ReplError(
                f"database {request.names.target_database} has moved on since the load was "
                "planned: another load has run. Plan it again"
            )
        reader = DumpReader(self._resolve, dump.paths, request.rules)
        if plan.kind is LoadKind.BOOTSTRAP:
            self._run_bootstrap(plan, reader, replica)
        elif plan.kind is LoadKind.DROP:
            run_drop(replica)
        else:
            self._run_incremental(plan, reader, replica)
        check_lease()
        self._mark_loaded(reader)
        return self._report(plan, replica, _reached(plan))

    def _run_bootstrap(self, plan: LoadPlan, reader: DumpReader, replica: Replica) -> None:
        if plan.stands_at is not None:
            return
        load_bootstrap(reader, replica, plan.tables)
        self._copy_external(plan, reader, replica)
        # Last: a database without repl.last.id is half bootstrapped, and the next load goes on.
        replica.set_parameters(
            {
                LAST_EVENT: str(plan.last_event_id),
                TARGET_LAST_EVENT: str(self._target.get_current_event_id()),
                **origin_note(reader),
                **scope_parameter(reader),
            }
        )

    def _run_incremental(self, plan: LoadPlan, reader: DumpReader, replica: Replica) -> None:
        stands_at = plan.stands_at or EventId(0)
        if stands_at < reader.metadata.to_event_id:
            replica.stands_at(stands_at)
            events = plan.replay or plan_incremental(reader, stands_at)
            replay(reader, replica, events, plan.weights)
        # Read at the source after the last event, so they come after it here.
        replace_tables(reader, replica)
        for txn_id in sorted(reader.replays().ended):
            replica.abort(txn_id)
        self._copy_external(plan, reader, replica)  # also where a stop came after the last event
        replica.set_parameters(
            {
                LAST_EVENT: str(_reached(plan)),
                TARGET_LAST_EVENT: str(self._target.get_current_event_id()),
                **origin_note(reader),
                **scope_parameter(reader),
                FIRST_INCREMENTAL_PENDING: None,
                FIRST_INCREMENTAL_TABLES: ",".join(sorted(reader.names_anew)) or None,
                DIVERGED: None,
            }
        )

    def _copy_external(self, plan: LoadPlan, reader: DumpReader, replica: Replica) -> None:
        directories = reader.external_directories()
        replica.copied += copy_external(
            self._resolve, directories, plan.request.external_base, replica.copier
        )

    def _mark_loaded(self, reader: DumpReader) -> None:
        # The marker last: with it the source may make the next dump, and remove this one.
        event_id = self._target.get_current_event_id()
        write_text(self._resolve(reader.paths.load_metadata), f"{event_id}\n")
        write_text(self._resolve(reader.paths.finished_load), "")

    def _report(
        self, plan: LoadPlan, replica: Replica, last_event_id: EventId | None
    ) -> LoadReport:
        return LoadReport(
            kind=plan.kind,
            reason=plan.reason,
            directory=plan.directory,
            target_database=plan.request.names.target_database,
            last_event_id=last_event_id,
            copied=replica.copied,
            events=plan.events,
            passed=plan.passed,
            tables=plan.tables,
            notes=tuple(replica.notes),
        )


def _reached(plan: LoadPlan) -> EventId:
    """Where the database stands after the load: never before where it stood already."""
    return max(plan.last_event_id or EventId(0), plan.stands_at or EventId(0))


def _unreachable(request: LoadRequest, error: Exception) -> str:
    return (
        f"loading {request.source_database} below {request.root}: {error}. What was loaded stays; "
        "check the file systems of both clusters, then load again"
    )
