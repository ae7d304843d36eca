"""Constraints of both sides of a table: what each says, and which may differ. Pure but for the
questions that are passed in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.event import EventType
from hms_bridge.repl.compare.definitions import Definition, differing
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.format.constraints import ADDED
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.layout import CONSTRAINTS
from hms_bridge.repl.format.passed_kinds import SETTING

_DROPPED = frozenset({DumpType.DROP_CONSTRAINT.value, EventType.DROP_CONSTRAINT.value})
_DUMPED_PREFIX = "EVENT_"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstraintContext:
    """What else decides about a constraint. ``passed_kinds``: of events that the replica does
    without. ``change_of``: what the source did since to another table, by its name; None for
    nothing. ``has_key``: whether the target has what a foreign key refers to."""

    database: str
    passed_kinds: Collection[str]
    change_of: Callable[[str], str | None]
    has_key: Callable[[Sequence[ColumnConstraint]], bool]


def constraints_definition(constraints: Iterable[ColumnConstraint]) -> Definition:
    """A text of each, by name. The name of the key that a foreign key refers to follows from its
    columns and is not compared."""
    return {name: _text(columns) for name, columns in _by_name(constraints).items()}


def excused(
    source: Iterable[ColumnConstraint],
    replica: Iterable[ColumnConstraint],
    context: ConstraintContext,
) -> Mapping[str, tuple[Verdict, str]]:
    """Of the constraints that are not the same those that need not be, and why."""
    ours, theirs = _by_name(source), _by_name(replica)
    excuses: dict[str, tuple[Verdict, str]] = {}
    unequal = differing(constraints_definition(source), constraints_definition(replica))
    for what, _, _ in unequal:
        reason = _reason(ours.get(what, ()), theirs.get(what, ()), context)
        if reason is not None:
            excuses[what] = reason
    return excuses


def _reason(
    ours: Sequence[ColumnConstraint], theirs: Sequence[ColumnConstraint], context: ConstraintContext
) -> tuple[Verdict, str] | None:
    kinds = {constraint.kind for constraint in (*ours, *theirs)}
    if _are_passed(kinds, context.passed_kinds):
        return Verdict.NOT_COMPARED, f"the replica does without, by {SETTING}"
    for table in _referred_tables((*ours, *theirs), context.database):
        # A table that goes takes foreign keys to it along, and those have no event.
        change = context.change_of(table)
        if change is not None:
            why = f"{table}, to which it refers, changed since, by {change}; load, compare again"
            return Verdict.UNDECIDED, why
    referred = ours[0].refers_to if ours and not theirs else None
    if referred is not None and not context.has_key(ours):
        where = f"{referred.database_name}.{referred.table_name}"
        return Verdict.NOT_COMPARED, f"{where} has no such key there, so a load leaves it out"
    return None


def _are_passed(kinds: Collection[ConstraintKind], passed: Collection[str]) -> bool:
    if CONSTRAINTS in passed or not _DROPPED.isdisjoint(passed):
        return True
    dumped = {name for name, kind in ADDED.items() if kind in kinds}
    plain = {name.removeprefix(_DUMPED_PREFIX) for name in dumped}
    return not (dumped | plain).isdisjoint(passed)


def _referred_tables(constraints: Iterable[ColumnConstraint], database: str) -> Iterator[str]:
    for constraint in constraints:
        referred = constraint.refers_to
        if referred is not None and referred.database_name == database:
            yield referred.table_name.lower()


def _by_name(
    constraints: Iterable[ColumnConstraint],
) -> dict[str, tuple[ColumnConstraint, ...]]:
    by_name: dict[str, list[ColumnConstraint]] = {}
    for constraint in sorted(constraints, key=lambda column: column.position):
        by_name.setdefault(f"constraint {constraint.name.lower()}", []).append(constraint)
    return {name: tuple(columns) for name, columns in by_name.items()}


def _text(columns: Sequence[ColumnConstraint]) -> str:
    """``primary key: id, v; not enforced, relied on``."""
    kind = "; ".join(
        dict.fromkeys(constraint.kind.name.lower().replace("_", " ") for constraint in columns)
    )
    said = ", ".join(filter(None, map(_column_text, columns)))
    flags = "; ".join(dict.fromkeys(map(_flags_text, columns)))
    return f"{kind}: {said}; {flags}"


def _column_text(constraint: ColumnConstraint) -> str:
    referred = constraint.refers_to
    parts = [constraint.column or "", constraint.expression or ""]
    if referred is not None:
        place = f"{referred.database_name}.{referred.table_name}.{referred.column}"
        parts.append(f"to {place.lower()}")
        if referred.update_rule or referred.delete_rule:
            parts.append(f"(rules {referred.update_rule}, {referred.delete_rule})")
    return " ".join(filter(None, parts))


def _flags_text(constraint: ColumnConstraint) -> str:
    flags = {
        "enforced": constraint.is_enabled,
        "relied on": constraint.is_relied_on,
    }
    said = [name if is_set else f"not {name}" for name, is_set in flags.items()]
    return ", ".join([*said, *(["validated"] if constraint.is_validated else [])])
