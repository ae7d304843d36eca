"""Run one case on two engines and say where they differ.

After the last statement, and after every turn of a compactor thread, everything the issue of
compatibility is about is looked at: rows with ROW__IDs, the shape of the table's folder, the
compaction queue, the notification log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, cast, get_args

from integration.comparison.engine import CompactorThread, Engine, Fields, Row
from integration.comparison.masks import MASKS, Kind, Mask, masked, masks_that_hide
from integration.referees.errors import StatementError

DATABASE = "${db}"
TURN = "!"
PARTITION_STATISTICS = "UPDATE_PART_COL_STAT_EVENT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Statements to run in a database of the engine's own.

    A step that starts with `!` is one turn of that compactor thread. `acid_tables` are read with
    their ROW__IDs.
    """

    name: str
    steps: tuple[str, ...]
    acid_tables: tuple[str, ...] = ()
    plain_tables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What an engine showed at one moment; every record a mapping, so that masks can name its
    fields.
    """

    label: str
    rows: dict[str, list[Fields]]
    files: dict[str, list[Fields]]
    queue: list[Fields]
    notifications: list[Fields]


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Everything one engine showed in one case."""

    engine: str
    answers: list[tuple[str, list[Row] | Refused]] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of an engine that does not run a statement; two refusals are equal whatever they
    say.
    """

    message: str = field(compare=False)


Aspect = Literal["answers", "row", "file", "queue", "notification"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One thing that two engines do not have in common: what it is about, where it was seen, both
    sides.
    """

    aspect: Aspect
    place: str
    path: str
    left: object
    right: object

    def __str__(self) -> str:
        return f"{self.place} {self.path}: {self.left!r} against {self.right!r}"


def observe(engine: Engine, case: Case) -> Observation:
    """Run the case. A refused statement is an answer, not an error: both engines may refuse."""
    seen = Observation(engine=engine.name)
    for number, step in enumerate(case.steps, start=1):
        if step.startswith(TURN):
            thread = step.removeprefix(TURN)
            if thread not in get_args(CompactorThread):
                raise ValueError(f"{case.name}: no such compactor thread: {thread}")
            engine.run(cast(CompactorThread, thread))
            seen.stages.append(_stage(engine, case, f"after step {number}, {step}"))
        else:
            seen.answers.append((step, _answer(engine, step)))
    seen.stages.append(_stage(engine, case, "at the end"))
    return seen


def differences(
    left: Observation, right: Observation, masks: Iterable[Mask] = MASKS
) -> list[Difference]:
    """Everything that differs and is not masked; empty when the engines agree."""
    chosen = tuple(masks)
    found = [
        Difference(aspect="answers", place=step, path="answer", left=one, right=other)
        for (step, one), (_, other) in zip(left.answers, right.answers, strict=True)
        if one != other
    ]
    for one, other in zip(left.stages, right.stages, strict=True):
        for what, kind, ours, theirs in _pairs(one, other):
            found += _list_differences(
                kind,
                f"{one.label}: {what}",
                [masked(kind, record, chosen) for record in ours],
                [masked(kind, record, chosen) for record in theirs],
            )
    return found


def used_masks(seen: Observation, masks: Iterable[Mask] = MASKS) -> set[Mask]:
    """The masks that hide something in this observation."""
    used: set[Mask] = set()
    for stage in seen.stages:
        for _, kind, records, _ in _pairs(stage, stage):
            for record in records:
                used |= masks_that_hide(kind, record, masks)
    return used


def _answer(engine: Engine, statement: str) -> list[Row] | Refused:
    try:
        return engine.sql(statement.replace(DATABASE, engine.database))
    except StatementError as error:
        return Refused(error.message)


def _stage(engine: Engine, case: Case, label: str) -> Stage:
    prefix = f"{engine.database}."
    selections = {table: f"select row__id, * from {prefix}{table}" for table in case.acid_tables}
    selections |= {table: f"select * from {prefix}{table}" for table in case.plain_tables}
    return Stage(
        label=label,
        rows={
            table: [{"row": list(row)} for row in sorted(engine.sql(selection))]
            for table, selection in selections.items()
        },
        files={
            table: [{"path": path} for path in engine.list_files(table)] for table in selections
        },
        queue=[_named(engine, record) for record in engine.queue_rows()],
        notifications=_in_order([_named(engine, record) for record in engine.notification_rows()]),
    )


def _in_order(events: list[Fields]) -> list[Fields]:
    """Statistics of several partitions of one statement sorted: Hive tells them in the order of a
    HashMap, which means nothing (HMSHandler.updatePartColStatsWithMerge)."""
    ordered: list[Fields] = []
    for kind, run in groupby(events, key=lambda event: event.get("EVENT_TYPE")):
        told = list(run)
        ordered += sorted(told, key=_partition_told) if kind == PARTITION_STATISTICS else told
    return ordered


def _partition_told(event: Fields) -> str:
    return json.dumps(event["MESSAGE"]["partVals"])


def _named(engine: Engine, value: Any) -> Any:
    """The record with the engine's own names replaced: they are what the case itself varies."""
    if isinstance(value, dict):
        return {key: _named(engine, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_named(engine, inner) for inner in value]
    if isinstance(value, str):
        for own, common in ({engine.database: DATABASE} | dict(engine.own_names)).items():
            value = value.replace(own, common)
    return value


def _pairs(one: Stage, other: Stage) -> Iterable[tuple[str, Kind, list[Fields], list[Fields]]]:
    for table in one.rows:
        yield f"rows of {table}", "row", one.rows[table], other.rows[table]
        yield f"files of {table}", "file", one.files[table], other.files[table]
    yield "compaction queue", "queue", one.queue, other.queue
    yield "notification log", "notification", one.notifications, other.notifications


def _list_differences(
    kind: Kind, place: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> list[Difference]:
    if len(ours) != len(theirs):
        left, right = _left_over(ours, theirs), _left_over(theirs, ours)
        path = f"has {len(ours)} against {len(theirs)}, only there"
        return [Difference(aspect=kind, place=place, path=path, left=left, right=right)]
    return [
        Difference(aspect=kind, place=f"{place}, number {number}", path=path, left=one, right=other)
        for number, (our, their) in enumerate(zip(ours, theirs, strict=True), start=1)
        for path, one, other in _value_differences(our, their, "")
    ]


def _left_over(records: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without a partner; one that stands twice needs two."""
    partners, alone = list(others), []
    for record in records:
        if record in partners:
            partners.remove(record)
        else:
            alone.append(record)
    return alone


def _value_differences(one: Any, other: Any, path: str) -> Iterable[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _value_differences(
                one.get(key), other.get(key), f"{path}.{key}" if path else key
            )
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for our, their in zip(one, other, strict=True):
            yield from _value_differences(our, their, f"{path}.[]")
    elif one != other:
        yield path, one, other
