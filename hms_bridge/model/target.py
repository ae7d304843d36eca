"""What a call, a lock or a compaction points at: a table, or one of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.catalog import DEFAULT_CATALOG


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """Which table."""

    database: str
    table: str
    catalog: str = DEFAULT_CATALOG
