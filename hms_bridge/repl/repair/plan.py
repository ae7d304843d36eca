"""The smallest step that ends what is wrong between a source and its replica. Pure.

Steps, from the smallest: nothing; dump and load as always; the events of a damaged dump once more;
some tables whole, beside the events of all others; the whole database. Hive's layout brings tables
whole, not partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from hms_bridge.model.ids import EventId
from hms_bridge.repl.compare.described import Finding, Verdict
from hms_bridge.repl.remedies import begin_anew, named_remedy


class Cure(IntEnum):
    """What ends a trouble, from the smallest. ``BY_HAND``: no step of a repair."""

    GO_ON = 1
    DUMP_AGAIN = 2
    TABLES = 3
    BOOTSTRAP = 4
    BY_HAND = 5


class Step(Enum):
    """What a repair does next; the value is what people and programs read."""

    NOTHING = "nothing"
    GO_ON = "dump and load"
    DUMP_AGAIN = "dump again"
    TABLES = "tables anew"
    BOOTSTRAP = "bootstrap"
    BY_HAND = "by hand"


class Seen(Enum):
    """Where a trouble was seen."""

    ASKED = "asked for"
    DUMP = "dump"
    LOAD = "load"
    CYCLE = "last cycle"
    REPLICA = "replica"
    COMPARE = "compare"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """One thing that is wrong. ``tables``: those that have to come whole, for ``Cure.TABLES``."""

    seen: Seen
    text: str
    cure: Cure
    tables: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingDump:
    """The newest dump, if it is not loaded. ``checkpoint``: how a database that it began is marked.
    ``anew``: tables that it brings whole, if it can be loaded. ``is_followed``: if it goes, the
    next dump still knows after which event to begin."""

    directory: str
    checkpoint: str
    is_bootstrap: bool = False
    is_damaged: bool = False
    is_followed: bool = True
    anew: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaState:
    """The database of the replica. ``stands_at``: the source's event up to which it is loaded;
    ``begun``: the mark of the bootstrap dump that it was made from."""

    name: str
    is_there: bool = False
    stands_at: EventId | None = None
    begun: str | None = None
    is_incompatible: bool = False
    table_count: int = 0

    @property
    def is_loaded(self) -> bool:
        """Whether a load made it, in part or whole: nothing else may be dropped."""
        return self.stands_at is not None or self.begun is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairFacts:
    """What was found, without changing anything. ``has_dump``: a finished one, loaded or not;
    ``is_anything_new``: dump or load have something to do."""

    source_database: str
    replica: ReplicaState
    waiting: WaitingDump | None = None
    has_dump: bool = False
    is_anything_new: bool = False
    troubles: tuple[Trouble, ...] = ()

    @property
    def waiting_directory(self) -> str | None:
        """Where the dump is that waits, if one does."""
        return None if self.waiting is None else self.waiting.directory


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairPlan:
    """What a repair will do. ``tables``: that come whole. ``replaced_dump``: one that waits and
    makes way; ``dropped``: the replica's database that does, with all that it holds.
    ``loaded_dump``: a dump that is there already and is loaded. ``left``: what no step mends."""

    step: Step
    troubles: tuple[Trouble, ...] = ()
    tables: tuple[str, ...] = ()
    replaced_dump: str | None = None
    loaded_dump: str | None = None
    dropped: str | None = None
    left: tuple[Trouble, ...] = ()


def decide(facts: RepairFacts) -> RepairPlan:
    """The smallest step. What nobody but a person can end comes before all others, unless a new
    bootstrap ends it too: nothing is changed then."""
    own = tuple(_of_replica(facts))
    troubles = (*own, *facts.troubles)
    left = tuple(
        trouble for trouble in troubles if trouble.seen is Seen.COMPARE and _is_by_hand(trouble)
    )
    rest = tuple(trouble for trouble in troubles if trouble not in left)
    if own:
        # The load says the same in other words.
        rest = tuple(
            trouble for trouble in rest if not (trouble.seen is Seen.LOAD and _is_by_hand(trouble))
        )
    cure = max((trouble.cure for trouble in rest), default=None)
    if cure is Cure.BY_HAND:
        plan = RepairPlan(step=Step.BY_HAND, troubles=tuple(filter(_is_by_hand, rest)))
    elif cure is Cure.BOOTSTRAP:
        plan = _bootstrap(facts, rest)
    elif cure is Cure.TABLES:
        plan = _tables(facts, rest)
    elif cure is Cure.DUMP_AGAIN:
        plan = RepairPlan(
            step=Step.DUMP_AGAIN, troubles=rest, replaced_dump=facts.waiting_directory
        )
    elif cure is Cure.GO_ON or facts.is_anything_new:
        plan = _going_on(facts, rest)
    else:
        plan = RepairPlan(step=Step.NOTHING)
    return replace(plan, left=left)


def trouble_of(
    seen: Seen, message: str, *, is_gap: bool = False, is_dump_damaged: bool = False
) -> Trouble:
    """What an error of a dump or a load asks for: of two ways that it names, the smaller one.
    ``is_gap``: events are gone."""
    remedy = named_remedy(message)
    if remedy is not None and remedy.tables:
        return Trouble(seen=seen, text=message, cure=Cure.TABLES, tables=remedy.tables)
    if remedy is not None or is_gap:
        return Trouble(seen=seen, text=message, cure=Cure.BOOTSTRAP)
    cure = Cure.DUMP_AGAIN if is_dump_damaged else Cure.BY_HAND
    return Trouble(seen=seen, text=message, cure=cure)


def trouble_of_cycle(message: str) -> Trouble:
    """What the last cycle failed with. It may be over: but for tables that it names, another try
    shows it."""
    trouble = trouble_of(Seen.CYCLE, message)
    if trouble.cure is Cure.TABLES:
        return trouble
    return Trouble(seen=Seen.CYCLE, text=message, cure=Cure.GO_ON)


def troubles_of_findings(findings: Iterable[Finding]) -> tuple[Trouble, ...]:
    """Differences that a comparison found, one trouble a table."""
    by_table: dict[str, list[Finding]] = {}
    others: list[Trouble] = []
    for finding in findings:
        if finding.verdict is not Verdict.DIFFERENT:
            continue
        text = _advice(finding)
        if text is not None:
            others.append(Trouble(seen=Seen.COMPARE, text=text, cure=Cure.BY_HAND))
        elif finding.table is not None:
            by_table.setdefault(finding.table, []).append(finding)
    differing = (
        Trouble(
            seen=Seen.COMPARE,
            text=f"{table}: {'; '.join(map(_text, findings_there))}",
            cure=Cure.TABLES,
            tables=frozenset([table]),
        )
        for table, findings_there in sorted(by_table.items())
    )
    return (*differing, *others)


def asked(tables: Collection[str]) -> tuple[Trouble, ...]:
    """Tables that somebody wants whole, whatever is found."""
    names = frozenset(tables)
    if not names:
        return ()
    text = f"bring {', '.join(sorted(names))} whole"
    return (Trouble(seen=Seen.ASKED, text=text, cure=Cure.TABLES, tables=names),)


def _text(finding: Finding) -> str:
    where = "" if finding.partition is None else f"{finding.partition}: "
    sides = f" (source: {finding.source or 'none'}; replica: {finding.replica or 'none'})"
    return f"{where}{finding.what}{sides}"


def _advice(finding: Finding) -> str | None:
    """What a person does about a difference; None where its table can be brought whole."""
    if finding.table is None and finding.what.startswith("function "):
        return (
            f"{_text(finding)}: drop it at the source and create it there anew, so that its events "
            "bring it; or drop it on the replica, if the source has none"
        )
    if finding.table is None:
        return f"{_text(finding)}: change it on the side where it is wrong"
    if finding.what == "table" and finding.source == "missing":
        return (
            f"table {finding.table} is on the replica only, and no event of the source is of it: "
            "drop it there, or give it to another database"
        )
    return None


def _is_by_hand(trouble: Trouble) -> bool:
    return trouble.cure is Cure.BY_HAND


def _is_bootstrap(waiting: WaitingDump | None) -> bool:
    return waiting is not None and waiting.is_bootstrap


def _of_replica(facts: RepairFacts) -> Iterator[Trouble]:
    """What the marks of the replica and of the newest dump say: they do not fit together."""
    replica, waiting = facts.replica, facts.waiting
    why = ""
    if replica.is_incompatible:
        why = f"{replica.name} is marked repl.incompatible: a replayed transaction was aborted"
    elif waiting is not None and _is_bootstrap(waiting) and not waiting.is_damaged:
        if replica.is_loaded and replica.begun != waiting.checkpoint:
            why = f"{replica.name} was not made from the bootstrap dump that waits"
    elif waiting is not None and waiting.is_damaged and not waiting.is_followed:
        if replica.is_loaded:
            why = f"{waiting.directory} is damaged, and nothing else tells where to go on"
    elif facts.has_dump and replica.stands_at is None and not _is_bootstrap(waiting):
        if replica.begun is not None:
            why = f"{replica.name} is half bootstrapped, and the dump that began it is gone"
        elif replica.table_count == 0:
            why = f"{replica.name} has nothing that a dump brought, and the newest is incremental"
    elif not facts.has_dump and replica.is_loaded:
        why = f"no dump is left that tells where {replica.name} has to go on"
    if why:
        commands = begin_anew(facts.source_database, replica.name)
        yield Trouble(seen=Seen.REPLICA, text=f"{why}. {commands}", cure=Cure.BOOTSTRAP)


def _bootstrap(facts: RepairFacts, troubles: tuple[Trouble, ...]) -> RepairPlan:
    """A bootstrap dump that waits and is whole is the new one."""
    waiting, replica = facts.waiting, facts.replica
    is_there = (
        waiting is not None
        and waiting.is_bootstrap
        and not waiting.is_damaged
        and not _is_seen_by_verbs(troubles, Cure.BOOTSTRAP)
    )
    directory = facts.waiting_directory
    return RepairPlan(
        step=Step.BOOTSTRAP,
        troubles=troubles,
        replaced_dump=None if is_there else directory,
        loaded_dump=directory if is_there else None,
        dropped=replica.name if replica.is_loaded else None,
    )


def _is_seen_by_verbs(troubles: Iterable[Trouble], cure: Cure) -> bool:
    """Whether a dump or a load asks for a cure, as they would do with what waits."""
    return any(
        trouble.cure is cure and trouble.seen in (Seen.LOAD, Seen.DUMP) for trouble in troubles
    )


def _tables(facts: RepairFacts, troubles: tuple[Trouble, ...]) -> RepairPlan:
    """Not in place of a bootstrap dump: that is loaded first. Nor of one that brings them."""
    waiting = facts.waiting
    names = frozenset[str]().union(*(trouble.tables for trouble in troubles))
    if waiting is not None and not waiting.is_damaged:
        is_brought = names <= waiting.anew and not _is_seen_by_verbs(troubles, Cure.TABLES)
        if waiting.is_bootstrap or is_brought:
            return _going_on(facts, troubles)
    return RepairPlan(
        step=Step.TABLES,
        troubles=troubles,
        tables=tuple(sorted(names)),
        replaced_dump=facts.waiting_directory,
    )


def _going_on(facts: RepairFacts, troubles: tuple[Trouble, ...]) -> RepairPlan:
    return RepairPlan(step=Step.GO_ON, troubles=troubles, loaded_dump=facts.waiting_directory)
