"""Databases for tests: SQLite, or the server that HMS_BRIDGE_TEST_DATABASE names.

The named database is the tests' own: its schema is made once, and it is emptied before every test
that asks for it. HMS_BRIDGE_TEST_DATABASES (URLs with blanks between them) names more of them, in
which suites that keep one metastore for many tests run too; nothing is removed there.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import (
    CompoundSelect,
    Connection,
    exists,
    inspect,
    literal,
    select,
    text,
    union_all,
)

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.install import install, put_seeds
from hms_bridge.clock import SystemClock
from tests.support.engines import MEMORY, open_again, put_back

SERVER_URL = os.environ.get("HMS_BRIDGE_TEST_DATABASE")
ON_POSTGRESQL = pytest.mark.skipif(
    not (SERVER_URL or "").startswith("postgresql"), reason="of PostgreSQL"
)
ON_A_SERVER = pytest.mark.skipif(SERVER_URL is None, reason="of servers")
WHO_WAIT = text(
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    if (SERVER_URL or "").startswith("postgresql")
    # INNODB_TRX is as it was when it was first looked at, to whoever looks each tenth of a second.
    else "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS "
    "WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
)
"""How many transactions of the server wait for rows that others hold."""
OTHER_URLS = os.environ.get("HMS_BRIDGE_TEST_DATABASES", "").split()


@contextmanager
def fresh_database() -> Iterator[Database]:
    """An installed, empty database: SQLite's is in memory."""
    if SERVER_URL:
        database = _server(SERVER_URL)
        _empty(SERVER_URL)
    else:
        database = memory_database()
    try:
        yield database
    finally:
        put_back(database)


def fresh_url(folder: Path) -> str:
    """Where a test may open a metastore of its own: a new file in the folder, or the server's
    database, emptied. The schema is there. Only one of them is open at a time."""
    if not SERVER_URL:
        return sqlite_file(folder)
    _server(SERVER_URL).close()
    _empty(SERVER_URL)
    return SERVER_URL


def sqlite_file(folder: Path, name: str = "metastore.db") -> str:
    """The URL of a file that has the schema: the one that is there, or else a new one."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(_schema())
    return f"sqlite:///{folder / name}"


def memory_database() -> Database:
    """A new one that has the schema, and goes with its only connection."""
    database = open_again(MEMORY)
    with sqlite_connection(database) as raw:
        raw.deserialize(_schema())
    return database


@contextmanager
def sqlite_connection(database: Database) -> Iterator[sqlite3.Connection]:
    """The driver's own connection to a database in memory."""
    pooled = database.engine.raw_connection()
    try:
        raw = pooled.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        yield raw
    finally:
        pooled.close()


@cache
def _schema() -> bytes:
    """SQLite's bytes of an installed, empty database: a copy takes a tenth of an installation."""
    database = open_database(MEMORY)
    install(database)
    try:
        with sqlite_connection(database) as raw:
            return raw.serialize()
    finally:
        database.close()


@cache
def _server(url: str) -> Database:
    """One for the whole run, which remembers the statements that it has compiled."""
    database = open_database(url)
    with database.transaction(write=False) as connection:
        existing = set(inspect(connection).get_table_names())
    if not set(TABLES.tables) <= existing:
        install(database)
    return database


@cache
def _sweeper(url: str) -> Database:
    """Whose connection stays, with what it has prepared; those of tests are as new each time."""
    return open_database(url, pool_size=1)


def _empty(url: str) -> None:
    """By DELETE, for TRUNCATE makes new files for every table and index."""

    def work(connection: Connection) -> None:
        is_postgresql = connection.dialect.name == "postgresql"
        quote = connection.dialect.identifier_preparer.quote_identifier
        before, after = _POSTGRESQL if is_postgresql else _MARIADB
        filled = {*connection.scalars(_filled()), "TXNS"}
        deletes = (f"DELETE FROM {quote(name)}" for name in sorted(filled))
        for statement in (*before, *deletes, *after):
            connection.execute(text(statement))
        put_seeds(connection)

    run_in_transaction(_sweeper(url), work, write=True, clock=SystemClock())


# What lets rows go in any order, and starts ids again that the database gives.
_POSTGRESQL = (
    ("SET LOCAL session_replication_role = replica",),
    (
        "SET LOCAL session_replication_role = origin",
        """SELECT setval(pg_get_serial_sequence('"TXNS"', 'TXN_ID'), 1, false)""",
        """SELECT setval(pg_get_serial_sequence('"MASTER_KEYS"', 'KEY_ID'), 1, false)""",
    ),
)
_MARIADB = (
    ("SET FOREIGN_KEY_CHECKS = 0",),
    (
        "ALTER TABLE `TXNS` AUTO_INCREMENT = 1",
        "ALTER TABLE `MASTER_KEYS` AUTO_INCREMENT = 1",
        "SET FOREIGN_KEY_CHECKS = 1",
    ),
)


@cache
def _filled() -> CompoundSelect[str]:
    """The names of tables that have rows: emptying all of them takes ten times as long."""
    parts = [
        select(literal(name)).where(exists(select(literal(1)).select_from(table)))
        for name, table in TABLES.tables.items()
    ]
    return union_all(*parts)
