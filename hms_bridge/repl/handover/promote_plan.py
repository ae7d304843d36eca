"""What a promotion does, decided from what both sides show. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.properties import INCOMPATIBLE, SOURCE_FOR, TARGET_FOR, is_true
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import ReplicationPolicy
from hms_bridge.repl.dump.backlog import Backlog
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.remedies import begin_anew, lift_fence
from hms_bridge.repl.successor import Successor, successor_text
from hms_bridge.repl.target_objects import (
    FENCED,
    SUCCESSOR,
    is_fenced,
    is_replica,
    last_event_of,
    noted_scope,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromoteRequest:
    """The replica of ``policy`` takes its source's place.

    ``is_planned``: without losing a commit; ``wait`` says for how long open transactions of the
    source are waited for, and whether they are aborted then. ``is_source_lost``: the source cannot
    be reached, and is not waited for. ``is_dump_left``: a dump that waits is given up.
    ``is_quiet``: the source's writers are stopped, whatever its metastore makes of a fence.
    ``is_all_closed``: a source of which the replica has some tables only may be fenced as a whole.
    """

    policy: ReplicationPolicy
    is_planned: bool = False
    is_source_lost: bool = False
    is_dump_left: bool = False
    is_quiet: bool = False
    is_all_closed: bool = False
    wait: WaitRules = field(default_factory=WaitRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceState:
    """What the source shows. ``backlog``: what its replica lacks, None where the log has not all
    (``gap`` says why). ``writers``: open transactions with write ids of the database;
    ``in_the_way`` describes them, and locks, in words."""

    database: Database
    backlog: Backlog | None
    gap: str = ""
    writers: tuple[TxnId, ...] = ()
    in_the_way: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaState:
    """What the replica shows. ``replays``: open transactions of the source. ``half_brought``:
    tables that a load has begun to bring whole; ``missing``: names of those that a failback has yet
    to bring. ``waiting``: a dump that is not loaded; ``waiting_scope``: the tables that it changes
    the replica to, if it does; ``half_dropped``: the same, where a load that drops the others has
    begun, and was stopped."""

    database: Database
    replays: tuple[TxnId, ...] = ()
    half_brought: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    waiting: str | None = None
    waiting_scope: ReplScope | None = None
    half_dropped: ReplScope | None = None


class PromoteStep(Enum):
    """What is done, in this order. Each can be done again."""

    FENCE = "fence the source"
    ABORT_WRITERS = "abort the source's open writers"
    DRAIN = "wait for the source's open writers"
    REPLICATE = "dump and load what is left"
    BEGIN = "take loads away from the replica, and pause the policy"
    END_REPLAYS = "abort what loads left open"
    PIN = "begin the way back: pin archive and events, write a dump of nothing"
    OPEN = "make the replica a source that everybody may change"


_ON_REPLICA = (
    PromoteStep.BEGIN,
    PromoteStep.END_REPLAYS,
    PromoteStep.PIN,
    PromoteStep.OPEN,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromotePlan:
    """``steps`` are none where all is done. ``stands_at``: the source's event up to which the
    replica has everything; ``behind``: what the source has beyond it, as far as it can be asked.
    ``aborted``: transactions of the source; ``replays``: of the replica. ``left``: a dump that is
    given up; ``left_with``: the tables that it leaves, if its load had begun to drop the others.
    ``notes`` are for people."""

    request: PromoteRequest
    steps: tuple[PromoteStep, ...]
    reason: str
    stands_at: EventId | None = None
    behind: Backlog | None = None
    waits_for: str = ""
    aborted: tuple[TxnId, ...] = ()
    replays: tuple[TxnId, ...] = ()
    left: str | None = None
    left_with: ReplScope | None = None
    notes: tuple[str, ...] = ()


def plan_promotion(
    request: PromoteRequest,
    source: SourceState | None,
    replica: ReplicaState,
    *,
    unreachable: str = "",
) -> PromotePlan:
    """Raises ReplError for a state in which nothing may be promoted. ``source`` None: it cannot be
    reached, and ``unreachable`` says why."""
    name = request.policy.name
    database = replica.database
    handover = Handover.of(database)
    _require_one_source(name, source, database)
    if handover is not None and not is_replica(database.parameters):
        return _plan_late_fence(request, source, database, handover)
    if handover is not None:
        steps = _taking_over(source)
        _require_others_may_close(request, steps, database)
        return PromotePlan(
            request=request,
            steps=steps + _ON_REPLICA,
            reason="goes on with a promotion that was stopped",
            stands_at=handover.source_event,
            aborted=_writers(source),
            replays=replica.replays,
        )
    stands_at = _require_replica(name, replica)
    if not request.is_source_lost:
        _require_brought_back(name, replica)
    _require_reachable(request, source, unreachable)
    _require_all_tables(request, source, replica)
    if request.is_planned and source is not None:
        return _plan_switch(request, source, replica, stands_at)
    return _plan_failover(request, source, replica, stands_at)


def _require_one_source(name: str, source: SourceState | None, replica: Database) -> None:
    if source is None:
        return
    if is_replica(source.database.parameters):
        raise ReplError(
            f"database {source.database.name}, the source of policy {name}, is a replica itself "
            f"({TARGET_FOR}): 'repl policy show {name}'; after a promotion 'repl failback {name}' "
            "turns the policy around"
        )
    # First: a fence whose replica took the place is given back by nobody.
    successor = Successor.of(source.database)
    if successor is not None and successor.policy != name:
        raise ReplError(f"there would be two sources: {successor_text(source.database)}")
    by = source.database.parameters.get(FENCED) or name
    if by != name:
        raise ReplError(
            f"the source, database {source.database.name}, is handed over by policy {by} already; "
            f"there may be one source. To give it back: {lift_fence(by)}"
        )
    if source.database.name == replica.name and source.database == replica:
        raise ReplError(
            f"both sides of policy {name} are database {replica.name} of one metastore; see "
            f"'repl policy show {name}'"
        )


def _require_replica(name: str, replica: ReplicaState) -> EventId:
    database = replica.database
    stands_at = last_event_of(database.parameters)
    if not is_replica(database.parameters) and database.is_replication_source:
        raise ReplError(
            f"database {database.name} is no replica but a source ({SOURCE_FOR}): there would be "
            f"two. See 'repl policy show {name}'; 'repl end {database.name}' ends that part"
        )
    if not is_replica(database.parameters) or stands_at is None:
        raise ReplError(
            f"database {database.name} holds no whole replica: no bootstrap was loaded to its end. "
            f"'repl run {name}' loads it"
        )
    if replica.half_brought:
        raise ReplError(
            f"{', '.join(replica.half_brought)} of database {database.name} is not whole: a load "
            f"that brings it, or a failback, was stopped. 'repl run {name}' or 'repl failback "
            f"{name}' goes on; if that is not possible, drop it ('repl open {database.name} "
            "--definitions', then DROP TABLE)"
        )
    return stands_at


def _require_brought_back(name: str, replica: ReplicaState) -> None:
    """Raises ReplError for a failback that was stopped before it brought what is not there at all:
    only the other side has it."""
    if replica.missing:
        raise ReplError(
            f"{', '.join(replica.missing)} of database {replica.database.name} is not there: a "
            f"failback that brings it was stopped. 'repl failback {name}' goes on; if the other "
            "side is lost for good, --source-is-lost does without"
        )


def _require_all_tables(
    request: PromoteRequest, source: SourceState | None, replica: ReplicaState
) -> None:
    """Raises ReplError where a fence would close tables of the source that no replica has."""
    if source is None:
        return
    policy = request.policy
    limited = _limited_scope(policy, replica.database)
    if limited is None and not request.is_planned:  # a planned one loads what waits, and all else
        limited = replica.half_dropped
    if limited is not None:
        raise ReplError(
            f"database {replica.database.name} has only {limited.text}, and a promotion closes the "
            f"whole database {policy.source.database}: its other tables would have no writers any "
            f"more, and no replica. Replicate all of them first ('repl policy add {policy.name} "
            f"{policy.source.database} --replace', 'repl run {policy.name}'), "
            "or move the others to another database"
        )


def _limited_scope(policy: ReplicationPolicy, replica: Database) -> ReplScope | None:
    """The tables that a replica has of its source's; None: all."""
    scopes = (policy.scope, noted_scope(replica.parameters, policy.source.database))
    return next((scope for scope in scopes if scope and not scope.is_whole_database), None)


