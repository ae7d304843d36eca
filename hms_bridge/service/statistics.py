"""Verbs of column statistics (Hive 4.2: SetAggrStatsHandler, ObjectStore, HMSHandler;
docs/hive/metastore.md §8, §9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import statistics, statistics_state, view_creation
from hms_bridge.catalog.partitions import partition_names
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.statistics_merge import PlacedStatistics, aggregated
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.statistics import AggregatedStatistics, ObjectStatistics, StatisticsQuery
from hms_bridge.model.statistics_state import is_believable
from hms_bridge.model.target import TableName
from hms_bridge.notification import object_events
from hms_bridge.service.believable_statistics import (
    require_named_table,
    require_table,
    statistics_of_partitions,
    statistics_of_table,
)
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.statistics_updates import set_column_statistics
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole, writes


def _get_column_statistics(
    connection: Connection, query: StatisticsQuery
) -> tuple[ObjectStatistics, ...]:
    stored = require_table(connection, query)
    if query.partition_names is None:
        of_table = statistics_of_table(connection, stored, query)
        return () if of_table is None else (of_table,)
    return tuple(statistics_of_partitions(connection, stored, query).values())


def _get_aggregated_statistics(
    connection: Connection, query: StatisticsQuery
) -> AggregatedStatistics:
    names = list(dict.fromkeys(query.partition_names or ()))
    stored = require_table(connection, query)
    states = statistics_state.partition_states(connection, stored, names, RowLock.NONE)
    if query.valid_write_ids is not None and not all(
        is_believable(state.parameters, state.write_id, query.valid_write_ids)
        for state in states.values()
    ):
        return AggregatedStatistics()
    keys = {state.id: name for name, state in states.items()}
    columns = [name.lower() for name in query.columns]
    by_partition = statistics.of_partitions(connection, keys, columns, query.engine)
    if not by_partition or not columns:
        return AggregatedStatistics()
    return _together(by_partition, names, columns)


def _delete_column_statistics(
    unit: UnitOfWork,
    database: str,
    table: str,
    *,
    columns: Sequence[str] = (),
    partition_names: Sequence[str] | None = None,
    engine: str | None = None,
    catalog: str = DEFAULT_CATALOG,
) -> bool:
    names = [name.lower() for name in columns]
    key = TableName.lower(database, table, catalog)
    stored = require_named_table(unit.connection, key, RowLock.EXCLUSIVE)
    if stored.table.is_transactional:
        raise MetaError(
            f"Cannot delete stats via this API for a transactional table: {stored.table.full_name}"
        )
    if partition_names is None or not stored.table.is_partitioned:
        _delete_of_table(unit, stored, names, engine)
    else:
        _delete_of_partitions(unit, stored, partition_names, names, engine)
    return True


def _get_columns_with_statistics(
    connection: Connection,
    database: str,
    table: str,
    partition_name: str | None = None,
    catalog: str = DEFAULT_CATALOG,
) -> tuple[str, ...]:
    stored = require_named_table(connection, TableName.lower(database, table, catalog))
    return statistics.columns_with_statistics(connection, stored, partition_name)


class StatisticsVerbs(VerbFamily):
    """The StatisticsStore."""

    set_column_statistics = writes(set_column_statistics)
    get_column_statistics = reads_whole(sql(_get_column_statistics))
    get_aggregated_statistics = reads_whole(sql(_get_aggregated_statistics))
    delete_column_statistics = writes(_delete_column_statistics)
    get_columns_with_statistics = reads_whole(sql(_get_columns_with_statistics))
    count_changed_rows = writes(sql(view_creation.count_changed_rows))


def _together(
    by_partition: Mapping[str, ObjectStatistics], names: Sequence[str], columns: Sequence[str]
) -> AggregatedStatistics:
    places = {name: place for place, name in enumerate(names)}
    by_column: dict[str, list[PlacedStatistics]] = {}
    for name, known in by_partition.items():
        for column in known.columns:
            placed = PlacedStatistics(place=places[name], column=column)
            by_column.setdefault(column.column, []).append(placed)
    wanted = set(columns)
    return AggregatedStatistics(
        columns=tuple(
            aggregated(by_column[name], len(names))
            for name in dict.fromkeys(columns)
            if name in by_column
        ),
        partition_count=sum(len(known.columns) == len(wanted) for known in by_partition.values()),
    )


def _delete_of_table(
    unit: UnitOfWork, stored: StoredTable, columns: Sequence[str], engine: str | None
) -> None:
    table = stored.table
    if not statistics.delete_of_table(unit.connection, stored, columns, engine):
        raise NoSuchObjectError(
            f"Column stats doesn't exist for db={table.database_name} table={table.name} "
            f"col={', '.join(columns) or 'any'}"
        )
    named = columns or [column.name for column in table.storage.columns]
    unit.events += [
        object_events.table_statistics_deleted(table, name, unit.now_seconds) for name in named
    ]


def _delete_of_partitions(
    unit: UnitOfWork,
    stored: StoredTable,
    partitions: Sequence[str],
    columns: Sequence[str],
    engine: str | None,
) -> None:
    table = stored.table
    chosen = partitions or partition_names(unit.connection, stored)
    states = statistics_state.partition_states(unit.connection, stored, chosen, RowLock.EXCLUSIVE)
    keys = [state.id for state in states.values()]
    if chosen and not statistics.delete_of_partitions(unit.connection, keys, columns, engine):
        raise NoSuchObjectError(
            f"Column stats doesn't exist for db={table.database_name} table={table.name} "
            f"partition={', '.join(chosen[:5])} col={', '.join(columns) or 'any'}"
        )
    named = columns or [column.name for column in table.storage.columns]
    unit.events += [
        object_events.partition_statistics_deleted(
            table,
            name,
            [value for _, value in parse_partition_name(name)],
            column,
            unit.now_seconds,
        )
        for column in named
        for name in states
    ]
