"""Constraints that Hive's writers keep: kept here too, or the statement is refused by name.

NOT NULL is looked at in every row that is written, CHECK is not known here, and a DEFAULT must be
written out (Hive: ``ConstraintExprGenerator``; what is not enabled binds nobody, and a DELETE
breaks none). Hive's session may turn NOT NULL off (hive.constraint.notnull.enforce); here it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind


def require_known(
    table: Table, constraints: Sequence[ColumnConstraint], written: Sequence[str]
) -> None:
    """``written`` are the columns that get a value of the statement. Raises DmlError for a CHECK,
    and for a DEFAULT of another column."""
    for constraint in constraints:
        if not constraint.is_enabled:
            continue
        if constraint.kind is ConstraintKind.CHECK:
            raise DmlError(
                f"{table.full_name} has the constraint {constraint.name}, CHECK "
                f"{constraint.expression}, which cannot be checked here: write the rows with "
                f"Hive, or drop it there (ALTER TABLE {table.full_name} DROP CONSTRAINT "
                f"{constraint.name})"
            )
        if constraint.kind is ConstraintKind.DEFAULT and _lower(constraint.column) not in written:
            raise DmlError(
                f"column {constraint.column} of {table.full_name} has the default "
                f"{constraint.expression} (constraint {constraint.name}), which is not filled in "
                "here: name the column and give its value"
            )


def kept_value(
    table: Table, constraints: Sequence[ColumnConstraint], column: str, value: exp.Expr
) -> exp.Expr:
    """The value of a column, which fails in Spark where it must not be NULL."""
    for constraint in constraints:
        if (
            constraint.is_enabled
            and constraint.kind is ConstraintKind.NOT_NULL
            and _lower(constraint.column) == column.lower()
        ):
            message = (
                f"column {column} of {table.full_name} is NOT NULL (constraint "
                f"{constraint.name}), but a row has no value there; nothing was written"
            )
            error = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(message)])
            return exp.Coalesce(this=value, expressions=[error])
    return value


def _lower(name: str | None) -> str:
    return (name or "").lower()
