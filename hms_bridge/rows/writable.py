"""What a table must be for rows to be inserted here; what is not known to be right is refused."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.properties import BUCKETING_VERSION

_NAMED_ALIKE = frozenset(
    {"tinyint", "smallint", "int", "bigint", "boolean", "date", "string", "varchar"}
)
"""Types of partition columns whose values have one text in Hive and here."""


def require_known_buckets(table: Table) -> None:
    """A row in another bucket than Hive's would be missing from its joins of buckets. Without the
    property it is the first version (Hive: ``Utilities.getBucketingVersion``). Raises DmlError."""
    version = table.parameters.get(BUCKETING_VERSION, "1")
    if table.storage.bucket_columns and version != "2":
        raise DmlError(
            f"{table.full_name} is CLUSTERED BY with bucketing_version {version}, whose buckets "
            "are not known here; insert with Hive"
        )


def require_one_name_a_value(table: Table) -> None:
    """``p=1`` beside ``p=1.0`` would be two partitions of one value: Hive names a partition after
    the text that Java makes of the value, which here is sure for few types. Raises DmlError."""
    for column in table.partition_columns:
        if column.type.lower().partition("(")[0] not in _NAMED_ALIKE:
            raise DmlError(
                f"{table.full_name} is partitioned by {column.name}, a {column.type}: equal values "
                "have several texts, and the one that Hive gives its partition is not known here; "
                f"insert with Hive, or partition by {', '.join(sorted(_NAMED_ALIKE))}"
            )


def require_no_check(table: Table, constraints: Sequence[ColumnConstraint]) -> None:
    """Raises DmlError for a condition that rows must meet."""
    for constraint in _enabled(constraints, ConstraintKind.CHECK):
        raise DmlError(
            f"{table.full_name} has the constraint {constraint.name}, CHECK "
            f"{constraint.expression}, which cannot be checked here: write the rows with "
            f"Hive, or drop it there (ALTER TABLE {table.full_name} DROP CONSTRAINT "
            f"{constraint.name})"
        )


def defaults(constraints: Sequence[ColumnConstraint]) -> dict[str, ColumnConstraint]:
    """By column: what Hive fills in."""
    return _by_column(_enabled(constraints, ConstraintKind.DEFAULT))


def not_null(constraints: Sequence[ColumnConstraint]) -> dict[str, ColumnConstraint]:
    """By column: those that every row has a value of."""
    return _by_column(_enabled(constraints, ConstraintKind.NOT_NULL))


def _enabled(
    constraints: Sequence[ColumnConstraint], kind: ConstraintKind
) -> list[ColumnConstraint]:
    return [
        constraint
        for constraint in constraints
        if constraint.is_enabled and constraint.kind is kind
    ]


def _by_column(constraints: Sequence[ColumnConstraint]) -> dict[str, ColumnConstraint]:
    return {(constraint.column or "").lower(): constraint for constraint in constraints}
