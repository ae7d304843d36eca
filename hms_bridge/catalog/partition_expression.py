"""What an expression of Hive's compiler selects among the partitions of a table.

The meaning is that of Hive's ``PartitionExpressionForMetastore.filterPartitionsByExpr``: three
values; the default partition is NULL, and one for which the expression is NULL is not selected;
another one for which it is NULL may or may not match, which the answer says.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hms_bridge.catalog.expression_types import is_of_type, require_typed
from hms_bridge.catalog.partition_values import (
    INTEGER_BITS,
    UndeterminedError,
    UnknownTypeError,
    cast_of,
    kind_of,
    reader_of,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Constant,
    Expression,
    ExpressionValue,
    Function,
)
from hms_bridge.model.like_pattern import sql_pattern

EVALUATIONS_MAX = 50_000_000
"""How many nodes of one expression are looked at, over all partitions: minutes of work. What comes
after may or may not match."""

_Row = Sequence[ExpressionValue]
_Evaluate = Callable[[_Row], ExpressionValue]


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression whose columns are places in the values of a partition."""

    verdict: Callable[[Sequence[str]], bool | None]
    """True or False; None if it may or may not match."""
    required_values: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Places whose text must be one of these in everything that is selected."""


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
    used = sorted({_place(reference, places) for reference in _references(plain)})
    readers = {place: reader_of(columns[place].type) for place in used}
    evaluate = _bind(plain, places)
    size, evaluated = _size(plain), 0

    def verdict(values: Sequence[str]) -> bool | None:
        nonlocal evaluated
        evaluated += size
        if evaluated > EVALUATIONS_MAX:
            return None
        try:
            row: list[ExpressionValue] = [None] * len(values)
            for place, read in readers.items():
                row[place] = None if values[place] == default_value else read(values[place])
            found = evaluate(row)
        except UndeterminedError:
            return None
        if found is None:
            return False if default_value in values else None
        return found is True

    return BoundExpression(verdict, _required(plain, places, columns))


def _size(expression: Expression) -> int:
    if isinstance(expression, Call):
        return 1 + sum(_size(operand) for operand in expression.operands)
    return 1


def _references(expression: Expression) -> list[ColumnReference]:
    if isinstance(expression, ColumnReference):
        return [expression]
    if isinstance(expression, Constant):
        return []
    return [found for operand in expression.operands for found in _references(operand)]


def _place(reference: ColumnReference, places: Mapping[str, int]) -> int:
    if reference.name not in places:
        raise MetaError(f"{reference.name} is no partition column of the table")
    return places[reference.name]


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


# --- values ------------------------------------------------------------------------------------


def _bind(expression: Expression, places: Mapping[str, int]) -> _Evaluate:
    if isinstance(expression, Constant):
        value = _constant(expression)
        return lambda _: value
    if isinstance(expression, ColumnReference):
        place = _place(expression, places)
        return lambda row: row[place]
    return _BINDINGS[expression.function](
        expression, [_bind(operand, places) for operand in expression.operands]
    )


def _constant(constant: Constant) -> ExpressionValue:
    if kind_of(constant.type) == "char" and isinstance(constant.value, str):
        return constant.value.rstrip(" ")
    return constant.value


def _family(type_text: str) -> str:
    kind = kind_of(type_text)
    if kind in (*INTEGER_BITS, "decimal"):
        return "exact"
    if kind in ("float", "double"):
        return "floating"
    return "text" if kind in ("string", "varchar", "char") else kind


def _comparable(operands: Sequence[Expression]) -> Callable[[Any], Any]:
    """What makes values of these operands comparable. Raises UnknownTypeError for a mixture that
    Hive would convert first."""
    families = {_family(operand.type) for operand in operands} - {"void"}
    if families and families <= {"exact", "floating"}:
        return _floating if "floating" in families else lambda value: value
    if len(families) > 1 or families - {"text", "date", "timestamp", "boolean"}:
        raise UnknownTypeError(f"a comparison of {', '.join(sorted(families))}")
    return lambda value: value


def _floating(value: int | float | Decimal) -> tuple[bool, float]:
    """Java's order of doubles: NaN equals itself and is above all."""
    number = float(value)
    return (True, 0.0) if math.isnan(number) else (False, number)


