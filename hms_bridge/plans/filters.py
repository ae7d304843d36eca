"""Which partitions may have a row for which a filter is true.

A condition is judged in SQL's three values (True, False, None) on a partition's values alone. What
these do not decide (other columns, what cannot be compared for sure) may be anything, so each part
of a condition has the set of what it may be; a partition is left out if True is not in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Final, TypeAlias

from hms_bridge.model.catalog import Column
from hms_bridge.plans.partition_values import Comparison, Value
from hms_bridge.plans.requests import malformed

Outcomes: TypeAlias = frozenset[bool | None]
_Judge: TypeAlias = Callable[[Sequence[Value]], Outcomes]
_Combine: TypeAlias = Callable[[bool | None, bool | None], bool | None]

_TRUE: Final[Outcomes] = frozenset({True})
_FALSE: Final[Outcomes] = frozenset({False})
_NULL: Final[Outcomes] = frozenset({None})
_ANYTHING: Final[Outcomes] = frozenset({True, False, None})
_DEPTH_MAX = 200
"""What is nested deeper is not judged."""
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "starts_with": lambda value, start: value.startswith(start),
}


class PartitionFilter:
    """A filter of ``read/plan`` (docs/format/plan-service.md), for partitions of one table."""

    def __init__(self, tree: Mapping[str, Any] | None, columns: Sequence[Column]) -> None:
        """Raises PlanError for a tree that is none."""
        self._columns = {column.name.lower(): at for at, column in enumerate(columns)}
        self._comparisons = [Comparison(column) for column in columns]
        self._judge = _always(_TRUE) if tree is None else self._node(tree, 0)

    def keeps(self, values: Sequence[Value]) -> bool:
        """Whether a partition of these values may have rows for which the filter is true."""
        return True in self._judge(values)

    def _node(self, tree: object, depth: int) -> _Judge:
        if not isinstance(tree, Mapping) or not isinstance(tree.get("op"), str):
            raise malformed("a filter is an object with an 'op'")
        if depth > _DEPTH_MAX:
            return _always(_ANYTHING)
        match tree["op"]:
            case "and" | "or" as name:
                children = tree.get("children")
                if not isinstance(children, list):
                    raise malformed(f"'{name}' needs a list of 'children'")
                combine = _and if name == "and" else _or
                parts = [self._node(child, depth + 1) for child in children]
                return _combined(combine, _TRUE if name == "and" else _FALSE, parts)
            case "not":
                child = self._node(tree.get("child"), depth + 1)
                return lambda values: frozenset(_not(outcome) for outcome in child(values))
            case "true":
                return _always(_TRUE)
            case "false":
                return _always(_FALSE)
            case "is_null" | "is_not_null" | "in" | "starts_with" | "<=>" as name:
                return self._of_column(name, tree)
            case "=" | "<" | "<=" | ">" | ">=" as name:
                return self._of_column(name, tree)
            case _:
                return _always(_ANYTHING)

    def _of_column(self, name: str, tree: Mapping[str, Any]) -> _Judge:
        path = tree.get("column")
        if not isinstance(path, list) or not path or not all(isinstance(p, str) for p in path):
            raise malformed(f"'{name}' needs a 'column': a list of names")
        literals = _literals(name, tree)
        at = self._columns.get(path[0].lower()) if len(path) == 1 else None
        if at is None:
            return _always(_ANYTHING)
        if name.startswith("is_"):
            is_wanted = name == "is_null"
            return lambda values: _sure((values[at] is None) is is_wanted)
        comparison = self._comparisons[at]
        if name == "in":
            return _one_of(at, comparison, literals)
        return _compared(name, at, comparison, literals[0])


def _literals(name: str, tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if name.startswith("is_"):
        return []
    literals = tree.get("values") if name == "in" else [tree.get("value")]
    if not isinstance(literals, list) or not all(
        isinstance(literal, Mapping) and isinstance(literal.get("type"), str) and "value" in literal
        for literal in literals
    ):
        raise malformed(f"'{name}' needs values, each with a 'type' and a 'value'")
    return literals


def _compared(name: str, at: int, comparison: Comparison, literal: Mapping[str, Any]) -> _Judge:
    fits = comparison.fits(literal["type"])
    wanted = literal["value"]
    is_text_only = name == "starts_with" and not comparison.is_text
    compare = _COMPARE[name]
    others = comparison.readings(wanted) if fits and wanted is not None else ()

    def judge(values: Sequence[Value]) -> Outcomes:
        value = values[at]
        if value is None or wanted is None:
            return _sure(value is wanted) if name == "<=>" else _NULL
        readings = comparison.readings(value)
        if is_text_only or not readings or not others:
            return _ANYTHING
        answers = {compare(reading, other) for reading in readings for other in others}
        return _sure(answers.pop()) if len(answers) == 1 else _ANYTHING

    return judge


def _one_of(at: int, comparison: Comparison, literals: list[Mapping[str, Any]]) -> _Judge:
    """Each of thousands of partitions must not be compared with each of thousands of values."""
    known = set()
    parts = []
    for literal in literals:
        fits = comparison.fits(literal["type"])
        readings = comparison.readings(literal["value"]) if fits else ()
        if len(readings) == 1:
            known.add(readings[0])
        else:
            parts.append(_compared("=", at, comparison, literal))
    others = _combined(_or, _FALSE, parts)

    def judge(values: Sequence[Value]) -> Outcomes:
        if values[at] is None:
            return _NULL if literals else _FALSE
        readings = comparison.readings(values[at])
        if known and len(readings) != 1:
            return _ANYTHING
        return _TRUE if known.intersection(readings) else others(values)

    return judge


def _combined(combine: _Combine, start: Outcomes, parts: list[_Judge]) -> _Judge:
    def judge(values: Sequence[Value]) -> Outcomes:
        outcomes = start
        for part in parts:
            outcomes = _pairwise(combine, outcomes, part(values))
        return outcomes

    return judge


@cache
def _pairwise(combine: _Combine, left: Outcomes, right: Outcomes) -> Outcomes:
    return frozenset(combine(*pair) for pair in product(left, right))


def _always(outcomes: Outcomes) -> _Judge:
    return lambda _: outcomes


def _sure(outcome: bool) -> Outcomes:
    return _TRUE if outcome else _FALSE


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False
