"""Repair: carry out the smallest step that ends the present trouble, then compare.

Nothing is remembered between two runs. A repair that was killed is asked for again: what it finds
then, a dump of its own that waits among it, says where to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hms_bridge.clock import Clock
from hms_bridge.errors import BusyError, ReplError
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.model.replication import CycleOutcome, CycleResult
from hms_bridge.repl.compare.described import CompareReport
from hms_bridge.repl.cycles.cycle import cycle_result
from hms_bridge.repl.dump.discard import DiscardRequest
from hms_bridge.repl.dump.plan import DumpKind, DumpRequest
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.load.handed_over import refuse_successor
from hms_bridge.repl.load.plan import LoadKind, LoadReport
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.remedies import replica_is_wanted
from hms_bridge.repl.repair.looking import (
    Progress,
    RepairLook,
    RepairLooking,
    RepairRequest,
    RepairSides,
    trouble_of_error,
)
from hms_bridge.repl.repair.plan import (
    Cure,
    RepairFacts,
    RepairPlan,
    ReplicaState,
    Seen,
    Step,
    Trouble,
    WaitingDump,
    decide,
)
from hms_bridge.repl.target_objects import last_event_of

_STEPS_MAX = 100
"""Each step ends a trouble; so many in one repair mean that the source makes new ones faster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairReport:
    """What a repair did. ``steps`` in their order, none if there was nothing to do. ``left``: what
    is wrong all the same; what could not be decided is in ``comparison``, None if none was made."""

    steps: tuple[RepairPlan, ...]
    result: CycleResult
    comparison: CompareReport | None
    left: tuple[Trouble, ...]

    @property
    def exit_code(self) -> int:
        """2 for what is left, 3 if something can be decided only later, else 0."""
        if self.left:
            return 2
        return 0 if self.comparison is None else self.comparison.exit_code


