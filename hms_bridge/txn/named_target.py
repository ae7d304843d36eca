"""A table or partition as fixed statements ask for it: by the parameters ``database``, ``table``
and, of a partition, ``partition``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam

from hms_bridge.model.target import Target


def values_of(target: Target) -> dict[str, str]:
    """The values of the parameters; a table has no partition."""
    names = {"database": target.database, "table": target.table}
    return names if target.partition is None else names | {"partition": target.partition}


def is_of_table(database: ColumnElement[Any], table: ColumnElement[Any]) -> ColumnElement[bool]:
    """Rows of a table and of all of its partitions."""
    return and_(_is(database, "database"), _is(table, "table"))


def is_named(
    database: ColumnElement[Any],
    table: ColumnElement[Any],
    partition: ColumnElement[Any],
    *,
    has_partition: bool,
) -> ColumnElement[bool]:
    """Rows of exactly one table or partition: without a partition those of the table level."""
    is_there = _is(partition, "partition") if has_partition else partition.is_(None)
    return and_(is_of_table(database, table), is_there)


def _is(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return column == bindparam(name, type_=column.type)
