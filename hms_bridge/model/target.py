"""What a call, a lock or a compaction points at: a table, or one of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.partition_name import target_name


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """Which table."""

    database: str
    table: str
    catalog: str = DEFAULT_CATALOG

    def __str__(self) -> str:
        """``database.table``, as write-id lists name it."""
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class Target:
    """A table, or one of its partitions, by its name."""

    database: str
    table: str
    partition: str | None = None

    @property
    def name(self) -> TableName:
        """The table, also of a partition."""
        return TableName(self.database, self.table)

    def __str__(self) -> str:
        """``database.table`` or ``database.table/partition``, for messages."""
        return target_name(str(self.name), self.partition)
