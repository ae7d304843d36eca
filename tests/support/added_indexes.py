"""Indices that Hive lacks and we make on its tables."""

from __future__ import annotations

from sqlalchemy import Index

from hms_bridge.backend.schema.all_tables import TABLES


def added_indexes() -> list[Index]:
    """Of all databases, by their names: those of a table are a set, which has no order."""
    added = [
        index
        for table in TABLES.sorted_tables
        for index in table.indexes
        if index.info.get("is_added")
    ]
    return sorted(added, key=lambda index: str(index.name))
