"""What the functions of Hive's compiler make of a partition's values: three values, as in SQL.

A tree becomes nested functions of a row: what is constant is computed once, not for each partition.
Whose trees they are: docs/hive/metastore.md §10.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from hms_bridge.catalog.expression_types import is_of_type
from hms_bridge.catalog.partition_values import (
    INTEGER_BITS,
    UndeterminedError,
    UnknownTypeError,
    cast_of,
    kind_of,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Constant,
    Expression,
    ExpressionValue,
    Function,
)
from hms_bridge.model.like_pattern import sql_pattern

Row = Sequence[ExpressionValue]
"""The values of a partition, of those columns that the expression names."""
Evaluate = Callable[[Row], ExpressionValue]


def place_of(reference: ColumnReference, places: Mapping[str, int]) -> int:
    """Where a column stands among the values. Raises MetaError for one that is none."""
    if reference.name not in places:
        raise MetaError(f"{reference.name} is no partition column of the table")
    return places[reference.name]


def evaluator_of(expression: Expression, places: Mapping[str, int]) -> Evaluate:
    """The tree as a function of a row. Raises UnknownTypeError for what has no meaning here,
    MetaError for a column that is none."""
    if isinstance(expression, Constant):
        value = constant_value(expression)
        return lambda _: value
    if isinstance(expression, ColumnReference):
        place = place_of(expression, places)
        return lambda row: row[place]
    return _BINDINGS[expression.function](
        expression, [evaluator_of(operand, places) for operand in expression.operands]
    )


def constant_value(constant: Constant) -> ExpressionValue:
    """What a constant is compared as: blanks at the end of a char do not count."""
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


def _comparison(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    left, right = _exactly(call, operands, 2)
    key = _comparable(call.operands)
    compare = _COMPARISONS[call.function]

    def evaluate(row: Row) -> ExpressionValue:
        first, second = left(row), right(row)
        return None if first is None or second is None else compare(key(first), key(second))

    return evaluate


def _not_distinct(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    left, right = _exactly(call, operands, 2)
    key = _comparable(call.operands)

    def evaluate(row: Row) -> ExpressionValue:
        first, second = left(row), right(row)
        if first is None or second is None:
            return first is second
        return bool(key(first) == key(second))

    return evaluate


def _junction(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    decisive = call.function is Function.OR

    def evaluate(row: Row) -> ExpressionValue:
        """An operand that decides does so whatever is not known of the others."""
        is_null, undetermined = False, None
        for operand in operands:
            try:
                answer = operand(row)
            except UndeterminedError as error:
                undetermined = error
                continue
            if answer is decisive:
                return decisive
            is_null |= answer is None
        if undetermined is not None:
            raise undetermined
        return None if is_null else not decisive

    return evaluate


def _not(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    (operand,) = _exactly(call, operands, 1)
    return lambda row: None if (truth := operand(row)) is None else not truth


def _is(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    (operand,) = _exactly(call, operands, 1)
    wanted, is_wanted = _WANTED[call.function]
    return lambda row: (operand(row) is wanted) is is_wanted


def _in(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    if len(operands) < 2:
        raise UnknownTypeError("in without a list")
    if kind_of(call.operands[0].type) == "struct":
        return _struct_in(call, operands)
    key = _comparable(call.operands)
    if all(isinstance(operand, Constant) for operand in call.operands[1:]):
        # Constants need no row: a list of thousands is read once, not for every partition.
        members_of_row = [member(()) for member in operands[1:]]
        members = frozenset(key(member) for member in members_of_row if member is not None)
        return _in_constants(operands[0], key, members, has_null=None in members_of_row)

    def evaluate(row: Row) -> ExpressionValue:
        value = operands[0](row)
        if value is None:
            return None
        members_of_row = [member(row) for member in operands[1:]]
        if any(member is not None and key(member) == key(value) for member in members_of_row):
            return True
        return None if None in members_of_row else False

    return evaluate


def _in_constants(
    operand: Evaluate, key: Callable[[Any], Any], members: frozenset[Any], *, has_null: bool
) -> Evaluate:
    def evaluate(row: Row) -> ExpressionValue:
        value = operand(row)
        if value is None:
            return None
        if key(value) in members:
            return True
        return None if has_null else False

    return evaluate


def _struct_in(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    """A struct is never NULL itself, and a NULL in it equals only NULL."""
    types = [operand.type for operand in getattr(call.operands[0], "operands", ())]
    families = {_family(type_text) for type_text in types}
    if not types or families - {"exact", "text", "date", "timestamp", "boolean"}:
        raise UnknownTypeError("in over structs of such members")
    for member in call.operands[1:]:
        _require_alike(member, types)
    return lambda row: operands[0](row) in [member(row) for member in operands[1:]]


def _require_alike(member: Expression, types: Sequence[str]) -> None:
    """A struct with members of these families; a constant one does not name the types of its
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


def _between(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    negation, value, low, high = _exactly(call, operands, 4)
    is_negated = negation(()) if isinstance(call.operands[0], Constant) else None
    if not isinstance(is_negated, bool):
        raise UnknownTypeError("between without its negation")
    above, below = _comparable(call.operands[1:3]), _comparable(call.operands[1:4:2])

    def evaluate(row: Row) -> ExpressionValue:
        """GenericUDFBetween: NULL unless both bounds and the value are there, except that one
        below the lower bound is outside whatever the upper one is (not when negated)."""
        given, least, most = value(row), low(row), high(row)
        if given is None or least is None:
            return None
        is_above = above(given) >= above(least)
        if not is_above and not is_negated:
            return False
        if most is None:
            return None
        return (is_above and below(given) <= below(most)) is not is_negated

    return evaluate


def _like(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    text, _ = _exactly(call, operands, 2)
    constant = call.operands[1]
    if not isinstance(constant, Constant) or not isinstance(constant.value, str):
        raise UnknownTypeError("like without a constant pattern")
    if "\\\\" in constant.value or _family(call.operands[0].type) != "text":
        raise UnknownTypeError("like with such operands")
    pattern = sql_pattern(constant.value)
    return lambda row: None if (value := text(row)) is None else pattern.matches(str(value))


def _struct(_: Call, operands: Sequence[Evaluate]) -> Evaluate:
    return lambda row: tuple(operand(row) for operand in operands)


def _cast(call: Call, operands: Sequence[Evaluate]) -> Evaluate:
    (operand,) = _exactly(call, operands, 1)
    cast = cast_of(call.operands[0].type, call.type)
    return lambda row: cast(operand(row))


def _exactly(call: Call, operands: Sequence[Evaluate], count: int) -> Sequence[Evaluate]:
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
_BINDINGS: Mapping[Function, Callable[[Call, Sequence[Evaluate]], Evaluate]] = {
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
