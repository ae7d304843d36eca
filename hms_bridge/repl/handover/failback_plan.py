"""What a failback does, decided from what both sides show. Pure.

Going back means that the former source becomes the replica of the one that took its place. Its
tables are what they were at the handover, so that events go on from there; only those that changed
on their own come whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import TxnId
from hms_bridge.model.replication import ReplicationPolicy
from hms_bridge.repl.handover.divergence import Divergence
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.remedies import begin_anew, lift_fence
from hms_bridge.repl.successor import Successor
from hms_bridge.repl.target_objects import (
    FENCED,
    SCOPE,
    diverged_tables,
    is_fenced,
    is_replica,
    last_event_of,
)

_NAMES_LENGTH_MAX = 3500
"""Of all names together: a property of a database has place for 4000 (Hive: DATABASE_PARAMS)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailbackRequest:
    """The former source of ``policy`` becomes its replica. ``is_discarded``: what it has that never
    reached the other side may go."""

    policy: ReplicationPolicy
    is_discarded: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class OldSource:
    """What the former source shows. ``database`` None: it has none, as after a loss of everything.
    ``tables``: names, with the event that each was loaded at last (None: never). ``functions``:
    names of those that differ from the new source's though no event shows why. ``writers``: open
    transactions with write ids. ``views``: its materialized views, with their queries;
    ``foreign_views``: those of other databases there, as ``database.name``, with its tables that
    they read."""

    database: Database | None
    tables: dict[str, int | None] = field(default_factory=dict)
    divergence: Divergence = field(default_factory=Divergence)
    functions: tuple[str, ...] = ()
    writers: tuple[TxnId, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    foreign_views: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSource:
    """What the promoted replica shows. ``known``: names of tables that it has, or had since the
    handover, among those that matter."""

    database: Database
    tables: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


class FailbackStep(Enum):
    """What is done, in this order. Each can be done again."""

    FENCE = "fence the former source"
    ABORT_WRITERS = "abort its open writers"
    BECOME_REPLICA = "make it a replica that stands at the handover"
    DROP_VIEWS = "drop its materialized views, which no replica has"
    DROP = "drop its tables that the other side never had"
    TURN = "turn the policy around"
    REPLICATE = "dump there and load here: the difference, and the tables that come whole"


_ON = (FailbackStep.DROP, FailbackStep.TURN, FailbackStep.REPLICATE)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailbackPlan:
    """``lost``: what goes, in words. ``whole``: tables that are brought whole; ``dropped``: those
    that the new source never had, of which the former one may have no more than write ids.
    ``views``: materialized views of the former source, ``former_database``, with their queries,
    which go: a table that one of them reads could neither come whole nor be dropped. ``aborted``:
    transactions. ``is_bootstrap``: there is no database to go back to, so it comes as a whole."""

    request: FailbackRequest
    handover: Handover
    steps: tuple[FailbackStep, ...]
    reason: str
    lost: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    former_database: str = ""
    views: Mapping[str, str] = field(default_factory=dict)
    aborted: tuple[TxnId, ...] = ()
    is_bootstrap: bool = False


def plan_failback(request: FailbackRequest, old: OldSource, new: NewSource) -> FailbackPlan:
    """Raises ReplError for a state from which nothing leads back, and for what would be lost."""
    handover = _require_promoted(request.policy.name, new.database)
    _require_all_tables(request.policy, new.database)
    if old.database is None:
        return FailbackPlan(
            request=request,
            handover=handover,
            steps=(FailbackStep.TURN, FailbackStep.REPLICATE),
            reason="the former source has no such database: it comes as a whole",
            is_bootstrap=True,
        )
    views_go = (FailbackStep.DROP_VIEWS,) if old.views else ()
    if is_replica(old.database.parameters):
        names = diverged_tables(old.database)
        _require_unread(request.policy.name, old, names)
        return FailbackPlan(
            request=request,
            handover=handover,
            steps=(*views_go, *_ON),
            former_database=old.database.name,
            views=old.views,
            reason="is the replica already; brings what is left, and what is new",
            whole=tuple(sorted(names & new.known)),
            dropped=tuple(sorted(names - new.known)),
            is_bootstrap=last_event_of(old.database.parameters) is None,
        )
    _require_free(request.policy.name, old.database)
    lost = loss_texts(old.divergence)
    if lost and not request.is_discarded:
        raise ReplError(_refusal(request.policy.name, old.database.name, lost))
    _require_same_functions(request.policy.name, old.database.name, old)
    names = _whole(old, new, handover)
    _require_unread(request.policy.name, old, names)
    if len(",".join(names)) > _NAMES_LENGTH_MAX:
        raise ReplError(
            f"{len(names)} tables of database {old.database.name} would come whole, more than can "
            f"be noted: begin anew with an empty database there. "
            + begin_anew(new.database.name, old.database.name)
        )
    return FailbackPlan(
        request=request,
        handover=handover,
        steps=(
            *(() if is_fenced(old.database) else (FailbackStep.FENCE,)),
            *((FailbackStep.ABORT_WRITERS,) if old.writers else ()),
            FailbackStep.BECOME_REPLICA,
            *views_go,
            *_ON,
        ),
        former_database=old.database.name,
        views=old.views,
        reason=_reason(handover, old.divergence),
        lost=lost,
        whole=tuple(sorted(names & new.known)),
        dropped=tuple(sorted(names - new.known)),
        aborted=old.writers,
    )


def view_text(database: str, name: str, query: str) -> str:
    """What to type to have a materialized view again, for people."""
    return (
        f"materialized view {database}.{name} of the former source goes, as no replica has one; "
        f"to have it again there: CREATE MATERIALIZED VIEW {database}.{name} AS {query}"
    )


def loss_texts(divergence: Divergence) -> tuple[str, ...]:
    """What nobody else has, for people."""
    texts = [
        f"{name}: {count} {'commit or change' if count == 1 else 'commits or changes'}"
        for name, count in sorted(divergence.lost.items())
    ]
    texts += [f"an event {kind}, which is of no table" for kind in divergence.others]
    if divergence.unknown:
        texts.append(f"perhaps more: {divergence.unknown}")
    return tuple(texts)


def _require_promoted(name: str, database: Database) -> Handover:
    handover = Handover.of(database)
    if handover is None:
        raise ReplError(
            f"database {database.name} was not promoted by policy {name}: there is nothing to go "
            f"back from. First 'repl promote {name}'"
        )
    if handover.own_event is None or is_replica(database.parameters):
        raise ReplError(
            f"the promotion of database {database.name} was stopped: 'repl promote {name}' goes on"
        )
    if handover.policy != name:
        raise ReplError(
            f"database {database.name} was promoted by policy {handover.policy}: 'repl failback "
            f"{handover.policy}'"
        )
    return handover


def _require_all_tables(policy: ReplicationPolicy, database: Database) -> None:
    """Raises ReplError where the former source has tables that were never to be replicated: what
    the other side never had would be dropped there."""
    if policy.scope.is_whole_database and not database.parameters.get(SCOPE):
        return
    patterns = policy.scope.patterns_text or database.parameters.get(SCOPE, "")
    former = policy.source.database
    raise ReplError(
        f"database {database.name} has only the tables {patterns} of its former source, which "
        "would lose all others by becoming its replica. Bring them into a database of their own "
        f"there: 'repl policy add NAME {database.name} --into {former}_back --root ANOTHER', with "
        "the settings of both sides exchanged, and 'repl run NAME'. If the former source is "
        f"fenced, 'repl end {former}' there gives its other tables back to their writers"
    )


def _require_free(name: str, database: Database) -> None:
    by = database.parameters.get(FENCED) or name
    if by == name:
        return
    successor = Successor.of(database)
    if successor is not None and successor.policy == by:
        raise ReplError(
            f"database {database.name} is handed over by policy {by} too: there are two sources in "
            f"its place. 'repl failback {by}' makes it the replica of database "
            f"{successor.database}; what replicates by policy {name} begins anew from there "
            f"('repl policy remove {name}', 'repl policy add')"
        )
    raise ReplError(
        f"database {database.name} is handed over by policy {by} too: 'repl policy show {by}'. To "
        f"give it back: {lift_fence(by)}"
    )


def _require_unread(name: str, old: OldSource, names: frozenset[str]) -> None:
    """Raises ReplError where views that are none of the database's would stop the way back."""
    views = sorted(view for view, read in old.foreign_views.items() if read & names)
    if views:
        raise ReplError(
            f"materialized views of other databases ({', '.join(views)}) read tables of the former "
            "source that come whole or go, which they would stop. Keep their definitions (SHOW "
            f"CREATE TABLE), drop them there, then 'repl failback {name}' again"
        )


def _require_same_functions(name: str, database: str, old: OldSource) -> None:
    others, functions = old.divergence.others, old.functions
    if not others and not functions:
        return
    what = "was changed by what is of no table" if others else "has other functions"
    raise ReplError(
        f"database {database}, the former source, {what} ({', '.join(others or functions)}), and "
        "no dump brings that anew. Keep what is needed of it, then drop it there ('repl end "
        f"{database}', then 'sql -e \"DROP DATABASE {database} CASCADE\"', both with its "
        f"--metastore): 'repl failback {name}' brings all of it"
    )


def _refusal(name: str, database: str, lost: tuple[str, ...]) -> str:
    return (
        f"database {database}, the former source, has what never reached the one that took its "
        f"place, and nobody else has it: {'; '.join(lost)}. Keep what is needed of it ('sql -e "
        f'"SELECT … FROM {database}.…"\' with its --metastore reads it), then give it up: '
        f"'repl failback {name} --discard-divergence'"
    )


def _whole(old: OldSource, new: NewSource, handover: Handover) -> frozenset[str]:
    """Tables of which the former source has not exactly what the new one had at the handover."""
    if old.divergence.unknown or not handover.is_pure:
        return new.tables | old.tables.keys()
    # An event of an earlier replication of another source would hide those of the new one.
    later = (
        name
        for name, event_id in old.tables.items()
        if event_id is not None and event_id > (handover.own_event or 0)
    )
    return old.divergence.tables.union(later)


def _reason(handover: Handover, divergence: Divergence) -> str:
    if divergence.unknown:
        return "all tables come whole: " + divergence.unknown
    if not handover.is_pure:
        return "all tables come whole: others than loads could change the replica (repl open)"
    return f"events after {handover.own_event} of the database that took its source's place"