class ReplRepair:
    """Repairs one replica. ``say`` is given each step before it is taken."""

    def __init__(
        self, sides: RepairSides, clock: Clock, *, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._sides = sides
        self._clock = clock
        self._say = say
        self._looking = RepairLooking(sides)

    def plan(self, request: RepairRequest) -> RepairPlan:
        """The next step. Changes nothing. Raises ReplError for tables and partitions that
        nobody has."""
        self._looking.require_partitions(request)
        return decide(self._looking.look(request, Progress()).facts)

    def run(self, request: RepairRequest) -> RepairReport:
        """Step after step until nothing is wrong, or what is left is no repair's.

        Raises ReplError for what only a person can end and for a bootstrap that is not allowed,
        before anything is changed, and what dump and load raise.
        """
        self._looking.require_partitions(request)
        course = _Course()
        while True:
            look = self._looking.look(request, course.progress)
            plan = decide(look.facts)
            if course.is_over(plan):
                return course.report(look, plan)
            require_allowed(plan, request)
            self._say(step_text(plan))
            try:
                directory, loads = self._carry_out(plan, look.facts)
            except ReplError as error:
                course.refused(error)
            else:
                course.done(plan, look, directory, loads)
                request = replace(request, last_failure=None)

    def _carry_out(
        self, plan: RepairPlan, facts: RepairFacts
    ) -> tuple[str | None, tuple[LoadReport, ...]]:
        """The dump that was made, if any, and the loads."""
        waiting, cycle = facts.waiting, self._sides.cycle
        if waiting is not None and waiting.is_damaged:
            self._discard(waiting)
        if plan.step is Step.BOOTSTRAP:
            directory = self._bootstrap(plan, facts.replica)
            return directory, (self._load(),)
        loads = []
        if plan.loaded_dump is not None:
            loads.append(self._load())
        if plan.loaded_dump is None or not _has_tables(plan):
            directory = self._dump(replace(cycle.dump, tables_anew=plan.tables))
            loads.append(self._load())
        else:
            directory = plan.loaded_dump
        cycle.release()
        return directory, tuple(loads)

    def _bootstrap(self, plan: RepairPlan, replica: ReplicaState) -> str | None:
        """The replica goes when the new dump is there: until then it can be read."""
        directory = plan.loaded_dump
        if directory is None:
            wanted = replace(
                self._sides.cycle.dump, is_bootstrap_forced=True, is_waiting_replaced=True
            )
            directory = self._dump(wanted)
        if plan.dropped is not None:
            self._drop(replica)
        return directory

    def _dump(self, request: DumpRequest) -> str | None:
        dumper = self._sides.cycle.dumper
        report = dumper.run(dumper.plan(request))
        if report.kind is DumpKind.BLOCKED:
            raise ReplError(report.reason)
        return report.directory

    def _load(self) -> LoadReport:
        cycle = self._sides.cycle
        return cycle.loader.run(cycle.loader.plan(cycle.load))

    def _discard(self, waiting: WaitingDump) -> None:
        dump = self._sides.cycle.dump
        request = DiscardRequest(
            root=dump.root,
            database_name=dump.database_name,
            dump=waiting.directory,
            user=dump.user,
            host=dump.host,
            lease=dump.lease,
        )
        self._sides.discarder.run(self._sides.discarder.plan(request))

    def _drop(self, replica: ReplicaState) -> None:
        """Under the lease of loads, and only what the plan has seen (I10)."""
        load, target = self._sides.cycle.load, self._sides.target
        wanted = LeaseRequest.of(
            load, LeaseKind.LOAD, replica.name, self._say, LeaseKind.REPAIR.verb
        )
        with held_lease(target, self._clock, wanted):
            database = if_there(target.get_database, replica.name)
            if database is None:
                return
            refuse_successor(database)
            parameters = database.parameters
            if (last_event_of(parameters), parameters.get(CHECKPOINT)) != (
                replica.stands_at,
                replica.begun,
            ):
                raise BusyError(
                    f"database {replica.name} is not as it was when the repair was planned: a "
                    "load has run meanwhile. It was left alone; repair again"
                )
            target.drop_database(replica.name, is_cascade=True)


class _Course:
    """How far a repair has come."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._tried: set[tuple[object, ...]] = set()
        self._failure: ReplError | None = None
        self._steps: list[RepairPlan] = []
        self._loads: list[LoadReport] = []
        self._directory: str | None = None

    def is_over(self, plan: RepairPlan) -> bool:
        """Whether a plan says that nothing is to be done, or the same again. Raises ReplError for
        what only a person can end, or what a step of this repair could not."""
        if plan.step is Step.NOTHING:
            return True
        if plan.step is Step.BY_HAND:
            raise self._failure or ReplError(plan.troubles[0].text)
        tried = (plan.step, plan.tables, plan.replaced_dump, plan.loaded_dump, plan.dropped)
        if tried in self._tried and self._failure is not None:
            raise self._failure
        is_news_only = plan.step is Step.GO_ON and not plan.troubles and bool(self._steps)
        is_over = is_news_only or tried in self._tried or len(self._tried) >= _STEPS_MAX
        self._tried.add(tried)
        return is_over

    def refused(self, error: ReplError) -> None:
        """A step failed. Raises it if it says nothing of what would help."""
        if isinstance(error, BusyError) or isinstance(error.__cause__, OSError):
            raise error
        self._failure = error
        trouble = trouble_of_error(Seen.LOAD, error)
        if trouble.cure is not Cure.BY_HAND:
            self.progress = replace(self.progress, refused=(*self.progress.refused, trouble))

    def done(
        self,
        plan: RepairPlan,
        look: RepairLook,
        directory: str | None,
        loads: tuple[LoadReport, ...],
    ) -> None:
        """A step was taken."""
        self._failure = None
        self._steps.append(plan)
        self._loads += loads
        self._directory = directory
        before = self.progress
        brought = before.brought.union(plan.tables, *(load.tables for load in loads))
        is_narrow = _has_tables(plan) and look.comparison is not None
        open_tables = {finding.table for finding in look.open_findings if finding.table}
        self.progress = Progress(
            brought=brought,
            is_all_brought=before.is_all_brought
            or any(load.kind is LoadKind.BOOTSTRAP for load in loads),
            scope=brought | open_tables if is_narrow else None,
        )

    def report(self, look: RepairLook, plan: RepairPlan) -> RepairReport:
        """``plan``: what would come next."""
        result = CycleResult(outcome=CycleOutcome.NOTHING_NEW)
        if self._loads:
            result = cycle_result(self._directory, self._loads)
        return RepairReport(
            steps=tuple(self._steps),
            result=result,
            comparison=look.comparison,
            left=(*plan.left, *(trouble for trouble in plan.troubles if trouble.cure > Cure.GO_ON)),
        )


def require_allowed(plan: RepairPlan, request: RepairRequest) -> None:
    """Raises ReplError for a bootstrap that nobody allowed."""
    if plan.step is not Step.BOOTSTRAP or request.is_bootstrap_allowed:
        return
    why = next(trouble.text for trouble in plan.troubles if trouble.cure is Cure.BOOTSTRAP)
    first = replica_is_wanted(trouble.text for trouble in plan.troubles)
    raise ReplError(
        f"nothing less than a new bootstrap ends this: {why}. Repair does it with "
        f"--allow-bootstrap: it would {step_text(plan)}{first}"
    )


def step_text(plan: RepairPlan) -> str:
    """What a plan does, for people, in the infinitive."""
    parts = []
    if plan.loaded_dump is not None and plan.step is Step.GO_ON:
        parts.append(f"load {plan.loaded_dump}")
    if plan.step is Step.DUMP_AGAIN:
        parts.append(f"end {plan.replaced_dump}, dump its events again and load them")
    if plan.step is Step.GO_ON and not (plan.loaded_dump and _has_tables(plan)):
        parts.append("dump what is new and load it")
    if plan.step is Step.TABLES:
        instead = f", in place of {plan.replaced_dump}," if plan.replaced_dump else ""
        parts.append(f"dump{instead} with {', '.join(plan.tables)} whole, and load it")
    if plan.step is Step.BOOTSTRAP:
        if plan.loaded_dump is None:
            parts.append("dump the whole database")
        if plan.dropped is not None:
            parts.append(f"drop database {plan.dropped} of the replica with all tables")
        parts.append(f"load {plan.loaded_dump or 'the new dump'}")
    return "; ".join(parts) or plan.step.value


def _has_tables(plan: RepairPlan) -> bool:
    return any(trouble.cure is Cure.TABLES for trouble in plan.troubles)
