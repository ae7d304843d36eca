"""What calls, locks and compactions point at: databases, tables, partitions, by name."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.partition_name import target_name


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """Which table."""

    database: str
    table: str
    catalog: str = DEFAULT_CATALOG

    @classmethod
    def parse(cls, full_name: str) -> TableName:
        """From ``database.table``. Raises MetaError for anything else."""
        database, dot, table = full_name.partition(".")
        if not (database and dot and table):
            raise MetaError(f"'{full_name}' is no table name; write it as database.table")
        return cls(database, table)

    @classmethod
    def lower(cls, database: str, table: str, catalog: str = DEFAULT_CATALOG) -> TableName:
        """As the catalog has names: in lower case."""
        return cls(database.lower(), table.lower(), catalog.lower())

    @property
    def parts(self) -> tuple[str, str, str]:
        """Database, table, catalog: in the order in which they are asked for."""
        return (self.database, self.table, self.catalog)

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


@dataclass(frozen=True, slots=True)
class Scope:
    """A database, a table or a partition: what a lock covers, or a listing is limited to. None
    stands for all."""

    database: str | None = None
    table: str | None = None
    partition: str | None = None

    def overlaps(self, other: Scope | Target) -> bool:
        """Whether something is in both."""
        return (
            _same_or_any(self.database, other.database)
            and _same_or_any(self.table, other.table)
            and _same_or_any(self.partition, other.partition)
        )


EVERYTHING = Scope()


def _same_or_any(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other
