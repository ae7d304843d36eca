"""Constraints on the values of columns: those that whoever writes rows has to keep, and keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ConstraintKind(Enum):
    """What a constraint says; the value is stored (Hive: ``MConstraint``)."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferredColumn:
    """What a column of a foreign key refers to. ``key_name`` is that of the other table's key;
    the rules are Hive's numbers for what a change over there does here (it does nothing)."""

    database_name: str
    table_name: str
    column: str
    key_name: str | None = None
    update_rule: int = 0
    delete_rule: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnConstraint:
    """A constraint on one column; a key of several has one record for each, in their order.

    ``expression``, in Hive's SQL: the value of a default, the condition of a check. A check of
    the whole table has no column. Only what ``is_enabled`` is kept by writers. ``position``, from
    1: of a column in a key. An empty name: the metastore gives it one.
    """

    name: str
    kind: ConstraintKind
    column: str | None
    expression: str | None = None
    is_enabled: bool = True
    is_validated: bool = False
    is_relied_on: bool = False
    position: int = 1
    refers_to: ReferredColumn | None = None
