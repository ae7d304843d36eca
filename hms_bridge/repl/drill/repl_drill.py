"""REPL DRILL: load what is kept of a replication into a database of its own, compare, remove it.

The replication itself does not notice: its dumps are copied before they are loaded, since a load
marks its dump, and a dump that is made for the drill moves no pin of the way from dump to dump.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import EventGapError, HmsBridgeError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.described import CompareReport
from hms_bridge.repl.compare.repl_compare import ReplCompare
from hms_bridge.repl.compare.table_comparison import CompareRequest
from hms_bridge.repl.drill.plan import (
    DrillKind,
    DrillPlan,
    DrillReport,
    DrillRequest,
    Scratch,
    plan_drill,
)
from hms_bridge.repl.drill.scratch import (
    begin_as_load,
    copy_dump,
    external_base,
    find_left_behind,
    functions_root,
    make_scratch,
    remove_scratch,
    scratch_place,
)
from hms_bridge.repl.dump.backlog import find_backlog
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.chain import Chain, newest_chain
from hms_bridge.repl.format.directories import DumpDirectory, list_dumps, newest_finished
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.verify import VerifyReport
from hms_bridge.repl.lease import Lease, LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.load.plan import LoadReport
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.storage import explained_refusals

_LOG = logging.getLogger(__name__)


class ReplDrill:
    """Drills between two metastores. ``new_name`` names dumps and the places of drills; ``say``
    is given what is done. Without a ``manifest`` a dump that is made pins nothing. ``places``: see
    :class:`Admission`."""

    def __init__(
        self,
        resolve: Resolver,
        clock: Clock,
        new_name: Callable[[], str],
        *,
        source: Metastore,
        target: Metastore,
        manifest: ArchiveManifest | None = None,
        places: SourcePlaces | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._new_name = new_name
        self._source = source
        self._target = target
        self._manifest = manifest
        self._loader = ReplLoad(target, resolve, clock=clock, source=places, on_waiting=say)
        self._say = say

    def plan(self, request: DrillRequest) -> DrillPlan:
        """Look what is kept. Changes nothing. Raises ReplError where nothing was ever dumped, or
        the scratch database is none of a drill's."""
        with explained_refusals(_unended(request)):
            return self._plan(request)

    def run(self, plan: DrillPlan) -> DrillReport:
        """Carry a plan out. Raises BusyError while another drill of the scratch database is at
        work, ReplError if dumps have come or gone since the plan, and what dump, load and compare
        raise. What the drill made is removed then, too."""
        with explained_refusals(_unended(plan.request)):
            return self._alone(plan)

    def _plan(self, request: DrillRequest) -> DrillPlan:
        source = request.load.names.source_database
        left_behind = find_left_behind(self._target, request.scratch_database)
        dumps = list_dumps(self._resolve, request.load.root, source)
        newest = newest_finished(dumps, is_mark_ignored=True)
        if newest is None or newest.metadata is None:
            raise ReplError(
                f"there is no finished dump of {source} below {request.load.root}, so there is no "
                "replication to drill; run repl dump first"
            )
        chain = newest_chain(dumps)
        token = self._new_name()
        return plan_drill(
            request,
            chain=chain,
            verified=() if chain.broken else self._verified(request, chain),
            last_event_id=newest.metadata.last_event_id,
            scope=newest.metadata.scope or ReplScope(database_name=source),
            scratch=Scratch(
                database=request.scratch_database,
                place=self._resolve(scratch_place(request.load.root, source, token)).uri,
            ),
            left_behind=left_behind,
        )

    def _verified(self, request: DrillRequest, chain: Chain) -> tuple[VerifyReport, ...]:
        readers = (
            DumpReader(self._resolve, DumpPaths(directory), request.load.rules)
            for directory in chain.directories
        )
        return tuple(self._loader.look(request.load, reader) for reader in readers)

    def _alone(self, plan: DrillPlan) -> DrillReport:
        load, scratch = plan.request.load, plan.scratch.database
        wanted = LeaseRequest.of(load, LeaseKind.DRILL, scratch, self._say)
        with held_lease(self._target, self._clock, wanted) as lease:
            self._require_as_planned(plan)
            if plan.left_behind is not None:
                self._say(f"removing what a drill left in database {plan.left_behind.database}")
                self._remove(plan.request, plan.left_behind)
            make_scratch(self._target, plan.scratch)
            try:
                report = self._drill(plan, lease)
            except BaseException:
                self._remove_after_failure(plan)
                raise
            if not plan.request.is_kept:
                self._remove(plan.request, plan.scratch)
        return report

    def _require_as_planned(self, plan: DrillPlan) -> None:
        now = self._plan(plan.request)
        if (now.dumps, now.kind, now.left_behind) != (plan.dumps, plan.kind, plan.left_behind):
            raise ReplError(
                f"dumps of {plan.request.load.source_database}, or the scratch database, have "
                "changed since the drill was planned; drill again"
            )

    def _drill(self, plan: DrillPlan, lease: Lease) -> DrillReport:
        rpo_seconds = self._rpo_seconds(plan)
        began_ms = steady_ms(self._clock)
        made = self._dump(plan) if plan.kind is DrillKind.BOOTSTRAP else None
        dump_seconds = None if made is None else self._seconds_since(began_ms)
        loads, load_seconds = self._load(plan, lease)
        lease.check()
        began_ms = steady_ms(self._clock)
        compared = self._compare(plan)
        return DrillReport(
            plan=plan,
            rpo_seconds=rpo_seconds,
            rto_seconds=load_seconds,
            dump_seconds=dump_seconds,
            compare_seconds=self._seconds_since(began_ms),
            dump_count=len(loads),
            event_count=sum(sum(report.events.values()) for report in loads),
            file_count=sum(report.copied.copied_files for report in loads),
            byte_count=sum(report.copied.bytes for report in loads),
            compared=compared,
        )

    def _rpo_seconds(self, plan: DrillPlan) -> int | None:
        current = self._source.get_current_event_id()
        later = EventRange(after=plan.last_event_id, until=max(current, plan.last_event_id))
        try:
            backlog = find_backlog(self._source, later, plan.scope)
        except EventGapError:
            return None
        if backlog.oldest_ms is None:
            return 0
        return max(0, (self._clock.now_ms() - backlog.oldest_ms) // 1000)

    def _dump(self, plan: DrillPlan) -> str:
        """A bootstrap dump beside those of the replication. Raises ReplError."""
        self._say(f"making a bootstrap dump for the drill: {plan.reason}")
        wanted = plan.request.dump
        dumper = ReplDump(
            self._source,
            self._resolve,
            self._clock,
            self._new_name,
            self._manifest,
            on_waiting=self._say,
        )
        asked = replace(
            wanted,
            root=plan.scratch.place,
            scope=plan.scope,
            is_bootstrap_forced=True,
            is_apart=True,
            tables_anew=(),
            external_base=None if wanted.external_base is None else external_base(plan.scratch),
        )
        report = dumper.run(dumper.plan(asked))
        if report.kind is not DumpKind.BOOTSTRAP or report.directory is None:
            raise ReplError(f"no bootstrap dump was made for the drill: {report.reason}")
        return report.directory

    def _load(self, plan: DrillPlan, lease: Lease) -> tuple[list[LoadReport], float]:
        """Dump after dump, each loaded as the replica loads it; and how many seconds that took."""
        source = plan.request.load.names.source_database
        request = replace(
            plan.request.load,
            root=plan.scratch.place,
            target_database=plan.scratch.database,
            external_base=external_base(plan.scratch),
            # A replica that has no place for them is to refuse in the drill, too.
            functions_root=plan.request.load.functions_root and functions_root(plan.scratch),
        )
        above = database_directory(plan.scratch.place, source)
        reports: list[LoadReport] = []
        seconds = 0.0
        for number, directory in enumerate(plan.dumps or (None,)):
            if directory is not None:
                self._say(f"loading {directory}")
                name = directory.rpartition("/")[2]
                copy_dump(self._resolve, DumpPaths(directory), DumpPaths(f"{above}/{name}"))
            if number == 0:
                self._begin(plan, self._newest(plan.scratch.place, source))
            lease.check()
            began_ms = steady_ms(self._clock)
            reports.append(self._loader.run(self._loader.plan(request)))
            seconds += self._seconds_since(began_ms)
        return reports, seconds

    def _newest(self, root: str, source: str) -> DumpDirectory:
        dump = newest_finished(list_dumps(self._resolve, root, source))
        if dump is None:
            raise ReplError(f"the dump that was to be drilled is not below {root}; drill again")
        return dump

    def _begin(self, plan: DrillPlan, dump: DumpDirectory) -> None:
        reader = DumpReader(self._resolve, dump.paths, plan.request.load.rules)
        begin_as_load(self._target, plan.scratch, reader.database(), dump.paths)

    def _compare(self, plan: DrillPlan) -> CompareReport:
        load = plan.request.load
        self._say(f"comparing {load.names.source_database} with {plan.scratch.database}")
        request = CompareRequest(
            root=plan.scratch.place,
            source_database=load.names.source_database,
            target_database=plan.scratch.database,
            depth=plan.request.depth,
            passed_kinds=plan.request.load.rules.passed_kinds,
            user=load.user,
            host=load.host,
        )
        comparison = ReplCompare(
            self._resolve, self._clock, source=self._source, target=self._target
        )
        return comparison.run(request)

    def _remove(self, request: DrillRequest, scratch: Scratch) -> None:
        """Pins first: they name a dump that goes with the scratch place."""
        source = request.load.names.source_database
        pins = DumpPins(
            manifest=self._manifest, clock=self._clock, database=source, root=scratch.place
        )
        pins.release_loaded((), database_directory(scratch.place, source))
        remove_scratch(self._target, self._resolve, scratch)

    def _remove_after_failure(self, plan: DrillPlan) -> None:
        """People are to hear of what made the drill fail; the next drill removes what stays."""
        try:
            self._remove(plan.request, plan.scratch)
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            _LOG.warning(
                "the scratch database %s was not removed (%s); the next drill will",
                plan.scratch.database,
                error,
            )

    def _seconds_since(self, began_ms: int) -> float:
        return (steady_ms(self._clock) - began_ms) / 1000


def _unended(request: DrillRequest) -> Callable[[Exception], str]:
    return lambda error: (
        f"the drill of {request.load.source_database} came to no end: {error}. The replica was "
        "not touched; check the file systems of both sides, then drill again"
    )
