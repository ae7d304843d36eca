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
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.rows.writable import defaults, not_null, require_no_check


def require_known(
    table: Table, constraints: Sequence[ColumnConstraint], written: Sequence[str]
) -> None:
    """``written`` are the columns that get a value of the statement. Raises DmlError for a CHECK,
    and for a DEFAULT of another column."""
    require_no_check(table, constraints)
    for column, constraint in defaults(constraints).items():
        if column not in written:
            raise DmlError(
                f"column {column} of {table.full_name} has the default "
                f"{constraint.expression} (constraint {constraint.name}), which is not filled in "
                "here: name the column and give its value"
            )


def kept_value(
    table: Table, constraints: Sequence[ColumnConstraint], column: str, value: exp.Expr
) -> exp.Expr:
    """The value of a column, which fails in Spark where it must not be NULL."""
    constraint = not_null(constraints).get(column.lower())
    if constraint is None:
        return value
    message = (
        f"column {column} of {table.full_name} is NOT NULL (constraint {constraint.name}), but a "
        "row has no value there; nothing was written"
    )
    error = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(message)])
    return exp.Coalesce(this=value, expressions=[error])
