"""Sends a statement by the driver's own cursor: SQLAlchemy's take longer than a short statement.

Whoever listens to SQLAlchemy's cursors hears of each statement all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

_EMBEDDED = "pysqlite"
"""The driver whose connections make their cursors themselves, in one call."""
_MYSQL = "pymysql"


class Come:
    """An answer that is there already. ``new_key``: which number SQLite gave to the row of an
    INSERT; on MySQL that, or the last LAST_INSERT_ID(…) of a change."""

    __slots__ = ("count", "new_key", "rows")

    def __init__(self, rows: Sequence[tuple[Any, ...]], count: int, new_key: int = 0) -> None:
        self.rows, self.count, self.new_key = rows, count, new_key


def is_heard(connection: Connection) -> bool:
    """Whether somebody listens to its cursors."""
    # The flags first, as SQLAlchemy does: to ask who listens takes as long as to run a statement.
    if not (connection._has_events or connection.engine._has_events):
        return False
    heard = connection.dispatch
    return bool(heard.before_cursor_execute or heard.after_cursor_execute)


def execute(connection: Connection, sql: str, arguments: Any) -> Come:
    """The rows, if it returns any, and how many it changed. Raises SQLAlchemyError."""
    if is_heard(connection):
        options = {"no_parameters": arguments is None}
        result = connection.exec_driver_sql(sql, arguments, options)
        rows = result.fetchall() if result.returns_rows else ()
        has_key = connection.dialect.driver in (_EMBEDDED, _MYSQL)
        return Come(rows, result.rowcount, result.lastrowid if has_key else 0)
    cursor: Any = None
    driver = connection.dialect.driver
    try:
        if driver == _EMBEDDED:
            raw: Any = connection.connection.dbapi_connection
            cursor = raw.execute(sql, () if arguments is None else arguments)
            return Come(cursor.fetchall(), cursor.rowcount, cursor.lastrowid)
        cursor = connection.connection.cursor()
        cursor.execute(sql) if arguments is None else cursor.execute(sql, arguments)
        new_key = cursor.lastrowid if driver == _MYSQL else 0
        rows = () if cursor.description is None else cursor.fetchall()
        changed: int = cursor.rowcount
        cursor.close()
    except BaseException as error:
        # As SQLAlchemy's own cursors do: what the error means for connection and pool is there.
        connection._handle_dbapi_exception(error, sql, arguments, cursor, None)
    return Come(rows, changed, new_key)
