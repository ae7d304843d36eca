"""Verbs that look partitions up by name, value or filter."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import partitions, tables
from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.partitions import name_of
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Partition
from hms_bridge.model.partition_list import PartitionList
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import reads_whole


def _get_partition(
    connection: Connection,
    database: str,
    table: str,
    values: Sequence[str],
    catalog: str = DEFAULT_CATALOG,
) -> Partition:
    stored = require_named(connection, database, table, catalog)
    name = name_of(stored.table, values)
    listed = partitions.find_by_names(connection, stored, [name]).listed()
    if not listed:
        raise NoSuchObjectError(f"partition values=[{', '.join(values)}]")
    return listed[0]


def _get_partition_names(
    connection: Connection,
    database: str,
    table: str,
    max_parts: int = -1,
    catalog: str = DEFAULT_CATALOG,
) -> tuple[str, ...]:
    stored = require_named(connection, database, table, catalog)
    return partitions.partition_names(connection, stored, max_parts)


def _get_partitions(
    connection: Connection,
    database: str,
    table: str,
    max_parts: int = -1,
    catalog: str = DEFAULT_CATALOG,
) -> PartitionList:
    stored = require_named(connection, database, table, catalog)
    return partitions.find_all(connection, stored, max_parts).listed()


def _get_partitions_by_names(
    connection: Connection,
    database: str,
    table: str,
    names: Sequence[str],
    catalog: str = DEFAULT_CATALOG,
) -> PartitionList:
    stored = require_named(connection, database, table, catalog)
    return partitions.find_by_names(connection, stored, names).listed()


def _get_partitions_by_values(
    connection: Connection,
    database: str,
    table: str,
    prefix: Sequence[str],
    max_parts: int = -1,
    catalog: str = DEFAULT_CATALOG,
) -> PartitionList:
    stored = require_named(connection, database, table, catalog)
    return partitions.find_by_values(connection, stored, prefix, max_parts).listed()


def _get_partitions_by_filter(
    connection: Connection,
    database: str,
    table: str,
    filter_text: str,
    max_parts: int = -1,
    catalog: str = DEFAULT_CATALOG,
) -> PartitionList:
    tree = parse_filter(filter_text)
    stored = require_named(connection, database, table, catalog)
    if tree is None:
        return partitions.find_all(connection, stored, max_parts).listed()
    chosen = bind_filter(tree, stored.table.partition_columns)
    return partitions.find_by_filter(connection, stored, chosen, max_parts).listed()


def require_named(connection: Connection, database: str, table: str, catalog: str) -> StoredTable:
    """The table of a name as a client gives it. Raises NoSuchObjectError."""
    return tables.require_table(connection, database.lower(), table.lower(), catalog.lower())


class PartitionQueryVerbs(VerbFamily):
    """get of partitions (CatalogStore)."""

    get_partition = reads_whole(sql(_get_partition))
    get_partition_names = reads_whole(sql(_get_partition_names))
    get_partitions = reads_whole(sql(_get_partitions))
    get_partitions_by_names = reads_whole(sql(_get_partitions_by_names))
    get_partitions_by_values = reads_whole(sql(_get_partitions_by_values))
    get_partitions_by_filter = reads_whole(sql(_get_partitions_by_filter))
