"""Whether the values of an expression are what its types say.

Hive's compiler sends well-typed trees. A client may send another one, or one that was compiled
before a column's type was changed; a comparison of a date with a text would then answer "not
equal", where Hive has no such answer (docs/hive/metastore.md §10).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hms_bridge.catalog.partition_values import INTEGER_BITS, UnknownTypeError, kind_of
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Constant,
    Expression,
    ExpressionValue,
    Function,
)

_BOOLEAN_OPERANDS = frozenset(
    {
        Function.AND,
        Function.OR,
        Function.NOT,
        Function.IS_TRUE,
        Function.IS_NOT_TRUE,
        Function.IS_FALSE,
        Function.IS_NOT_FALSE,
    }
)
_PARTS = {"date": 3, "timestamp": 7}
_PLAIN: Mapping[str, type] = {
    **dict.fromkeys(INTEGER_BITS, int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("string", "char", "varchar"), str),
    "decimal": Decimal,
    "boolean": bool,
    "struct": tuple,
}


def require_typed(expression: Expression, column_types: Mapping[str, str]) -> None:
    """Raises UnknownTypeError for a tree that is not typed as Hive's compiler types.

    ``column_types``: Hive's type texts by the names of the columns, in lower case.
    """
    if isinstance(expression, Constant):
        if not is_of_type(expression.value, expression.type):
            raise UnknownTypeError(f"a constant that is no {expression.type}")
    elif isinstance(expression, ColumnReference):
        actual = column_types.get(expression.name)
        if actual is not None and _one_kind(actual) != _one_kind(expression.type):
            raise UnknownTypeError(
                f"{expression.name} as {expression.type}, but the column is of type {actual}"
            )
    else:
        _require_call_typed(expression)
        for operand in expression.operands:
            require_typed(operand, column_types)


def is_of_type(value: ExpressionValue, type_text: str) -> bool:
    """Whether a value is one of a type; NULL is one of each."""
    kind = kind_of(type_text)
    if value is None:
        return True
    if kind in _PARTS:
        return _is_moment(value, _PARTS[kind])
    wanted = _PLAIN.get(kind)
    is_other = isinstance(value, bool) and wanted is not bool
    return wanted is not None and isinstance(value, wanted) and not is_other


def _is_moment(value: Any, parts: int) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == parts
        and all(isinstance(part, int) for part in value)
    )


def _one_kind(type_text: str) -> str:
    kind = kind_of(type_text)
    return "int" if kind == "integer" else kind


def _require_call_typed(call: Call) -> None:
    if call.function is Function.CAST:
        return
    due = "struct" if call.function is Function.STRUCT else "boolean"
    if kind_of(call.type) != due:
        raise UnknownTypeError(f"{call.function} of type {call.type}")
    if call.function in _BOOLEAN_OPERANDS:
        for operand in call.operands:
            if kind_of(operand.type) not in ("boolean", "void"):
                raise UnknownTypeError(f"{call.function} over {operand.type}")
