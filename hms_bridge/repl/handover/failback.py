"""Failback: a former source becomes the replica of the database that took its place.

Stopped anywhere, it is gone on with by asking for it again. What the former source has that nobody
else has goes only where that was asked for, by name of the tables in the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from hms_bridge.errors import NoSuchObjectError, ReplError
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    Column,
    SerDe,
    Storage,
    Table,
)
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import LAST_EVENT, TARGET_FOR, TARGET_LAST_EVENT, TRANSACTIONAL
from hms_bridge.model.replication import CycleResult, ReplicationPolicy
from hms_bridge.repl.cycles.cycle import OpenCycle, cycle_result
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.handover.failback_look import (
    look_at_new_source,
    look_at_old_source,
    may_differ_unseen,
    other_functions,
)
from hms_bridge.repl.handover.failback_plan import (
    FailbackPlan,
    FailbackRequest,
    FailbackStep,
    NewSource,
    OldSource,
    plan_failback,
    view_text,
)
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import (
    OpenSides,
    Side,
    abort_writers,
    fence,
    find_database,
    pins_of,
    require_replica,
)
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import (
    DIVERGED,
    OPENED,
    PROPERTIES,
    SUCCESSOR,
    altered_database,
    diverged_tables,
    is_replica,
    with_parameters,
)

_VERB = "repl failback"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ways:
    """Which side is which; ``way_back`` is the policy after its turn."""

    old: Side
    new: Side
    way_back: ReplicationPolicy


class Failback:
    """The way back of one policy."""

    def __init__(self, sides: OpenSides) -> None:
        self._sides = sides

    def plan(self, request: FailbackRequest) -> FailbackPlan:
        """What would be done now. Changes nothing. Raises ReplError for a state from which nothing
        leads back, and for what would be lost."""
        with explained_refusals(self._unreachable):
            return self._plan(request, self._ways(request))

    def run(self, request: FailbackRequest) -> FailbackPlan:
        """Plan, and carry it out; the plan that was. Raises ReplError."""
        with explained_refusals(self._unreachable), self._sides.alone_with_policy(_VERB):
            ways = self._ways(request)
            plan = self._plan(request, ways)
            if FailbackStep.FENCE in plan.steps:
                fence(self._sides, ways.old)
            if FailbackStep.BECOME_REPLICA in plan.steps:
                # Also where the plan saw none: they may have begun before the fence stood.
                abort_writers(ways.old)
                # Once more, as nobody can add to it any more.
                now = self._plan(request, ways)
                plan = replace(now, steps=plan.steps, aborted=plan.aborted)
                _become_replica(plan, ways)
            if FailbackStep.DROP in plan.steps:
                # Nobody will load its dumps any more; those of other policies are their own.
                pins_of(self._sides, ways.old).release_all()
                with self._sides.alone_with_loads(ways.old, _VERB) as lease:
                    self._drop_views(plan, ways, lease.check)
                    self._drop(plan, ways, lease.check)
            self._turn(ways)
            self._replicate(plan, ways)
            return plan

    def _ways(self, request: FailbackRequest) -> _Ways:
        """Before and after the policy is turned around. Raises ReplError."""
        sides, policy = self._sides, request.policy
        if sides.source is None:
            raise ReplError(
                f"one side of policy {policy.name} cannot be reached ({sides.unreachable}): "
                "nothing leads back before it is. Nothing was changed"
            )
        source, target = find_database(sides.source), find_database(sides.target)
        has_turned = target is None or Handover.of(target) is None
        if has_turned and source is not None and Handover.of(source) is not None:
            return _Ways(old=sides.target, new=sides.source, way_back=policy)
        require_replica(sides)
        way_back = replace(policy, source=policy.target, target=policy.source, is_paused=False)
        return _Ways(old=sides.source, new=sides.target, way_back=way_back)

    def _plan(self, request: FailbackRequest, ways: _Ways) -> FailbackPlan:
        database, former = ways.new.database(), find_database(ways.old)
        handover = Handover.of(database)
        old, new = OldSource(database=former), NewSource(database=database)
        if handover is not None and handover.own_event is not None and former is not None:
            old = look_at_old_source(ways.old, former, handover, request.policy.root)
            if may_differ_unseen(former, old.divergence, handover):
                old = replace(old, functions=other_functions(ways.old, ways.new, handover))
            names = diverged_tables(former)
            if not is_replica(former.parameters):
                names |= old.divergence.tables | old.tables.keys()
            new = look_at_new_source(ways.new, database, handover.own_event, names)
        return plan_failback(request, old, new)

    def _drop_views(self, plan: FailbackPlan, ways: _Ways, check_lease: Callable[[], None]) -> None:
        """A replica has none. Named before they go, as a definition is kept nowhere else."""
        for name, query in sorted(plan.views.items()):
            self._sides.say(view_text(ways.old.database_name, name, query))
            check_lease()
            with suppress(NoSuchObjectError):
                ways.old.metastore.drop_table(ways.old.database_name, name, is_data_deleted=True)

    def _drop(self, plan: FailbackPlan, ways: _Ways, check_lease: Callable[[], None]) -> None:
        """What the new source never had, no dump of it can bring whole; and write ids that were
        given here of a table that is not here would hide rows of the one that comes."""
        names, store = diverged_tables(ways.old.database()), ways.old.metastore
        database = ways.old.database_name
        there = set(store.get_tables(database))
        for name in sorted(names):
            check_lease()
            if name not in there and store.get_max_allocated_write_id(database, name):
                store.create_table(_empty_table(database, name))
            elif name not in plan.dropped or name not in there:
                continue
            with suppress(NoSuchObjectError):
                store.drop_table(database, name, is_data_deleted=True)
        left = sorted(names.difference(plan.dropped))
        ways.old.set_parameters({DIVERGED: ",".join(left) or None})

    def _turn(self, ways: _Ways) -> None:
        """Raises what :meth:`OpenSides.same_policy` does; InvalidOperationError for a change that
        comes at the last moment."""
        turned, made_from = ways.way_back, {ways.way_back.name: self._sides.same_policy()}
        self._sides.policies.add_policies([turned], is_replacing=True, made_from=made_from)

    def _replicate(self, plan: FailbackPlan, ways: _Ways) -> None:
        if plan.is_bootstrap:
            self._sides.replicate(ways.way_back, _bring_all)
            return
        anew = plan.whole

        def brings(cycle: OpenCycle) -> CycleResult:
            return replace(cycle, dump=replace(cycle.dump, tables_anew=anew)).run()

        self._sides.replicate(ways.way_back, brings)

    def _unreachable(self, error: Exception) -> str:
        policy = self._sides.policy
        return (
            f"failback of policy {policy.name}: {error}. Dumps, below {policy.root}, and both "
            f"warehouses must be within reach; then 'repl failback {policy.name}' again, which "
            "goes on from where it stands"
        )


def _bring_all(cycle: OpenCycle) -> CycleResult:
    """A bootstrap, or what is left of one that was stopped."""
    plan = cycle.dumper.plan(replace(cycle.dump, is_bootstrap_forced=True))
    dump = cycle.dumper.run(plan)
    if dump.kind is DumpKind.BLOCKED:
        cycle.loader.run(cycle.loader.plan(cycle.load))
        return cycle.run()
    return cycle_result(dump.directory, [cycle.loader.run(cycle.loader.plan(cycle.load))])


def _become_replica(plan: FailbackPlan, ways: _Ways) -> None:
    """In one step: from here on loads change the database, and nobody else."""
    old, own_event = ways.old, plan.handover.own_event or EventId(0)
    changes: dict[str, str | None] = dict.fromkeys((*PROPERTIES, SUCCESSOR), None)
    changes |= {
        TARGET_FOR: "true",
        OPENED: "false",
        LAST_EVENT: str(own_event),
        TARGET_LAST_EVENT: str(old.metastore.get_current_event_id()),
        DIVERGED: ",".join(sorted((*plan.whole, *plan.dropped))) or None,
    }
    database = altered_database(old.database(), ways.new.database())
    old.metastore.alter_database(old.database_name, with_parameters(database, changes))


def _empty_table(database: str, name: str) -> Table:
    """Whatever else is on record of the name goes when this is dropped."""
    return Table(
        name=name,
        database_name=database,
        storage=Storage(
            columns=(Column(name="id", type="int"),),
            input_format=ORC_INPUT_FORMAT,
            output_format=ORC_OUTPUT_FORMAT,
            serde=SerDe(library=ORC_SERDE),
        ),
        parameters={TRANSACTIONAL: "true"},
    )
