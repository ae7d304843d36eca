"""Constraints on the values of columns, which whoever writes rows has to keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ConstraintKind(Enum):
    """What a constraint says; the value is stored (Hive: ``MConstraint``)."""

    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnConstraint:
    """``expression``, in Hive's SQL: the value of a default, the condition of a check. A check of
    the whole table has no column. Only what ``is_enabled`` is kept by writers."""

    name: str
    kind: ConstraintKind
    column: str | None
    expression: str | None = None
    is_enabled: bool = True
    is_validated: bool = False
    is_relied_on: bool = False
