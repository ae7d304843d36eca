"""What Spark may append to, and which partition a row of it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column, Table
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.partition_name import partition_name
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.plans.partition_values import Value
from hms_bridge.plans.requests import malformed
from hms_bridge.plans.tables import ACID, kind_of
from hms_bridge.rows.bucketing import require_hashed
from hms_bridge.rows.writable import (
    defaults,
    not_null,
    require_known_buckets,
    require_no_check,
    require_one_name_a_value,
)

_EPOCH = date(1970, 1, 1)


def required_columns(table: Table, constraints: Sequence[ColumnConstraint]) -> tuple[str, ...]:
    """Columns of which each row has a value. Raises DmlError for a table that cannot be written
    here as Hive would, AcidFormatError for buckets that are not known."""
    if kind_of(table) != ACID or table.is_any_view:
        what = "a view" if table.is_any_view else "insert-only"
        raise DmlError(f"{table.full_name} is {what}, and not written here; write with Hive")
    require_known_buckets(table)
    types = {column.name: column.type for column in table.storage.columns}
    require_hashed([parse_hive_type(types[name]) for name in table.storage.bucket_columns])
    require_one_name_a_value(table)
    require_no_check(table, constraints)
    for column, constraint in defaults(constraints).items():
        raise DmlError(
            f"column {column} of {table.full_name} has the default {constraint.expression} "
            f"(constraint {constraint.name}), and Spark does not say whether a statement gives the "
            "column: insert with hms-bridge sql, or with Hive"
        )
    return tuple(not_null(constraints))


def partition_of(table: Table, values: Sequence[Value]) -> str:
    """The partition's name; empty for a table that has none. Raises PlanError for values that are
    not those of the table's partition columns."""
    columns = table.partition_columns
    if len(values) != len(columns):
        raise malformed(f"{len(values)} values of {len(columns)} partition columns")
    pairs = zip(columns, values, strict=True)
    return partition_name(columns, [_text(column, value) for column, value in pairs])


def _text(column: Column, value: Value) -> str:
    match value:
        case None | "":
            return DEFAULT_PARTITION_VALUE
        case bool():
            return str(value).lower()
        case int() if column.type.lower() == "date":
            return _day(column, value)
        case int() | str():
            return str(value)
        case _:
            raise malformed(f"{value!r} is no value of partition column {column.name}")


def _day(column: Column, days: int) -> str:
    try:
        return (_EPOCH + timedelta(days=days)).isoformat()
    except OverflowError as error:
        raise DmlError(
            f"partition column {column.name} gets a day that is not of the years 1 to 9999"
        ) from error
