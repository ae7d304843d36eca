"""An expression over partition columns, as Hive's compiler sends it: pure records.

A value is None, a bool, an int, a float, a Decimal, a str, or a tuple of numbers: a date is
(year, month, day), a timestamp (year, month, day, hour, minute, second, nanoseconds). A struct is
a tuple of such values.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

ExpressionValue: TypeAlias = (
    "bool | int | float | Decimal | str | tuple[ExpressionValue, ...] | None"
)


class Function(StrEnum):
    """What an expression may call; the text is for messages."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    NOT_DISTINCT = "<=>"
    AND = "and"
    OR = "or"
    NOT = "not"
    IN = "in"
    BETWEEN = "between"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    IS_TRUE = "is true"
    IS_NOT_TRUE = "is not true"
    IS_FALSE = "is false"
    IS_NOT_FALSE = "is not false"
    LIKE = "like"
    STRUCT = "struct"
    CAST = "cast"


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """A column by its name, in lower case; ``type`` is Hive's type text."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a type."""

    value: ExpressionValue
    type: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of operands; a cast's ``type`` is its target. ``between`` has its negation, a
    constant, before its three operands."""

    function: Function
    operands: tuple[Expression, ...]
    type: str


Expression: TypeAlias = "ColumnReference | Constant | Call"


@dataclass(frozen=True, slots=True)
class FilterText:
    """A condition as the text of a partition filter; MSCK sends such ones."""

    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A condition that could not be read, and why."""

    reason: str


Condition: TypeAlias = "Expression | FilterText | Unread | None"
"""Which partitions are meant; None means all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionToDrop:
    """One of the conditions of a drop. An archive of more partition columns than
    ``archive_level`` is taken whole or not at all; 0 for any."""

    condition: Condition
    archive_level: int = 0
