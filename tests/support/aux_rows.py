"""Statements about a table that nothing else needs, and about the connection they go by."""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, bindparam, func, literal, select, text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from tests.support.databases import SERVER_URL

PUT = FixedInsert(AUX_TABLE)
KEYS = FixedSql(select(AUX_TABLE.c.MT_KEY2).order_by(AUX_TABLE.c.MT_KEY2))
FAULT = FixedSql(select(func.mod(literal(1), bindparam("by", type_=BigInteger), type_=BigInteger)))
"""Fails by 0."""

PID = FixedSql(text("SELECT pg_backend_pid()"))


def put(connection: Connection, *keys: int) -> None:
    PUT.put(connection, [{"MT_KEY1": "k", "MT_KEY2": key} for key in keys])


def keys(database: Database) -> list[int]:
    with database.transaction(write=False) as connection:
        return [key for (key,) in KEYS.all(connection)]


def end_connection(pid: int) -> None:
    """As an administrator does, or a server that stops."""
    assert SERVER_URL is not None
    other = open_database(SERVER_URL)
    with other.transaction(write=False) as connection:
        if connection.dialect.name == "postgresql":
            assert connection.scalar(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        else:
            connection.execute(text("KILL :pid"), {"pid": pid})
    other.close()
