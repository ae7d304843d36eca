"""Databases for tests: SQLite, or the server that HMS_BRIDGE_TEST_DATABASE names.

The named database is the tests' own: its schema is made once, and it is emptied before every test
that asks for it. HMS_BRIDGE_TEST_DATABASES (URLs with blanks between them) names more of them, in
which suites that keep one metastore for many tests run too; nothing is removed there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, exists, inspect, literal, select, text, union_all

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.install import install, put_seeds

SERVER_URL = os.environ.get("HMS_BRIDGE_TEST_DATABASE")
OTHER_URLS = os.environ.get("HMS_BRIDGE_TEST_DATABASES", "").split()


@contextmanager
def fresh_database(folder: Path | None = None) -> Iterator[Database]:
    """An installed, empty database that several threads can use.

    SQLite: a file in the folder, or in memory without one.
    """
    if SERVER_URL:
        database = open_database(SERVER_URL)
        _empty(database)
    else:
        database = open_database("sqlite://" if folder is None else f"sqlite:///{folder}/hms.db")
        install(database)
    try:
        yield database
    finally:
        database.close()


def fresh_url(folder: Path) -> str:
    """Where a test may open a metastore of its own: a new file in the folder, or the server's
    database, emptied. Only one of them is open at a time."""
    if not SERVER_URL:
        return f"sqlite:///{folder}/metastore.db"
    database = open_database(SERVER_URL)
    _empty(database)
    database.close()
    return SERVER_URL


def _empty(database: Database) -> None:
    with database.transaction(write=False) as connection:
        existing = set(inspect(connection).get_table_names())
    if not set(TABLES.tables) <= existing:
        install(database)
    with database.transaction(write=True) as connection:
        filled = _filled(connection)
        if connection.dialect.name == "postgresql":
            names = ", ".join(f'"{name}"' for name in filled)
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        else:
            connection.execute(text("SET FOREIGN_KEY_CHECKS = 0"))
            for name in filled:
                connection.execute(text(f"DELETE FROM `{name}`"))
            connection.execute(text("ALTER TABLE `TXNS` AUTO_INCREMENT = 1"))
            connection.execute(text("SET FOREIGN_KEY_CHECKS = 1"))
    with database.transaction(write=True) as connection:
        put_seeds(connection)


def _filled(connection: Connection) -> list[str]:
    """Tables that have rows: emptying all of them takes ten times as long."""
    parts = [
        select(literal(name)).where(exists(select(literal(1)).select_from(table)))
        for name, table in TABLES.tables.items()
    ]
    return sorted({*connection.scalars(union_all(*parts)), "TXNS"})
