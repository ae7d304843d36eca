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
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.target_objects import (
    FENCED,
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
    """

    policy: ReplicationPolicy
    is_planned: bool = False
    is_source_lost: bool = False
    is_dump_left: bool = False
    is_quiet: bool = False
    wait: WaitRules = field(default_factory=WaitRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceState:
    """What the source shows. ``backlog``: what its replica lacks, None where the log cannot tell
    (``gap`` says why). ``writers``: open transactions with write ids of the database;
    ``in_the_way`` tells of them, and of locks, in words."""

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
    the replica to, if it does."""

    database: Database
    replays: tuple[TxnId, ...] = ()
    half_brought: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    waiting: str | None = None
    waiting_scope: ReplScope | None = None


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
    given up. ``notes`` are for people."""

    request: PromoteRequest
    steps: tuple[PromoteStep, ...]
    reason: str
    stands_at: EventId | None = None
    behind: Backlog | None = None
    waits_for: str = ""
    aborted: tuple[TxnId, ...] = ()
    replays: tuple[TxnId, ...] = ()
    left: str | None = None
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
        return _plan_late_fence(request, source, handover)
    if handover is not None:
        return PromotePlan(
            request=request,
            steps=_taking_over(source) + _ON_REPLICA,
            reason="goes on with a promotion that was stopped",
            stands_at=handover.source_event,
            aborted=_writers(source),
            replays=replica.replays,
        )
    stands_at = _require_replica(name, replica)
    if not request.is_source_lost:
        _require_brought_back(name, replica)
    _require_reachable(request, source, unreachable)
    _require_all_tables(request.policy, source, database)
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
    by = source.database.parameters.get(FENCED) or name
    if by != name:
        raise ReplError(
            f"the source, database {source.database.name}, is handed over by policy {by} already; "
            f"there may be one source. 'repl promote {by} --cancel' gives it back"
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
    policy: ReplicationPolicy, source: SourceState | None, replica: Database
) -> None:
    """Raises ReplError where a fence would close tables of the source that no replica has."""
    if source is None:
        return
    scopes = (policy.scope, noted_scope(replica.parameters, policy.source.database))
    limited = next((scope for scope in scopes if scope and not scope.is_whole_database), None)
    if limited is not None:
        raise ReplError(
            f"database {replica.name} has only {limited.text}, and a promotion closes the whole "
            f"database {policy.source.database}: its other tables would have no writers any more, "
            f"and no replica. Replicate all of them first ('repl policy add {policy.name} "
            f"{policy.source.database} --replace …' without patterns, 'repl run {policy.name}'), "
            "or move the others to another database"
        )


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
    request: PromoteRequest, source: SourceState | None, handover: Handover
) -> PromotePlan:
    """It is promoted; the source may have come back since."""
    steps = _taking_over(source)
    return PromotePlan(
        request=request,
        steps=steps,
        reason="is promoted already" + ("; its old source is fenced now" if steps else ""),
        stands_at=handover.source_event,
        aborted=_writers(source),
    )


def _plan_switch(
    request: PromoteRequest, source: SourceState, replica: ReplicaState, stands_at: EventId
) -> PromotePlan:
    name = request.policy.name
    if source.backlog is None:
        raise ReplError(f"the source's log cannot tell what the replica lacks: {source.gap}")
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
    is_behind = source is not None and (source.backlog is None or source.backlog.oldest_ms)
    notes = (
        [
            "the source has commits that the replica lacks; they stay there, 'repl failback "
            f"{name}' names them. --planned would bring them first"
        ]
        if is_behind
        else []
    )
    return PromotePlan(
        request=request,
        steps=_taking_over(source) + _ON_REPLICA,
        reason="the replica takes its source's place as it stands",
        stands_at=stands_at,
        behind=None if source is None else source.backlog,
        aborted=_writers(source),
        replays=replica.replays,
        left=replica.waiting,
        notes=tuple(notes),
    )


def _fencing(source: SourceState | None) -> tuple[PromoteStep, ...]:
    return () if source is None or is_fenced(source.database) else (PromoteStep.FENCE,)


def _taking_over(source: SourceState | None) -> tuple[PromoteStep, ...]:
    """Nobody writes to the source any more, nor ends what they had begun."""
    return _fencing(source) + ((PromoteStep.ABORT_WRITERS,) if _writers(source) else ())


def _writers(source: SourceState | None) -> tuple[TxnId, ...]:
    return () if source is None else source.writers
