"""Partitions of a table in the ways that clients choose them, no more of them than are allowed.

Hive: GetPartitionsHandler, ``hive.metastore.limit.partition.request`` (docs/hive/metastore.md §48).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hms_bridge.errors import MetaError
from hms_bridge.metadata_store import StatisticsStore
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Partition, Table
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.target import TableName
from hms_bridge.server.names import limit_of, table_of
from hms_bridge.server.served_metastore import ServedPartitions
from hms_bridge.server.served_rights import ServedPrivileges
from hms_bridge.wire.condition import read_condition
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct

_ALL = -1


class PartitionSource(ServedPartitions, StatisticsStore, ServedPrivileges, Protocol):
    """Partitions, and what may come with them."""


class PartitionReads:
    """``partitions_max``: a call that would read more partitions is refused; -1 for no such
    bound. Names alone are not counted."""

    def __init__(self, store: PartitionSource, partitions_max: int = _ALL) -> None:
        self._store = store
        self._partitions_max = partitions_max

    def _all(self, name: TableName, limit: int | None) -> Sequence[Partition]:
        self._require_few(name, limit, lambda: self._store.count_partitions_by_filter(name, ""))
        return self._store.get_partitions(name.database, name.table, limit_of(limit), name.catalog)

    def _names(self, name: TableName, limit: int | None) -> tuple[str, ...]:
        return self._store.get_partition_names(
            name.database, name.table, limit_of(limit), name.catalog
        )

    def _by_names(self, name: TableName, names: Sequence[str] | None) -> Sequence[Partition]:
        wanted = tuple(given(names, "names"))
        self._require_few(name, len(wanted), lambda: len(wanted))
        return self._store.get_partitions_by_names(name.database, name.table, wanted, name.catalog)

    def _by_values(
        self, name: TableName, values: Sequence[str] | None, limit: int | None
    ) -> Sequence[Partition]:
        wanted = tuple(values or ())
        self._require_few(
            name, limit, lambda: sum(has_values(text, wanted) for text in self._names(name, _ALL))
        )
        return self._store.get_partitions_by_values(
            name.database, name.table, wanted, limit_of(limit), name.catalog
        )

    def _by_filter(
        self, name: TableName, text: str | None, limit: int | None
    ) -> Sequence[Partition]:
        if not text:
            return self._all(name, limit)
        self._require_few(name, limit, lambda: self._store.count_partitions_by_filter(name, text))
        return self._store.get_partitions_by_filter(
            name.database, name.table, text, limit_of(limit), name.catalog
        )

    def _by_condition(self, request: Struct) -> tuple[Sequence[Partition], bool]:
        name, condition = table_of(request), read_condition(request.expr)
        default_value = request.defaultPartitionName or DEFAULT_PARTITION_VALUE
        self._require_few(name, request.maxParts, lambda: len(
            self._store.get_partition_names_by_condition(
                name, condition, max_parts=self._partitions_max + 1, order="",
                default_value=default_value,
            )
        ))  # fmt: skip
        return self._store.get_partitions_by_condition(
            name, condition, max_parts=limit_of(request.maxParts), default_value=default_value
        )

    def _table(self, name: TableName) -> Table:
        return self._store.get_table(name.database, name.table, name.catalog)

    def _require_few(self, name: TableName, limit: int | None, count: Callable[[], int]) -> None:
        """Counted only for a call whose own limit would not do. Raises MetaError."""
        most = self._partitions_max
        if most < 0 or 0 <= limit_of(limit) <= most:
            return
        number = count()
        if number > most:
            raise MetaError(
                f"Number of partitions scanned (={number}) on table '{name.table}' exceeds limit "
                f"(={most}). This is controlled on the metastore server by "
                "metastore.limit.partition.request."
            )


def has_values(name: str, wanted: Sequence[str]) -> bool:
    """Whether a partition has the first values; "" for any."""
    values = (value for _, value in parse_partition_name(name))
    return all(not value or value == own for value, own in zip(wanted, values, strict=False))