def _require_reachable(
    request: PromoteRequest, source: SourceState | None, unreachable: str
) -> None:
    if source is not None and request.is_source_lost:
        raise ReplError(
            f"the source, database {source.database.name}, can be reached, so it is fenced: leave "
            "--source-is-lost out"
        )
    if source is None and (request.is_planned or not request.is_source_lost):
        way = (
            "a planned promotion needs both sides"
            if request.is_planned
            else "if it is lost, or will be for long: --source-is-lost; promote once more when it "
            "is back, before anybody writes there: that fences it"
        )
        raise ReplError(
            f"the source of policy {request.policy.name} cannot be reached ({unreachable}), so "
            f"that it cannot be fenced; {way}. Nothing was changed"
        )


def _plan_late_fence(
    request: PromoteRequest, source: SourceState | None, replica: Database, handover: Handover
) -> PromotePlan:
    """It is promoted; the source may have come back since."""
    steps = _taking_over(source)
    knows_successor = source is None or SUCCESSOR in source.database.parameters
    if not knows_successor and PromoteStep.FENCE not in steps:  # an earlier version fenced it
        steps = (PromoteStep.FENCE, *steps)
    _require_others_may_close(request, steps, replica)
    return PromotePlan(
        request=request,
        steps=steps,
        reason="is promoted already" + ("; its old source is fenced now" if steps else ""),
        stands_at=handover.source_event,
        aborted=_writers(source),
        notes=_others_closed(request.policy, replica) if steps else (),
    )


