"""Rows that belong to another row by a foreign key, and go with it.

The keys are those that the schema declares; a case beside the real systems compares them with
Hive's own schema, so that one which Hive adds is not forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, delete, select

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.catalog_tables import PARTITIONS, TBLS

_WITH_FILES = frozenset({TBLS, PARTITIONS})
"""Never removed here: their directories and events are to be thought of first."""


def delete_dependents(connection: Connection, parent: Table, keys: Sequence[int]) -> None:
    """Remove what belongs to the rows of ``parent`` with these primary keys, not the rows."""
    for piece in batches(keys):
        _delete(connection, parent, piece)


def _delete(connection: Connection, parent: Table, keys: Sequence[int] | Select[Any]) -> None:
    for column in referring(parent):
        belongs = column.in_(keys)
        child = column.table
        if referring(child):
            (key,) = child.primary_key.columns
            _delete(connection, child, select(key).where(belongs))
        connection.execute(delete(child).where(belongs))


@cache
def referring(parent: Table) -> tuple[Column[Any], ...]:
    """Columns that refer to a table by a foreign key, but those of tables and partitions."""
    return tuple(
        key.parent
        for child in TABLES.sorted_tables
        if child not in _WITH_FILES
        for key in sorted(child.foreign_keys, key=lambda reference: reference.parent.name)
        if key.column.table is parent
    )
