"""Promotion: a replica takes its source's place, planned or because the source is lost.

Stopped anywhere, it is gone on with by asking for it again. Until loads are taken away from the
replica (:attr:`PromoteStep.BEGIN`) it can be given up, after that it only goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from changemanager.errors import ChangeManagerError
from hms_bridge.clock import steady_ms
from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.model.txn import AbortReason
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.backlog import find_backlog
from hms_bridge.repl.dump.beginning import ensure_beginning
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.snapshot_wait import try_snapshot, waiting_text
from hms_bridge.repl.dump.tables import transactional_names
from hms_bridge.repl.format.directories import DumpState, later_than, list_dumps
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.handover.own_part import open_replays
from hms_bridge.repl.handover.promote_look import look_at_replica, look_at_source
from hms_bridge.repl.handover.promote_plan import (
    PromotePlan,
    PromoteRequest,
    PromoteStep,
    plan_promotion,
)
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import (
    OpenSides,
    Side,
    abort_writers,
    fence,
    find_database,
    hand_over,
    lift_fence,
    pins_of,
    require_heeding,
    require_replica,
    require_upheld,
    without_lost_source,
)
from hms_bridge.repl.load.replica import abort_replay
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import (
    HANDOVER,
    OPENED,
    PROPERTIES,
    SCOPE,
    SUCCESSOR,
    is_fenced,
    is_of_loads_only,
    last_event_of,
)

_VERB = "repl promote"


class Promotion:
    """The promotion of one policy's replica."""

    def __init__(self, sides: OpenSides) -> None:
        self._sides = sides
        self._target = sides.target

    def plan(self, request: PromoteRequest) -> PromotePlan:
        """What would be done now. Changes nothing. Raises ReplError for what the run would refuse,
        as far as it shows before anything is changed."""
        with explained_refusals(self._unreachable):
            plan = self._plan(request)
            self._require_possible(plan)
            at_work = self._sides.holders(is_loading=PromoteStep.OPEN in plan.steps)
            return replace(plan, notes=plan.notes + at_work)

    def run(self, request: PromoteRequest) -> PromotePlan:
        """Plan, and carry it out; the plan that was.

        Raises ReplError. What fails before loads are taken away from the replica, such as bringing
        it to where it has everything, gives the source back to its writers.
        """
        with explained_refusals(self._unreachable), self._sides.alone_with_policy(_VERB) as alone:
            plan = self._plan(request)
            self._require_heeding(plan)
            try:
                self._prepare_source(plan)
                if PromoteStep.OPEN in plan.steps:
                    with self._sides.alone_with_loads(self._target, _VERB) as lease:
                        self._take_over(plan, lease.check)
            except (HmsBridgeError, ChangeManagerError, OSError):
                alone.check()  # else the fence is that of another one, who is at work
                self._give_back()
                raise
            return plan

    def cancel(self) -> bool:
        """Give a fenced source back; False if it is not fenced. Raises ReplError if its replica
        takes over, or has."""
        sides = without_lost_source(self._sides)
        source, name = sides.source, sides.policy.name
        if source is None:
            raise ReplError(
                f"the source cannot be reached ({sides.unreachable}), so its fence, if it "
                f"has one, stands: again when it can. 'repl policy show {name}' tells where it is"
            )
        with self._sides.alone_with_policy(_VERB) as alone:
            database = find_database(self._target)
            if database is not None and Handover.of(database) is not None:
                raise ReplError(
                    f"database {database.name} has taken its source's place, or is about to: there "
                    f"would be two sources. 'repl promote {name}' goes on, 'repl failback {name}' "
                    "leads back"
                )
            was_fenced = is_fenced(source.database())
            alone.check()
            lift_fence(source)
        return was_fenced

    def _plan(self, request: PromoteRequest) -> PromotePlan:
        sides = self._sides = without_lost_source(self._sides)
        require_replica(sides)
        replica = look_at_replica(self._target, request.policy)
        handover = Handover.of(replica.database)
        stands_at = last_event_of(replica.database.parameters)
        if handover is not None:
            stands_at = handover.source_event
        source = None
        if sides.source is not None:
            source = look_at_source(sides.source, stands_at)
        return plan_promotion(request, source, replica, unreachable=sides.unreachable)

    def _require_possible(self, plan: PromotePlan) -> None:
        """Raises ReplError for what a run would find out on its way: a source that heeds no fence,
        what the last dump and load would be refused with."""
        self._require_heeding(plan)
        sides = self._sides
        if sides.source is not None and PromoteStep.REPLICATE in plan.steps:
            with sides.open_cycle(sides.policy) as cycle:
                cycle.require_possible()

    def _require_heeding(self, plan: PromotePlan) -> None:
        """Raises ReplError where a fence is needed that a Hive's metastore would not heed. Asked
        before anything is tried there: the write id that a Hive gives after a failover is of no
        replica, and a failback would copy that table whole."""
        if self._sides.source is not None and _is_fence_tried(plan):
            require_heeding(self._sides, self._sides.source)

    def _prepare_source(self, plan: PromotePlan) -> None:
        source, steps = self._sides.source, plan.steps
        if source is None:
            return
        is_first = PromoteStep.FENCE in steps
        if is_first and Handover.of(self._target.database()) is None:
            fence(self._sides, source)
        elif is_first:
            hand_over(self._sides, source)
        if _is_fence_tried(plan):
            require_upheld(self._sides, source)
        if PromoteStep.REPLICATE in steps:
            self._drain(plan.request, source)
            self._sides.replicate(self._sides.policy, OpenCycle.run)
            self._require_all(source)
        else:
            # Also where the plan saw none: they may have begun before the fence stood.
            abort_writers(source)

    def _give_back(self) -> None:
        """The source belongs to its writers again, unless the replica has begun to take over."""
        source = self._sides.source
        if source is not None and Handover.of(self._target.database()) is None:
            lift_fence(source)

    def _drain(self, request: PromoteRequest, source: Side) -> None:
        """No transaction is open that writes to the source. Raises ReplError."""
        clock, rules = self._sides.clock, request.wait
        # Writers stay out meanwhile: not for longer because somebody sets a clock back.
        deadline_ms = steady_ms(clock) + rules.timeout_seconds * 1000
        is_told = has_aborted = False
        while True:
            names = transactional_names(source.tables())
            _, writers = try_snapshot(source.metastore, source.database_name, names)
            if writers is None:
                return
            left_seconds = (deadline_ms - steady_ms(clock)) / 1000
            if left_seconds > 0:
                if not is_told:
                    now_ms = clock.now_ms()
                    self._sides.say(waiting_text(source.database_name, writers, rules, now_ms))
                    is_told = True
                clock.sleep_seconds(min(rules.poll_seconds, left_seconds))
            elif rules.is_abort_allowed and not has_aborted:
                source.metastore.abort_txns(writers.txn_ids, AbortReason.REPL_DEFAULT)
                abort_writers(source)
                has_aborted = True
            else:
                raise ReplError(
                    f"database {source.database_name} is still written to: {writers.text}. Its "
                    "writers have it again. Wait longer (--wait), or have them aborted "
                    "(--abort-writers)"
                )

    def _require_all(self, source: Side) -> None:
        """Raises ReplError if the source has anything that the replica lacks."""
        stands_at = last_event_of(self._target.database().parameters) or EventId(0)
        later = EventRange(after=stands_at, until=source.metastore.get_current_event_id())
        lacking = find_backlog(source.metastore, later, source.all_tables)
        if lacking.txns or lacking.changes:
            raise ReplError(
                f"database {source.database_name} was changed though it is fenced "
                f"({lacking.commits} commits, {lacking.changes} other changes): stop its writers, "
                "then promote again. They have it again"
            )

    def _take_over(self, plan: PromotePlan, check_lease: Callable[[], None]) -> None:
        """On the replica, where no load is at work; all but the last step change nothing that a
        reader sees."""
        sides, target = self._sides, self._target
        sides.same_policy()  # the way back is by what it says, and begins here
        handover = self._begin(plan)
        sides.policies.set_paused(plan.request.policy.name, is_paused=True)
        self._end_replays(check_lease)
        pins_of(sides, target).begin()
        own_event = ensure_beginning(
            target.metastore,
            target.resolve,
            DumpPaths(handover.beginning),
            database=target.database_name,
            cm_root=target.cm_root,
            time_ms=self._later_than_all(),
        )
        check_lease()
        if sides.source is not None:
            # The fence too: lifted, perhaps, by one that stood still since before the handover.
            hand_over(sides, sides.source)
        changes: dict[str, str | None] = dict.fromkeys((*PROPERTIES, SUCCESSOR), None)
        del changes[SCOPE]  # by it a failback sees that the other side has more
        changes[SOURCE_FOR] = sides.policy.name
        changes[HANDOVER] = replace(handover, own_event=own_event).format()
        target.set_parameters(changes)

    def _begin(self, plan: PromotePlan) -> Handover:
        """Loads are taken away; what is to be remembered is written down."""
        target, policy = self._target, self._sides.policy
        database = target.database()
        begun = Handover.of(database)
        if begun is not None:
            return begun
        above = target.resolve(database_directory(policy.root, target.database_name))
        dumps = list_dumps(target.resolve, policy.root, policy.source.database)
        last = next((dump for dump in dumps if dump.state is DumpState.LOADED), None)
        handover = Handover(
            policy=policy.name,
            source_event=last_event_of(database.parameters) or EventId(0),
            beginning=above.child(self._sides.new_name()).uri,
            last_dump=None if last is None else last.paths.root,
            is_pure=is_of_loads_only(database.parameters),
        )
        # Closed from here on, whoever was let in before.
        changes: dict[str, str | None] = {HANDOVER: handover.format(), OPENED: "false"}
        if plan.left_with is not None:  # else a failback would not see what is missing here
            changes[SCOPE] = plan.left_with.patterns_text
        target.set_parameters(changes)
        return handover

    def _end_replays(self, check_lease: Callable[[], None]) -> None:
        """End what loads left open: what has write ids here, and what has none but which the dumps
        name; it would keep the cleaner waiting for days."""
        target, policy = self._target, self._sides.policy
        replays = open_replays(target.metastore, target.database_name)
        check_lease()
        if replays:
            target.metastore.abort_txns(replays, AbortReason.REPL_DEFAULT)
        known: set[TxnId] = set()
        for dump in list_dumps(target.resolve, policy.root, policy.source.database):
            if dump.metadata is not None:
                known |= Replays.read(target.resolve, dump.paths).all
        for txn_id in sorted(known):
            check_lease()
            abort_replay(target.metastore, target.database_name, txn_id)

    def _later_than_all(self) -> int:
        target, policy = self._target, self._sides.policy
        dumps = list_dumps(target.resolve, policy.root, target.database_name)
        return later_than(dumps, self._sides.clock.now_ms())

    def _unreachable(self, error: Exception) -> str:
        policy = self._sides.policy
        return (
            f"promoting the replica of policy {policy.name}: {error}. Its dumps, below "
            f"{policy.root}, must be within reach; then 'repl promote {policy.name}' again, which "
            "goes on from where it stands. If they are lost with the source, give the policy "
            f"another root: 'repl policy add {policy.name} --replace --root DIR'"
        )


def _is_fence_tried(plan: PromotePlan) -> bool:
    """Whether the source's metastore must keep writers out, as nobody said that there are none."""
    is_needed = PromoteStep.FENCE in plan.steps or PromoteStep.REPLICATE in plan.steps
    return is_needed and not plan.request.is_quiet
