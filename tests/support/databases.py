"""Databases for tests: SQLite, or the server that HMS_BRIDGE_TEST_DATABASE names.

The named database is the tests' own: it is emptied before every test that asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import inspect, text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.install import install, put_seeds

SERVER_URL = os.environ.get("HMS_BRIDGE_TEST_DATABASE")


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


def _empty(database: Database) -> None:
    with database.transaction(write=False) as connection:
        existing = set(inspect(connection).get_table_names())
    if not set(TABLES.tables) <= existing:
        install(database)
    with database.transaction(write=True) as connection:
        if connection.dialect.name == "postgresql":
            names = ", ".join(f'"{name}"' for name in TABLES.tables)
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        else:
            connection.execute(text("SET FOREIGN_KEY_CHECKS = 0"))
            for name in TABLES.tables:
                connection.execute(text(f"DELETE FROM `{name}`"))
            connection.execute(text("ALTER TABLE `TXNS` AUTO_INCREMENT = 1"))
            connection.execute(text("SET FOREIGN_KEY_CHECKS = 1"))
    with database.transaction(write=True) as connection:
        put_seeds(connection)
