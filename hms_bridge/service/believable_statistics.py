"""Stored column statistics, and whether a snapshot may believe them."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import statistics, statistics_state, tables
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.statistics import ObjectStatistics, StatisticsQuery, StatisticsUpdate
from hms_bridge.model.statistics_state import is_believable
from hms_bridge.model.target import TableName


def require_table(
    connection: Connection,
    named: StatisticsUpdate | StatisticsQuery,
    lock: RowLock = RowLock.NONE,
) -> StoredTable:
    """The table of a request. Raises NoSuchObjectError."""
    key = TableName.lower(named.database_name, named.table_name, named.catalog_name)
    return require_named_table(connection, key, lock)


def require_named_table(
    connection: Connection, key: TableName, lock: RowLock = RowLock.NONE
) -> StoredTable:
    """The table of a name in lower case. Raises NoSuchObjectError, in the words
    of Hive's calls of statistics."""
    stored = tables.find_table(connection, *key.parts, lock)
    if stored is None:
        raise NoSuchObjectError(
            f"Specified catalog.database.table does not exist : {key.catalog}.{key}"
        )
    return stored


def statistics_of_table(
    connection: Connection, stored: StoredTable, query: StatisticsQuery
) -> ObjectStatistics | None:
    """None if it has none. Only a query with a snapshot learns whether they are compliant."""
    columns = [name.lower() for name in query.columns]
    known = statistics.of_table(connection, stored, columns, query.engine)
    if known is None or query.valid_write_ids is None:
        return known
    table = stored.table
    is_compliant = not table.is_transactional or is_believable(
        table.parameters, table.write_id, query.valid_write_ids
    )
    return replace(known, is_compliant=is_compliant)


def statistics_of_partitions(
    connection: Connection, stored: StoredTable, query: StatisticsQuery
) -> dict[str, ObjectStatistics]:
    """The same of partitions, by name; those without any are left out."""
    states = statistics_state.partition_states(
        connection, stored, query.partition_names or (), RowLock.NONE
    )
    keys = {state.id: name for name, state in states.items()}
    columns = [name.lower() for name in query.columns]
    known_by_name = statistics.of_partitions(connection, keys, columns, query.engine)
    if query.valid_write_ids is None:
        return known_by_name
    return {
        name: replace(
            known,
            is_compliant=is_believable(
                states[name].parameters, states[name].write_id, query.valid_write_ids
            ),
        )
        for name, known in known_by_name.items()
    }
