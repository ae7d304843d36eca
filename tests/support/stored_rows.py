"""What stands in a table of a database: for what no call shows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.all_tables import TABLES


def rows_of(database_url: str, table: str) -> list[dict[str, Any]]:
    """All rows, in the order of the primary key."""
    wanted = TABLES.tables[table]
    database = open_database(database_url)
    try:
        with database.transaction(write=False) as connection:
            rows = connection.execute(select(wanted).order_by(*wanted.primary_key.columns))
            return [dict(row._mapping) for row in rows]
    finally:
        database.close()


def all_rows(database_url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Those of every table, in some order that is always the same."""
    database = open_database(database_url)
    try:
        with database.transaction(write=False) as connection:
            return {
                name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
                for name, table in TABLES.tables.items()
            }
    finally:
        database.close()


def change_rows(database_url: str, table: str, where: dict[str, Any], **values: Any) -> None:
    """What another metastore on the same database may have written."""
    wanted = TABLES.tables[table]
    database = open_database(database_url)
    try:
        with database.transaction(write=True) as connection:
            here = [wanted.c[name] == value for name, value in where.items()]
            connection.execute(wanted.update().where(*here).values(**values))
    finally:
        database.close()
