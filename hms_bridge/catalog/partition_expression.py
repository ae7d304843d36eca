"""What an expression of Hive's compiler selects among the partitions of a table.

The meaning is that of Hive's ``PartitionExpressionForMetastore.filterPartitionsByExpr``: three
values; the default partition is NULL, and one for which the expression is NULL is not selected;
another one for which it is NULL may or may not match, which the answer says
(docs/hive/metastore.md §10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hms_bridge.catalog.expression_functions import Row, constant_value, evaluator_of, place_of
from hms_bridge.catalog.expression_types import require_typed
from hms_bridge.catalog.partition_filter import MIRRORED
from hms_bridge.catalog.partition_values import (
    Read,
    UndeterminedError,
    UnknownTypeError,
    kind_of,
    reader_of,
)
from hms_bridge.catalog.text_bounds import Bounds, TextBounds, bounds_of_comparison
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Constant,
    Expression,
    ExpressionValue,
    Function,
)

EVALUATIONS_MAX = 50_000_000
"""How many nodes of one expression are looked at, over all partitions: minutes of work. What comes
after may or may not match."""
RULING_OUT_SHARE = 10
"""To rule out what need not be read takes a tenth of that at most, and then rules nothing out."""


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression whose columns are places in the values of a partition."""

    verdict: Callable[[Sequence[str]], bool | None]
    """True or False; None if it may or may not match."""
    required_values: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Places whose text must be one of these in everything that is selected."""
    places: frozenset[int] = frozenset()
    """Places that it looks at."""
    rules_out: Callable[[Sequence[str]], bool] = lambda _: False
    """Whether the verdict is False on all of which these are the first values."""
    bounds: Bounds = field(default_factory=dict)


class _PartlyRead(list[ExpressionValue]):
    """The values of a partition of which some are not known: an operand that needs one of these is
    undetermined, and what is decided without it is decided."""

    def __init__(self, known: Mapping[int, ExpressionValue]) -> None:
        super().__init__()
        self._known = known

    def __getitem__(self, place: Any) -> Any:
        if place not in self._known:
            raise UndeterminedError("a value that is not known")
        return self._known[place]


def bind_expression(
    expression: Expression,
    columns: Sequence[Column],
    default_value: str = DEFAULT_PARTITION_VALUE,
) -> BoundExpression:
    """Bind a tree to the partition columns of a table.

    Raises UnknownTypeError for what has no meaning here, MetaError for a column that is none.
    """
    plain = _with_default_as_null(expression, default_value)
    if kind_of(plain.type) != "boolean":
        raise UnknownTypeError(f"an expression of type {plain.type} as a condition")
    require_typed(plain, {column.name.lower(): column.type for column in columns})
    places = {column.name.lower(): place for place, column in enumerate(columns)}
    used = sorted({place_of(reference, places) for reference in _references(plain)})
    readers = {place: reader_of(columns[place].type) for place in used}
    evaluate = evaluator_of(plain, places)
    size = _size(plain)
    evaluated = evaluated_to_rule_out = 0

    def decided(values: Sequence[str]) -> bool | None:
        try:
            value = evaluate(_row_of(values, readers, default_value))
        except UndeterminedError:
            return None
        if value is None:
            return False if default_value in values else None
        return value is True

    def verdict(values: Sequence[str]) -> bool | None:
        nonlocal evaluated
        # Counted over all partitions: a client may send a long list of constants to a table of a
        # million partitions, and a thread of the server would not come back.
        evaluated += size
        if evaluated > EVALUATIONS_MAX:
            return None
        return decided(values)

    def rules_out(values: Sequence[str]) -> bool:
        nonlocal evaluated_to_rule_out
        evaluated_to_rule_out += size
        if evaluated_to_rule_out > EVALUATIONS_MAX // RULING_OUT_SHARE:
            return False
        return decided(values) is False

    required = _required(plain, places, columns)
    bounds = _bounds(plain, places, columns, default_value)
    return BoundExpression(verdict, required, frozenset(used), rules_out, bounds)


def _row_of(values: Sequence[str], readers: Mapping[int, Read], default_value: str) -> Row:
    """The values as the expression sees them, of the places that it looks at."""
    row: list[ExpressionValue] = [None] * len(values)
    try:
        for place, read in readers.items():
            row[place] = None if values[place] == default_value else read(values[place])
    except (UndeterminedError, IndexError):
        return _partly_read(values, readers, default_value)
    return row


def _partly_read(values: Sequence[str], readers: Mapping[int, Read], default_value: str) -> Row:
    known: dict[int, ExpressionValue] = {}
    for place, read in readers.items():
        with suppress(UndeterminedError):
            if place < len(values):
                known[place] = None if values[place] == default_value else read(values[place])
    return _PartlyRead(known)


def _size(expression: Expression) -> int:
    if isinstance(expression, Call):
        return 1 + sum(_size(operand) for operand in expression.operands)
    return 1


def _references(expression: Expression) -> list[ColumnReference]:
    if isinstance(expression, ColumnReference):
        return [expression]
    if isinstance(expression, Constant):
        return []
    return [reference for operand in expression.operands for reference in _references(operand)]


def _with_default_as_null(expression: Expression, default_value: str) -> Expression:
    """``column = default partition`` asks for NULL (ExprNodeDescUtils.replaceEqualDefault…)."""
    if not isinstance(expression, Call):
        return expression
    rewritten = {Function.EQUAL: Function.IS_NULL, Function.NOT_EQUAL: Function.IS_NOT_NULL}
    if expression.function in rewritten:
        others = [
            operand
            for operand in expression.operands
            if not (isinstance(operand, Constant) and operand.value == default_value)
        ]
        if len(others) == 1:
            return Call(rewritten[expression.function], tuple(others), expression.type)
    operands = tuple(
        _with_default_as_null(operand, default_value) for operand in expression.operands
    )
    return Call(expression.function, operands, expression.type)


def _required(
    expression: Expression, places: Mapping[str, int], columns: Sequence[Column]
) -> Mapping[int, frozenset[str]]:
    """What every selected partition has at a place: ``=`` and ``in`` of string columns, joined by
    and. Other types can be written in several ways."""
    if not isinstance(expression, Call):
        return {}
    required: dict[int, frozenset[str]] = {}
    if expression.function is Function.AND:
        for operand in expression.operands:
            for place, texts in _required(operand, places, columns).items():
                required[place] = required.get(place, texts) & texts
    elif expression.function in (Function.EQUAL, Function.IN):
        reference, *others = expression.operands
        constants = [constant_value(other) for other in others if isinstance(other, Constant)]
        if (
            isinstance(reference, ColumnReference)
            and kind_of(columns[places[reference.name]].type) == "string"
            and len(constants) == len(others)
            and all(isinstance(value, str) for value in constants)
        ):
            required[places[reference.name]] = frozenset(str(value) for value in constants)
    return required


def _bounds(
    expression: Expression,
    places: Mapping[str, int],
    columns: Sequence[Column],
    default_value: str,
) -> Bounds:
    """Of comparisons of string columns, joined by and."""
    if not isinstance(expression, Call):
        return {}
    bounds: dict[int, TextBounds] = {}
    if expression.function is Function.AND:
        for operand in expression.operands:
            for place, given in _bounds(operand, places, columns, default_value).items():
                bounds[place] = bounds.get(place, given) & given
        return bounds
    function, operands = expression.function.value, expression.operands
    if function == "between" and operands[0] == Constant(False, "boolean"):
        operands = operands[1:]
    elif len(operands) == 2 and isinstance(operands[1], ColumnReference):
        function, operands = MIRRORED.get(function, ""), operands[::-1]
    reference, *others = operands
    values = [constant_value(other) if isinstance(other, Constant) else None for other in others]
    texts = [value for value in values if isinstance(value, str)]
    if (
        isinstance(reference, ColumnReference)
        and kind_of(columns[places[reference.name]].type) == "string"
        and len(texts) == len(others)
    ):
        compared = bounds_of_comparison(function, *texts)
        if compared is not None:
            bounds[places[reference.name]] = replace(compared, default_value=default_value)
    return bounds