# --- functions ---------------------------------------------------------------------------------


def _comparison(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    left, right = _exactly(call, operands, 2)
    key = _comparable(call.operands)
    compare = _COMPARISONS[call.function]

    def evaluate(row: _Row) -> ExpressionValue:
        one, other = left(row), right(row)
        return None if one is None or other is None else compare(key(one), key(other))

    return evaluate


def _not_distinct(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    left, right = _exactly(call, operands, 2)
    key = _comparable(call.operands)

    def evaluate(row: _Row) -> ExpressionValue:
        one, other = left(row), right(row)
        if one is None or other is None:
            return one is other
        return bool(key(one) == key(other))

    return evaluate


def _junction(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    decisive = call.function is Function.OR

    def evaluate(row: _Row) -> ExpressionValue:
        """An operand that decides does so whatever is not known of the others."""
        is_null, undetermined = False, None
        for operand in operands:
            try:
                found = operand(row)
            except UndeterminedError as error:
                undetermined = error
                continue
            if found is decisive:
                return decisive
            is_null |= found is None
        if undetermined is not None:
            raise undetermined
        return None if is_null else not decisive

    return evaluate


def _not(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    (operand,) = _exactly(call, operands, 1)
    return lambda row: None if (found := operand(row)) is None else not found


def _is(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    (operand,) = _exactly(call, operands, 1)
    wanted, is_wanted = _WANTED[call.function]
    return lambda row: (operand(row) is wanted) is is_wanted


def _in(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    if len(operands) < 2:
        raise UnknownTypeError("in without a list")
    if kind_of(call.operands[0].type) == "struct":
        return _struct_in(call, operands)
    key = _comparable(call.operands)
    if all(isinstance(operand, Constant) for operand in call.operands[1:]):
        # Constants need no row: a list of thousands is read once, not for every partition.
        found = [member(()) for member in operands[1:]]
        members = frozenset(key(member) for member in found if member is not None)
        return _in_constants(operands[0], key, members, has_null=None in found)

    def evaluate(row: _Row) -> ExpressionValue:
        value = operands[0](row)
        if value is None:
            return None
        found = [member(row) for member in operands[1:]]
        if any(member is not None and key(member) == key(value) for member in found):
            return True
        return None if None in found else False

    return evaluate


def _in_constants(
    operand: _Evaluate, key: Callable[[Any], Any], members: frozenset[Any], *, has_null: bool
) -> _Evaluate:
    def evaluate(row: _Row) -> ExpressionValue:
        value = operand(row)
        if value is None:
            return None
        if key(value) in members:
            return True
        return None if has_null else False

    return evaluate


def _struct_in(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    """A struct is never NULL itself, and a NULL in it equals only NULL."""
    types = [operand.type for operand in getattr(call.operands[0], "operands", ())]
    families = {_family(type_text) for type_text in types}
    if not types or families - {"exact", "text", "date", "timestamp", "boolean"}:
        raise UnknownTypeError("in over structs of such members")
    for member in call.operands[1:]:
        _require_alike(member, types)
    return lambda row: operands[0](row) in [member(row) for member in operands[1:]]


def _require_alike(member: Expression, types: Sequence[str]) -> None:
    """A struct with members of these families; a constant one does not tell the types of its
    members, and its chars may end in blanks."""
    if isinstance(member, Call):
        families = [_family(operand.type) for operand in member.operands]
        is_alike = families == [_family(type_text) for type_text in types]
    else:
        values = member.value if isinstance(member, Constant) else None
        is_alike = (
            isinstance(values, tuple)
            and len(values) == len(types)
            and all(map(_is_value_alike, values, types))
        )
    if not is_alike:
        raise UnknownTypeError(f"in over structs of {', '.join(types)} and others")


def _is_value_alike(value: ExpressionValue, type_text: str) -> bool:
    if _family(type_text) == "exact":
        return isinstance(value, int | Decimal | None) and not isinstance(value, bool)
    return kind_of(type_text) != "char" and is_of_type(value, type_text)


def _between(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    negation, value, low, high = _exactly(call, operands, 4)
    is_negated = negation(()) if isinstance(call.operands[0], Constant) else None
    if not isinstance(is_negated, bool):
        raise UnknownTypeError("between without its negation")
    above, below = _comparable(call.operands[1:3]), _comparable(call.operands[1:4:2])

    def evaluate(row: _Row) -> ExpressionValue:
        """GenericUDFBetween: NULL unless both bounds and the value are there, except that one
        below the lower bound is outside whatever the upper one is (not when negated)."""
        found, least, most = value(row), low(row), high(row)
        if found is None or least is None:
            return None
        is_above = above(found) >= above(least)
        if not is_above and not is_negated:
            return False
        if most is None:
            return None
        return (is_above and below(found) <= below(most)) is not is_negated

    return evaluate


def _like(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    text, _ = _exactly(call, operands, 2)
    constant = call.operands[1]
    if not isinstance(constant, Constant) or not isinstance(constant.value, str):
        raise UnknownTypeError("like without a constant pattern")
    if "\\\\" in constant.value or _family(call.operands[0].type) != "text":
        raise UnknownTypeError("like with such operands")
    pattern = sql_pattern(constant.value)
    return lambda row: None if (found := text(row)) is None else pattern.matches(str(found))


def _struct(_: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    return lambda row: tuple(operand(row) for operand in operands)


def _cast(call: Call, operands: Sequence[_Evaluate]) -> _Evaluate:
    (operand,) = _exactly(call, operands, 1)
    cast = cast_of(call.operands[0].type, call.type)
    return lambda row: cast(operand(row))


def _exactly(call: Call, operands: Sequence[_Evaluate], count: int) -> Sequence[_Evaluate]:
    if len(operands) != count:
        raise UnknownTypeError(f"{len(operands)} operands of {call.function}")
    return operands


_COMPARISONS: Mapping[Function, Callable[[Any, Any], bool]] = {
    Function.EQUAL: operator.eq,
    Function.NOT_EQUAL: operator.ne,
    Function.LESS: operator.lt,
    Function.LESS_OR_EQUAL: operator.le,
    Function.GREATER: operator.gt,
    Function.GREATER_OR_EQUAL: operator.ge,
}
_WANTED: Mapping[Function, tuple[bool | None, bool]] = {
    Function.IS_NULL: (None, True),
    Function.IS_NOT_NULL: (None, False),
    Function.IS_TRUE: (True, True),
    Function.IS_NOT_TRUE: (True, False),
    Function.IS_FALSE: (False, True),
    Function.IS_NOT_FALSE: (False, False),
}
_BINDINGS: Mapping[Function, Callable[[Call, Sequence[_Evaluate]], _Evaluate]] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_WANTED, _is),
    Function.NOT_DISTINCT: _not_distinct,
    Function.AND: _junction,
    Function.OR: _junction,
    Function.NOT: _not,
    Function.IN: _in,
    Function.BETWEEN: _between,
    Function.LIKE: _like,
    Function.STRUCT: _struct,
    Function.CAST: _cast,
}


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
        constants = [constant.value for constant in others if isinstance(constant, Constant)]
        if (
            isinstance(reference, ColumnReference)
            and kind_of(columns[places[reference.name]].type) == "string"
            and len(constants) == len(others)
            and all(isinstance(value, str) for value in constants)
        ):
            required[places[reference.name]] = frozenset(str(value) for value in constants)
    return required
