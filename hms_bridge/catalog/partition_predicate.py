"""What a partition filter selects: a parsed filter, bound to the partition columns of a table.

A comparison with a value that its type cannot read (the default partition, as a number) is
unknown, as in SQL; what is not known to be true is not selected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import TypeAlias

from hms_bridge.catalog.partition_filter import Comparison, Junction, Literal, Node, Not, Value
from hms_bridge.catalog.text_bounds import Bounds, TextBounds, bounds_of_comparison
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.like_pattern import filter_pattern


@dataclass(frozen=True, slots=True)
class BoundFilter:
    """A filter whose columns are places in the values of a partition."""

    test: Callable[[Sequence[str]], bool | None]
    required_values: Mapping[int, frozenset[str]]
    """Places whose raw text must be one of these in everything that is selected."""
    places: frozenset[int] = frozenset()
    """Places that it looks at."""
    rules_out: Callable[[Sequence[str]], bool] = lambda _: False
    """Whether nothing is selected of which these are the first values."""
    bounds: Bounds = field(default_factory=dict)

    def selects(self, values: Sequence[str]) -> bool:
        """Whether a partition with these values is selected; unknown counts as no."""
        return self.test(values) is True


@dataclass(frozen=True, slots=True)
class _Keys:
    """The partition columns of a table, and what their values were read as."""

    columns: Sequence[Column]
    places: Mapping[str, int]
    read: Sequence[dict[str, Value | None]]
    """By place: a key that many partitions share has few values, and to read one takes longest."""

    @classmethod
    def of(cls, columns: Sequence[Column]) -> _Keys:
        places = {column.name.lower(): place for place, column in enumerate(columns)}
        return cls(columns, places, [{} for _ in columns])


_Test: TypeAlias = Callable[[Sequence[str]], bool | None]

COMPARISONS_MAX = 50_000_000
"""How many comparisons of one filter are made, over all partitions: some minutes' work. A filter
of a megabyte over many partitions would else take days, also after its client has gone."""
VALUES_REMEMBERED = 1000
RULING_OUT_SHARE = 10
"""To rule out what need not be read takes a tenth of that at most, and then rules nothing out."""


def bind_filter(node: Node, columns: Sequence[Column]) -> BoundFilter:
    """Bind a tree to the partition columns of a table.

    Raises MetaError for a column that is none, or a constant that its type cannot equal; so does
    the filter when it has made :data:`COMPARISONS_MAX` comparisons.
    """
    keys = _Keys.of(columns)
    test, size = _bind(node, keys, len(columns))
    made = made_to_rule_out = 0
    tests_of_first: dict[int, tuple[_Test, int]] = {}

    def bounded(values: Sequence[str]) -> bool | None:
        nonlocal made
        made += size
        if made > COMPARISONS_MAX:
            raise MetaError(
                f"a filter of {size} comparisons takes too long over so many partitions; write "
                "alternatives as column IN (…), or ask in parts"
            )
        return test(values)

    def rules_out(values: Sequence[str]) -> bool:
        nonlocal made_to_rule_out
        known = len(values)
        if known not in tests_of_first:
            tests_of_first[known] = _bind(node, keys, known)
        test_of_first, size_of_first = tests_of_first[known]
        made_to_rule_out += size_of_first
        if made_to_rule_out > COMPARISONS_MAX // RULING_OUT_SHARE:
            return False
        return test_of_first(values) is False

    looked_at = frozenset(keys.places[column] for column in _columns_in(node))
    required, bounds = _required(node, keys), _bounds(node, keys)
    return BoundFilter(bounded, required, looked_at, rules_out, bounds)


def _columns_in(node: Node) -> Iterator[str]:
    if isinstance(node, Comparison):
        yield node.column
        return
    for operand in (node.operand,) if isinstance(node, Not) else node.operands:
        yield from _columns_in(operand)


def _bind(node: Node, keys: _Keys, known: int) -> tuple[_Test, int]:
    """The condition, and how many comparisons it makes at most. It is given the first ``known``
    values of a partition: what is compared with another one is unknown, as it is of a value that
    cannot be read, so what is False is so whatever the others are."""
    if isinstance(node, Not):
        inner, size = _bind(node.operand, keys, known)
        return lambda values: None if (truth := inner(values)) is None else not truth, size
    if isinstance(node, Junction):
        if not node.is_and:
            return _bind_any(_listed(node.operands), keys, known)
        bound = [_bind(operand, keys, known) for operand in node.operands]
        tests = [test for test, _ in bound]
        size = sum(size for _, size in bound)
        return lambda values: _combine((test(values) for test in tests), False), size
    place = keys.places.get(node.column)
    if place is None:
        raise MetaError(f"Specified key <{node.column}> is not a partitioning key for the table")
    if place >= known:
        return lambda _: None, 1
    return _comparison_test(node, place, keys), 1


def _listed(operands: Sequence[Node]) -> list[Node]:
    """Alternatives of one column as one list: ``a = 1 or a = 2`` as ``a in (1, 2)``."""
    literals: dict[str, list[Literal]] = {}
    others: list[Node] = []
    for operand in operands:
        if isinstance(operand, Comparison) and operand.operator in ("=", "in"):
            literals.setdefault(operand.column, []).extend(operand.literals)
        else:
            others.append(operand)
    lists = (Comparison(column, "in", tuple(given)) for column, given in literals.items())
    return [*lists, *others]


def _bind_any(operands: Sequence[Node], keys: _Keys, known: int) -> tuple[_Test, int]:
    """Any of several. Those that ask for a certain text are looked up by it: the others are false
    (MSCK sends thousands of ``(d='…' and n='…')``)."""
    bound = [_bind(operand, keys, known) for operand in operands]
    required = [_required(operand, keys) for operand in operands]
    counts = Counter(place for needed in required for place in needed if place < known)
    looked_at = counts.most_common(1)[0][0] if counts else None
    by_text: dict[str, list[_Test]] = {}
    always: list[_Test] = []
    sizes: Counter[str] = Counter()
    rest = 0
    for (test, size), texts in zip(bound, required, strict=True):
        if looked_at is None or looked_at not in texts:
            always.append(test)
            rest += size
            continue
        for text in texts[looked_at]:
            by_text.setdefault(text, []).append(test)
            sizes[text] += size

    def any_of(values: Sequence[str]) -> bool | None:
        own = () if looked_at is None else by_text.get(values[looked_at], ())
        return _combine((test(values) for test in chain(own, always)), True)

    # A partition has one text at that place, so it meets one of the lists at most.
    return any_of, rest + max(sizes.values(), default=0)


def _combine(results: Iterator[bool | None], decisive: bool) -> bool | None:
    is_unknown = False
    for result in results:
        if result is decisive:
            return decisive
        is_unknown |= result is None
    return None if is_unknown else not decisive


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_INTEGRAL = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
_FRACTIONAL = frozenset({"float", "double", "decimal"})


def _comparison_test(node: Comparison, place: int, keys: _Keys) -> _Test:
    if node.operator == "is null":
        return lambda values: values[place] in ("", DEFAULT_PARTITION_VALUE)
    kind = keys.columns[place].type.strip().lower().partition("(")[0]
    if node.operator == "like":
        pattern = filter_pattern(_text_of(node.literals[0]))
        return lambda values: pattern.matches(values[place])
    read, literals = _reader(kind, node)
    decide = _DECISIONS[node.operator]
    constants = frozenset(literals) if node.operator == "in" else literals
    known = keys.read[place]

    def test(values: Sequence[str]) -> bool | None:
        text = values[place]
        if text in known:
            value = known[text]
        else:
            value = read(text)
            if len(known) < VALUES_REMEMBERED:
                known[text] = value
        return None if value is None else decide(value, constants)

    return test


_DECISIONS: Mapping[str, Callable[..., bool]] = {
    "=": lambda value, given: value == given[0],
    "!=": lambda value, given: value != given[0],
    "<": lambda value, given: value < given[0],
    "<=": lambda value, given: value <= given[0],
    ">": lambda value, given: value > given[0],
    ">=": lambda value, given: value >= given[0],
    "between": lambda value, given: given[0] <= value <= given[1],
    "in": lambda value, given: value in given,
}


def _reader(kind: str, node: Comparison) -> tuple[Callable[[str], Value | None], tuple[Value, ...]]:
    """How to read a stored value of a type, and the constants in the same type."""
    if kind in _INTEGRAL or kind in _FRACTIONAL:
        if not all(isinstance(literal.value, Decimal) for literal in node.literals):
            raise MetaError("Filtering is supported only on partition keys of type string")
        return _read_number, tuple(literal.value for literal in node.literals)
    if kind == "date":
        return _read_date, tuple(_as_date(literal) for literal in node.literals)
    if kind == "timestamp":
        return _read_timestamp, tuple(_as_timestamp(literal) for literal in node.literals)
    return (lambda text: text), tuple(_text_of(literal) for literal in node.literals)


def _text_of(literal: Literal) -> str:
    """A constant as the text that a string column would hold."""
    if isinstance(literal.value, datetime):
        return literal.value.isoformat(sep=" ")
    return literal.value if isinstance(literal.value, str) else str(literal.value)


def _read_number(text: str) -> Decimal | None:
    """A number with ASCII digits; neither NaN nor an infinity, which have no order."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _read_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def _read_timestamp(text: str) -> datetime | None:
    """Without an offset: Hive's timestamps have none, and one could not be compared with them."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _as_date(literal: Literal) -> date:
    value = literal.value
    if isinstance(value, datetime):
        return value.date()
    day = value if isinstance(value, date) else _read_date(str(value))
    if day is None:
        raise MetaError(f"'{value}' in a partition filter is no date; write yyyy-mm-dd")
    return day


def _as_timestamp(literal: Literal) -> datetime:
    value = literal.value
    if isinstance(value, datetime):
        return value
    timestamp = _read_timestamp(str(value))
    if timestamp is None:
        raise MetaError(
            f"'{value}' in a partition filter is no timestamp; write yyyy-mm-dd hh:mm:ss"
        )
    return timestamp


def _required(node: Node, keys: _Keys) -> Mapping[int, frozenset[str]]:
    """What every selected partition must have at a place: from ``=`` and ``in`` joined by and."""
    required: dict[int, frozenset[str]] = {}
    for place, operand in _of_texts(node, keys):
        if operand.operator in ("=", "in"):
            texts = frozenset(_text_of(literal) for literal in operand.literals)
            required[place] = required.get(place, texts) & texts
    return required


def _bounds(node: Node, keys: _Keys) -> Bounds:
    bounds: dict[int, TextBounds] = {}
    for place, operand in _of_texts(node, keys):
        given = bounds_of_comparison(operand.operator, *map(_text_of, operand.literals))
        if given is not None:
            bounds[place] = bounds.get(place, given) & given
    return bounds


def _of_texts(node: Node, keys: _Keys) -> Iterator[tuple[int, Comparison]]:
    """Comparisons that all must hold, of texts: numbers and dates can be written in several ways,
    so only those are compared as such."""
    for operand in node.operands if isinstance(node, Junction) and node.is_and else (node,):
        if isinstance(operand, Comparison):
            place = keys.places[operand.column]
            if keys.columns[place].type.strip().lower() == "string":
                yield place, operand
