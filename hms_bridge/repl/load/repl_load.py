"""REPL LOAD: bring the newest dump of a database to its replica.

Plan first: which dump, what it holds, whether every file can be had. Then carry it out; a stop at
any point is healed by loading again (docs/format/dump.md). Hive's load: docs/hive/replication.md
§18, §20 and §24.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from changemanager.containment import ResolverWithin
from changemanager.location import Resolver
from hms_bridge.clock import Clock, SystemClock
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import FIRST_INCREMENTAL_PENDING, LAST_EVENT, TARGET_LAST_EVENT
from hms_bridge.repl.format.non_recoverable import marking_load
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.texts import write_text
from hms_bridge.repl.format.verify import Reading, VerifyReport, verify_reader
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.load.admission import Admission, RootsNote, SourcePlaces
from hms_bridge.repl.load.bandwidth import throttle
from hms_bridge.repl.load.bootstrap import load_bootstrap, replace_tables
from hms_bridge.repl.load.copy import Copier, Copies
from hms_bridge.repl.load.distributed import CopyJob, DistributedCopier
from hms_bridge.repl.load.dropped import run_drop
from hms_bridge.repl.load.external import copy_external
from hms_bridge.repl.load.full_storage import CopiedBytes, StorageFullError, full_text
from hms_bridge.repl.load.handed_over import refuse_successor
from hms_bridge.repl.load.incremental import plan_incremental, replay
from hms_bridge.repl.load.plan import LoadKind, LoadPlan, LoadReport, LoadRequest
from hms_bridge.repl.load.planner import LoadPlanner
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.same_source import origin_note
from hms_bridge.repl.load.scope import scope_parameter
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import DIVERGED, FIRST_INCREMENTAL_TABLES


class ReplLoad:
    """Loads dumps into one metastore. ``resolve`` must reach dumps, source, archive and target.

    ``note`` keeps the roots of each load, ``source`` says where a source's tables are: see
    :class:`Admission`. ``job`` copies what is large, if there is one. ``on_copied`` is given the
    bytes of each file as it is there, ``on_waiting`` why a load waits for another one.
    """

    def __init__(
        self,
        target: Metastore,
        resolve: Resolver,
        *,
        clock: Clock | None = None,
        note: RootsNote | None = None,
        source: SourcePlaces | None = None,
        job: CopyJob | None = None,
        on_copied: Callable[[int], None] = lambda _: None,
        on_waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._target = target
        self._resolve = resolve
        self._clock = clock or SystemClock()
        self._admission = Admission(resolve=resolve, note=note, source=source)
        self._job = job
        self._copied = CopiedBytes(on_copied)
        self._on_waiting = on_waiting

    def plan(self, request: LoadRequest) -> LoadPlan:
        """Choose the dump and prove that it can be loaded. Changes nothing.

        Raises SourceFileMissingError if a file is lost, EventGapError if the dump does not follow
        on what was loaded, DumpIncompleteError, ReplError.
        """
        with explained_refusals(partial(_unreachable, request)):
            return self._planner.plan(request)

    def look(self, request: LoadRequest, reader: DumpReader) -> VerifyReport:
        """Look for the files of any dump, by their names, where this load may read. Raises
        OriginNotTrustedError."""
        sources = ResolverWithin(self._resolve, self._admission.roots(request, reader))
        return verify_reader(
            self._resolve, reader, sources_for=lambda *_: sources, reading=Reading.NONE
        )

    def run(self, plan: LoadPlan) -> LoadReport:
        """Carry a plan out. Raises ReplError if the dumps or the target have changed since, or if
        another load into the database is at work.

        A load that was stopped is continued by planning and running again.
        """
        if plan.kind is LoadKind.NOTHING:
            return self._report(plan, self._replica(plan), plan.stands_at)
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

    @property
    def _planner(self) -> LoadPlanner:
        return LoadPlanner(target=self._target, resolve=self._resolve, admission=self._admission)

    def _replica(self, plan: LoadPlan, check_lease: Callable[[], None] = lambda: None) -> Replica:
        sources = ResolverWithin(self._resolve, plan.roots)
        copier = self._copier(plan, sources, check_lease)
        names = plan.request.names
        return Replica(self._target, self._resolve, names, check_lease, copier, sources)

    def _copier(self, plan: LoadPlan, sources: Resolver, check_lease: Callable[[], None]) -> Copies:
        bandwidth = plan.request.bandwidth
        copier = Copier(sources, self._copied.add, check_lease, throttle(bandwidth, self._clock))
        if self._job is None:
            return copier
        return DistributedCopier(
            copier=copier,
            job=self._job,
            resolve=self._resolve,
            sources=sources,
            clock=self._clock,
            limits=plan.request.copy_limits,
            sizes=plan.sizes,
            bandwidth=bandwidth,
            on_copied=self._copied.add,
        )

    def _run(self, plan: LoadPlan, check_lease: Callable[[], None]) -> LoadReport:
        """Under the lease, so that what is checked now stays as it is."""
        request = plan.request
        replica = self._replica(plan, check_lease)
        refuse_successor(replica.find_database())
        dump = self._planner.newest(request)
        if dump.paths.root != plan.directory or dump.state is not plan.state:
            raise ReplError(
                f"{plan.directory} is not the newest dump to load any more; plan the load again"
            )
        if self._planner.stands_at(request) != plan.stands_at:
            raise ReplError(
                f"database {request.names.target_database} has moved on since the load was "
                "planned: another load has run. Plan it again"
            )
        reader = DumpReader(self._resolve, dump.paths, request.rules)
        if plan.roots:  # before the first file: a load that is stopped goes on without the option
            self._admission.keep(request, plan.roots)
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
            self._resolve,
            replica.sources,
            directories,
            plan.request.external_base,
            replica.copier,
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