def _require_others_may_close(
    request: PromoteRequest, steps: tuple[PromoteStep, ...], replica: Database
) -> None:
    """Raises ReplError where a fence would close tables of the source that the replica never had,
    and nobody said that it may."""
    limited = _limited_scope(request.policy, replica)
    if limited is None or PromoteStep.FENCE not in steps or request.is_all_closed:
        return
    former, name = request.policy.source.database, request.policy.name
    raise ReplError(
        f"database {replica.name} has only {limited.text}, and a fence closes the whole database "
        f"{former}: its other tables would have no writers any more. Stop the writers of those "
        f"that went over, there; then either 'repl promote {name} --close-all', which closes all "
        f"until 'repl end {former}' there, or drop or rename those tables, and leave the others "
        "open. Nothing was changed"
    )


def _others_closed(policy: ReplicationPolicy, replica: Database) -> tuple[str, ...]:
    """What a late fence closes beside the tables that the replica has."""
    limited = _limited_scope(policy, replica)
    if limited is None:
        return ()
    former = policy.source.database
    return (
        f"the fence closes all of database {former}, and {replica.name} has only {limited.text} of "
        f"it: move those tables' clients, then 'repl end {former}' there gives the others back to "
        "their writers",
    )


def _plan_switch(
    request: PromoteRequest, source: SourceState, replica: ReplicaState, stands_at: EventId
) -> PromotePlan:
    name = request.policy.name
    if source.backlog is None:
        raise ReplError(
            f"the source's log does not say what the replica lacks: {source.gap} What the replica "
            f"has is kept by 'repl promote {name}' without --planned, then 'repl failback {name}', "
            "which names what the source alone may have"
        )
    if is_true(replica.database.parameters, INCOMPATIBLE):
        raise ReplError(
            f"database {replica.database.name} is marked {INCOMPATIBLE}, so nothing more can be "
            f"loaded; {begin_anew(source.database.name, replica.database.name)}"
        )
    return PromotePlan(
        request=request,
        steps=(
            *_fencing(source),
            PromoteStep.DRAIN,
            PromoteStep.REPLICATE,
            *_ON_REPLICA,
        ),
        reason=f"switches from the source to the replica of policy {name}, without losing a commit",
        stands_at=stands_at,
        behind=source.backlog,
        waits_for=source.in_the_way,
        aborted=source.writers if request.wait.is_abort_allowed else (),
        replays=replica.replays,
    )


def _plan_failover(
    request: PromoteRequest,
    source: SourceState | None,
    replica: ReplicaState,
    stands_at: EventId,
) -> PromotePlan:
    name = request.policy.name
    if replica.waiting is not None and not request.is_dump_left:
        if replica.waiting_scope is not None:
            raise ReplError(
                f"{replica.waiting} is not loaded, and leaves the replica only "
                f"{replica.waiting_scope.text}: a load drops its other tables, and nobody else may "
                "have them. --leave-dump keeps them, without what the dump brings; if they may go, "
                f"'repl load {request.policy.source.database}' with the replica's --metastore "
                "loads it"
            )
        raise ReplError(
            f"{replica.waiting} is not loaded: the replica would lack what it brings. "
            f"'repl load {request.policy.source.database}' with the replica's --metastore loads "
            "it; if its files cannot be had: --leave-dump"
        )
    notes = () if source is None else _behind_notes(name, source)
    return PromotePlan(
        request=request,
        steps=_taking_over(source) + _ON_REPLICA,
        reason="the replica takes its source's place as it stands",
        stands_at=stands_at,
        behind=None if source is None else source.backlog,
        aborted=_writers(source),
        replays=replica.replays,
        left=replica.waiting,
        left_with=replica.half_dropped,
        notes=notes,
    )


def _behind_notes(name: str, source: SourceState) -> tuple[str, ...]:
    if source.backlog is None:
        return (
            f"nobody can tell what the source has that the replica lacks: {source.gap} It stays "
            f"there until 'repl failback {name} --discard-divergence'",
        )
    if not source.backlog.oldest_ms:
        return ()
    return (
        "the source has commits that the replica lacks; they stay there, 'repl failback "
        f"{name}' names them. --planned would bring them first",
    )


def _fencing(source: SourceState | None) -> tuple[PromoteStep, ...]:
    return () if source is None or is_fenced(source.database) else (PromoteStep.FENCE,)


def _taking_over(source: SourceState | None) -> tuple[PromoteStep, ...]:
    """Nobody writes to the source any more, nor ends what they had begun."""
    return _fencing(source) + ((PromoteStep.ABORT_WRITERS,) if _writers(source) else ())


def _writers(source: SourceState | None) -> tuple[TxnId, ...]:
    return () if source is None else source.writers
