"""What the server asks of a metastore about partitions beyond the port.

Only a metastore over its own database has these: our client sends no serialised expressions, and
no other room renames or exchanges partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hms_bridge.metastore import CatalogStore, Metastore
from hms_bridge.model.catalog import DEFAULT_CATALOG, DEFAULT_PARTITION_VALUE, Partition
from hms_bridge.model.expression import Condition, ConditionToDrop
from hms_bridge.model.target import TableName
from hms_bridge.server.served_tables import ServedTables


class ServedPartitions(CatalogStore, Protocol):
    """The catalog, with partitions by condition, their values, renamed and exchanged."""

    def get_partitions_by_condition(
        self,
        database: str,
        table: str,
        condition: Condition,
        *,
        max_parts: int = -1,
        default_value: str = DEFAULT_PARTITION_VALUE,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[tuple[Partition, ...], bool]:
        """Those that it selects, sorted by name, and whether some of them only perhaps."""
        ...

    def get_partition_names_by_condition(
        self,
        database: str,
        table: str,
        condition: Condition,
        *,
        max_parts: int = -1,
        order: str = "",
        default_value: str = DEFAULT_PARTITION_VALUE,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[str, ...]:
        """The names only. Raises MetaError where the condition cannot be decided."""
        ...

    def count_partitions_by_filter(
        self, database: str, table: str, filter_text: str, catalog: str = DEFAULT_CATALOG
    ) -> int:
        """How many a filter selects; none is loaded."""
        ...

    def get_partition_values(
        self,
        database: str,
        table: str,
        keys: Sequence[str],
        *,
        filter_text: str = "",
        is_distinct: bool = True,
        is_ascending: bool = True,
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[tuple[str, ...], ...]:
        """Rows of values, in the order of the partitions' names (docs/hive/metastore.md §24).

        Without a filter: of ``keys``, escaped as in names, always ascending; ``max_parts`` 0 means
        all. With one: of all partition columns, unescaped, whatever keys are given; 0 means none.
        Raises MetaError without keys; without a filter also for one that is no partition column,
        or for more than there are.
        """
        ...

    def drop_partitions_by_conditions(
        self,
        database: str,
        table: str,
        conditions: Sequence[ConditionToDrop],
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> tuple[Partition, ...]:
        """Remove what each selects, all or none; returns those partitions."""
        ...

    def rename_partition(
        self,
        database: str,
        table: str,
        values: Sequence[str],
        partition: Partition,
        *,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        """Replace the partition with these values by one with others."""
        ...

    def exchange_partitions(
        self, values: Mapping[str, str], source: TableName, target: TableName
    ) -> tuple[Partition, ...]:
        """Move the partitions with these values from one table to another."""
        ...


class ServedMetastore(Metastore, ServedPartitions, ServedTables, Protocol):
    """Everything that the server answers from."""
