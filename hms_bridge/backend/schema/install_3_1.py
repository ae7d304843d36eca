"""Make Hive's schema 3.1.0 in an empty database, for a Hive 3.1: hms-bridge does not work on it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, func, insert, inspect, select

from hms_bridge.backend.engine import Database
from hms_bridge.backend.schema import notification_tables, txn_tables
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.data_steps import LOG_SEQUENCE
from hms_bridge.backend.schema.hive_3_1 import NEXT_TXN_ID, Tables31
from hms_bridge.backend.schema.versions import tables_of_3_1
from hms_bridge.errors import BackendError

VERSION_3_1 = "3.1.0"

_ROWS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    (NEXT_TXN_ID, (1,)),
    (txn_tables.NEXT_LOCK_ID.name, (1,)),
    (txn_tables.NEXT_COMPACTION_QUEUE_ID.name, (1,)),
    (notification_tables.NOTIFICATION_SEQUENCE.name, (1, 1)),
    (txn_tables.SEQUENCE_TABLE.name, (LOG_SEQUENCE, 1)),
    (txn_tables.VERSION.name, (1, VERSION_3_1, f"Hive release version {VERSION_3_1}")),
)
"""What a table begins with, by its columns; the version last, so that none before it is taken for
made."""


def install_3_1(database: Database) -> None:
    """Make the tables that are missing, and their first rows; what was cut off is done by the same
    call. Raises BackendError where tables of a later version are."""
    with database.transaction(write=True) as connection:
        tables = tables_of_3_1(connection.dialect)
        _refuse_others(connection, tables, database.name)
        tables.metadata.create_all(connection)
        for name, row in _ROWS:
            _put(connection, tables.table(name), row)


def tables_lacking_of_3_1(database: Database) -> tuple[str, ...]:
    """What :func:`install_3_1` would make."""
    with database.transaction(write=False) as connection:
        wanted = tables_of_3_1(connection.dialect).metadata.tables.keys()
        return tuple(sorted(wanted - set(inspect(connection).get_table_names())))


def _refuse_others(connection: Connection, tables: Tables31, name: str) -> None:
    later = TABLES.tables.keys() - tables.metadata.tables.keys()
    others = sorted(later & set(inspect(connection).get_table_names()))
    if others:
        raise BackendError(
            f"{name} holds tables of a later schema, which 3.1.0 has not: {', '.join(others[:5])}; "
            "use an empty database"
        )


def _put(connection: Connection, table: Table, row: tuple[Any, ...]) -> None:
    if connection.execute(select(func.count()).select_from(table)).scalar_one() == 0:
        connection.execute(insert(table).values(row))
