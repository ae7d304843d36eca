"""Statements that a server runs thousands of times a second: written in SQLAlchemy Core, compiled
once for each database, and from then on a text on the driver's cursor.

A verb of six statements spends most of its time in building them and in looking up that they are
known. What is left out besides: conversion of values (a type that would need one is refused when
the statement is compiled), and lists of any length (``in_``; one value, or Core for those). Who
listens to the engine's statements hears of these, too; errors are SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Executable, Table, bindparam, insert
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from hms_bridge.backend.batches import batches
from hms_bridge.backend.dialect import keeps_time, now_expression, row_time_expression
from hms_bridge.backend.work import Work

_NOW = "hmsb_now_ms"


class _Text:
    """One statement as one database takes it."""

    def __init__(self, statement: Executable, dialect: Dialect, columns: Sequence[str]) -> None:
        compiled = statement.compile(  # type: ignore[attr-defined]
            dialect=dialect, column_keys=list(columns) or None
        )
        assert isinstance(compiled, SQLCompiler)
        self.sql = str(compiled)
        _require_plain(compiled, dialect)
        self._given = dict(compiled.params)
        self._order = compiled.positiontup

    def arguments(self, values: Mapping[str, Any]) -> Any:
        """What the driver takes beside the text."""
        if self._order is None:
            return {**self._given, **values}
        given = self._given
        return tuple(values[name] if name in values else given[name] for name in self._order)


class FixedSql:
    """One statement; its values are given by the names of its parameters.

    ``columns``: those that an INSERT without values fills. Rows are the driver's tuples.
    """

    def __init__(self, statement: Executable, columns: Sequence[str] = ()) -> None:
        self.statement = statement
        self._columns = columns
        self._texts: dict[tuple[str, str], _Text] = {}

    def all(self, connection: Connection, /, **values: Any) -> Sequence[tuple[Any, ...]]:
        """Tuples in the order of the selected columns; empty for no row."""
        rows: Sequence[tuple[Any, ...]] = _run(connection, self._text(connection), values)[0]
        return rows

    def first(self, connection: Connection, /, **values: Any) -> tuple[Any, ...] | None:
        """The first row; None without one."""
        rows = self.all(connection, **values)
        return rows[0] if rows else None

    def change(self, connection: Connection, /, **values: Any) -> int:
        """How many rows a statement that returns none has changed."""
        return _run(connection, self._text(connection), values)[1]

    def _text(self, connection: Connection) -> _Text:
        dialect = connection.dialect
        key = (dialect.name, dialect.driver)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = _Text(self.statement, dialect, self._columns)
        return text


class KeyedSql:
    """A statement about the rows of some keys: fixed for one key, as it is nearly always asked, and
    in Core for more. ``make``: the statement for a condition on ``key``."""

    def __init__(
        self, key: ColumnElement[int], make: Callable[[ColumnElement[bool]], Executable]
    ) -> None:
        self._key, self._make = key, make
        self.single = FixedSql(make(key == bindparam("key", type_=BigInteger)))

    def all(
        self, connection: Connection, keys: Sequence[int], /, **values: Any
    ) -> Sequence[Sequence[Any]]:
        """All rows."""
        if len(keys) == 1:
            return self.single.all(connection, key=keys[0], **values)
        return [
            row
            for batch in batches(keys)
            for row in connection.execute(self._make(self._key.in_(batch)), values)
        ]

    def change(self, connection: Connection, keys: Sequence[int], /, **values: Any) -> None:
        """Run a statement that returns no rows."""
        if len(keys) == 1:
            self.single.change(connection, key=keys[0], **values)
            return
        for batch in batches(keys):
            connection.execute(self._make(self._key.in_(batch)), values)


class FixedInsert:
    """Rows into a table: a single one by a fixed statement, several in Core."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.single = FixedSql(insert(table))

    def put(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with the same columns."""
        if len(rows) == 1:
            self.single.change(connection, **rows[0])
            return
        for batch in batches(rows):
            connection.execute(insert(self._table), batch)


class TimedSql:
    """A statement that needs the time: made from the time of the statement, and from that at which
    a row is made (:func:`hms_bridge.backend.dialect.row_time_expression`)."""

    def __init__(
        self, make: Callable[[ColumnElement[int], ColumnElement[int]], Executable]
    ) -> None:
        self._make = make
        self._texts: dict[tuple[str, str, bool], _Text] = {}

    def all(self, work: Work, /, **values: Any) -> Sequence[tuple[Any, ...]]:
        """All rows."""
        rows: Sequence[tuple[Any, ...]] = self._run(work, values)[0]
        return rows

    def first(self, work: Work, /, **values: Any) -> tuple[Any, ...] | None:
        """The first row; None without one."""
        rows = self.all(work, **values)
        return rows[0] if rows else None

    def change(self, work: Work, /, **values: Any) -> int:
        """How many rows a statement that returns none has changed."""
        return self._run(work, values)[1]

    def _run(self, work: Work, values: dict[str, Any]) -> tuple[Any, int]:
        if not keeps_time(work.connection, work.clock):
            values[_NOW] = work.clock.now_ms()
        return _run(work.connection, self._text(work), values)

    def _text(self, work: Work) -> _Text:
        connection, clock = work.connection, work.clock
        dialect, is_own = connection.dialect, keeps_time(connection, clock)
        key = (dialect.name, dialect.driver, is_own)
        text = self._texts.get(key)
        if text is None:
            given = bindparam(_NOW, type_=BigInteger)
            now = now_expression(connection, clock) if is_own else given
            row_time = row_time_expression(connection, clock) if is_own else given
            text = self._texts[key] = _Text(self._make(now, row_time), dialect, ())
        return text


def send(connection: Connection, sql: str) -> None:
    """Send a text without values, as it is: on PostgreSQL also several statements in one."""
    _execute(connection, sql, None)


def _run(connection: Connection, text: _Text, values: Mapping[str, Any]) -> tuple[Any, int]:
    """The rows, if it returns any, and how many it changed."""
    return _execute(connection, text.sql, text.arguments(values))


def _execute(connection: Connection, sql: str, arguments: Any) -> tuple[Any, int]:
    heard = connection.dispatch
    if heard.before_cursor_execute or heard.after_cursor_execute:
        options = {"no_parameters": arguments is None}
        result = connection.exec_driver_sql(sql, arguments, options)
        return (result.fetchall() if result.returns_rows else ()), result.rowcount
    cursor: Any = None
    try:
        cursor = connection.connection.cursor()
        cursor.execute(sql) if arguments is None else cursor.execute(sql, arguments)
        rows = cursor.fetchall() if cursor.description is not None else ()
        changed: int = cursor.rowcount
        cursor.close()
    except BaseException as error:
        # As SQLAlchemy's own cursors do: what the error means for connection and pool is there.
        connection._handle_dbapi_exception(error, sql, arguments, cursor, None)
    return rows, changed


def _require_plain(compiled: SQLCompiler, dialect: Dialect) -> None:
    """Raises TypeError for what the driver alone would not do as SQLAlchemy does it."""
    if compiled._bind_processors or compiled.post_compile_params:
        raise TypeError(f"a list or a value that is converted: {compiled}; run it with Core")
    for column in compiled._result_columns:
        if column.type.dialect_impl(dialect).result_processor(dialect, None) is not None:
            raise TypeError(f"{column.name} is converted: {compiled}; run it with Core")
