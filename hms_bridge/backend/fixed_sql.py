"""Statements that a server runs thousands of times a second: written in SQLAlchemy Core, compiled
once for each database, and from then on a text on the driver's cursor.

A verb of six statements spends most of its time in building them and in looking up that they are
known. What is left out besides: conversion of values (a type that would need one is refused when
the statement is compiled), and lists of any length (``in_``; one value, or Core for those). Who
listens to the engine's statements hears of these, too; errors are SQLAlchemy's.

A statement whose answer is not looked at at once (``later``) goes to PostgreSQL together with the
next one (:mod:`hms_bridge.backend.pipeline`); elsewhere, and where somebody listens, by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any, NoReturn, Protocol

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnClause,
    ColumnElement,
    Connection,
    Executable,
    Select,
    Table,
    TableValuedAlias,
    Text,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from hms_bridge.backend.batches import batches, given_keys, insert_rows, is_among, keys_text
from hms_bridge.backend.dialect import (
    insert_if_missing,
    insert_unless_there,
    is_mysql,
    is_postgresql,
    keeps_time,
    now_expression,
    row_time_expression,
)
from hms_bridge.backend.driver_cursor import Come, execute, is_heard
from hms_bridge.backend.prepared_text import Answer, PreparedText
from hms_bridge.clock import Clock

_NOW = "hmsb_now_ms"


class _Text:
    """One statement as one database takes it. What SQLAlchemy would send is made only where it is
    asked for: a pipelined connection sends another text, and to make one takes milliseconds."""

    def __init__(self, statement: Executable, dialect: Dialect, columns: Sequence[str]) -> None:
        self._make: Callable[[], SQLCompiler] = partial(_compiled, statement, dialect, columns)
        self._plain: tuple[str, _Picking | None] | None = None
        self.prepared: PreparedText | None = None
        if dialect.driver == _PIPELINED:
            compiled = _compiled(statement, _numbering(), columns)
            self.prepared = PreparedText(str(compiled))
        else:
            compiled = self._make()
            self._plain = _as_sent(compiled)
        _require_plain(compiled, dialect)
        self.given = dict(compiled.params)
        self._prepared_order = _picking(compiled.positiontup or ())

    def plain(self) -> tuple[str, _Picking | None]:
        """What SQLAlchemy would send, and what puts its values in order if they have no names."""
        if self._plain is None:
            self._plain = _as_sent(self._make())
        return self._plain

    def numbered(self, values: Mapping[str, Any]) -> Sequence[Any]:
        """What stands beside the prepared text."""
        return self._prepared_order({**self.given, **values})


_Picking = Callable[[Mapping[str, Any]], tuple[Any, ...]]


def _picking(names: Sequence[str]) -> _Picking:
    """What gives the values of these names, in their order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda named: tuple([named[name] for name in names])


def _as_sent(compiled: SQLCompiler) -> tuple[str, _Picking | None]:
    order = compiled.positiontup
    return str(compiled), None if order is None else _picking(order)


class _Awaited:
    """An answer of a connection that may hold the statement back."""

    __slots__ = ("_answer", "_connection", "_text")

    def __init__(self, connection: Connection, text: _Text, answer: Answer) -> None:
        self._connection, self._text, self._answer = connection, text, answer

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        try:
            return self._answer.rows
        except BaseException as error:
            self._fail(error)

    @property
    def count(self) -> int:
        try:
            return self._answer.count
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> NoReturn:
        # As SQLAlchemy's own cursors do: what the error means for connection and pool is there.
        self._connection._handle_dbapi_exception(error, self._text.plain()[0], None, None, None)
        raise error


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
        return _run(connection, self, values).rows

    def first(self, connection: Connection, /, **values: Any) -> tuple[Any, ...] | None:
        """The first row; None without one."""
        rows = self.all(connection, **values)
        return rows[0] if rows else None

    def change(self, connection: Connection, /, **values: Any) -> int:
        """How many rows a statement that returns none has changed."""
        return _run(connection, self, values).count

    def last_number(self, connection: Connection, /, **values: Any) -> int | None:
        """What a change on MySQL gave to LAST_INSERT_ID(…); None where it changed no row. There
        only."""
        answer = _run(connection, self, values)
        assert isinstance(answer, Come)
        return answer.new_key if answer.count else None

    def later(self, connection: Connection, /, **values: Any) -> Answer:
        """To be done in its turn; its failure is heard there, at the latest at the commit."""
        return _run(connection, self, values)

    def read_later(self, connection: Connection, /, **values: Any) -> Answer:
        """As :meth:`later`, also without a transaction: for who looks at the answer himself."""
        return _run(connection, self, values, is_looked_at=True)

    def _make(self, dialect: Dialect) -> _Text:
        text = _Text(self.statement, dialect, self._columns)
        self._texts[dialect.name, dialect.driver] = text
        return text


class KeyedSql:
    """A statement about the rows of some keys: fixed for one key, as it is nearly always asked, and
    for any number on PostgreSQL; in Core elsewhere. ``make``: the statement for a condition on
    ``key``; ``several``: what it is on PostgreSQL, for ``keys``, if not made so."""

    def __init__(
        self,
        key: ColumnElement[int],
        make: Callable[[ColumnElement[bool]], Executable],
        several: Executable | None = None,
    ) -> None:
        self._key, self._make = key, make
        self.single = FixedSql(make(key == bindparam("key", type_=BigInteger)))
        self._several = FixedSql(make(is_among(key, "keys")) if several is None else several)

    def all(
        self, connection: Connection, keys: Sequence[int], /, **values: Any
    ) -> Sequence[tuple[Any, ...]]:
        """All rows."""
        return self.later(connection, keys, **values).rows

    def later(self, connection: Connection, keys: Sequence[int], /, **values: Any) -> Answer:
        """As :meth:`FixedSql.later`, where a statement is fixed."""
        fixed = self._fixed(connection, keys, values)
        if fixed is not None:
            return fixed.later(connection, **values)
        rows = [
            tuple(row)
            for batch in batches(keys)
            for row in connection.execute(self._make(self._key.in_(batch)), values)
        ]
        return Come(rows, len(rows))

    def change(self, connection: Connection, keys: Sequence[int], /, **values: Any) -> None:
        """Run a statement that returns no rows."""
        fixed = self._fixed(connection, keys, values)
        if fixed is not None:
            fixed.later(connection, **values)
            return
        for batch in batches(keys):
            connection.execute(self._make(self._key.in_(batch)), values)

    def _fixed(
        self, connection: Connection, keys: Sequence[int], values: dict[str, Any]
    ) -> FixedSql | None:
        """The statement, with the keys among its values."""
        if len(keys) == 1:
            values["key"] = keys[0]
            return self.single
        if not keys or not is_postgresql(connection):
            return None
        values["keys"] = keys_text(keys)
        return self._several


def locking(
    key: ColumnElement[int], make: Callable[[ColumnElement[bool]], Select[Any]]
) -> KeyedSql:
    """What locks the rows of some keys, in the order of these. ``make``: what is selected.

    On PostgreSQL one key after the other, whatever it knows of the table: else its plan may be one
    that goes through all rows in their order, and so may one that it made when they were few.
    """

    def locked(is_wanted: ColumnElement[bool]) -> Select[Any]:
        return make(is_wanted).order_by(key).with_for_update()

    keys = given_keys("keys")
    row = make(keys.c.key == key).with_for_update().lateral("locked")
    return KeyedSql(key, locked, select(*row.c).select_from(keys.join(row, true())))


class FixedInsert:
    """Rows into a table: a single one by a fixed statement, on PostgreSQL several, too; in Core
    elsewhere. They are on their way when this returns: see ``later``."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.single = FixedSql(insert(table))
        self._several: dict[tuple[str, ...], FixedSql] = {}

    def put(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with the same columns."""
        if len(rows) == 1:
            self.single.later(connection, **rows[0])
        elif rows and is_postgresql(connection):
            self._put_together(tuple(rows[0])).later(connection, rows=json.dumps(rows))
        else:
            for batch in batches(rows):
                connection.execute(insert(self._table), batch)

    def _put_together(self, names: tuple[str, ...]) -> FixedSql:
        fixed = self._several.get(names)
        if fixed is None:
            given = json_rows("rows", self._table, names)
            statement = insert(self._table).from_select(names, select(*given.c))
            fixed = self._several[names] = FixedSql(statement)
        return fixed


def put_rows(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows with the same columns, if there are any: several as PostgreSQL takes them in one
    statement, which is less work for both; in Core elsewhere, and where it is a single row."""
    if len(rows) > 1 and is_postgresql(connection) and _is_text(rows):
        _rows_into(table).put(connection, rows)
    else:
        insert_rows(connection, table, rows)


def _is_text(rows: list[dict[str, Any]]) -> bool:
    """Whether all texts are such. The driver says of which one it is not; JSON hides it."""
    try:
        json.dumps(rows, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _rows_into(table: Table) -> FixedInsert:
    return FixedInsert(table)


def json_rows(
    parameter: str, table: Table, names: Sequence[str], *more: ColumnClause[Any]
) -> TableValuedAlias:
    """Rows in a JSON text, with columns of a table; on PostgreSQL only."""
    columns = [*more, *(column(name, table.c[name].type) for name in names)]
    text = cast(bindparam(parameter, type_=Text), JSON)
    rows = func.json_to_recordset(text).table_valued(*columns)
    return rows.render_derived("given", with_types=True)


class FixedInsertIfMissing:
    """As :func:`hms_bridge.backend.dialect.insert_if_missing`, by a fixed statement where one can
    do it."""

    def __init__(self, table: Table, keys: Sequence[Column[Any]]) -> None:
        self._table, self._keys = table, keys
        self._fixed: dict[str, FixedSql] = {}

    def put(self, connection: Connection, row: Mapping[str, Any]) -> bool:
        """Whether the row, which has a value for each column, was inserted."""
        if is_mysql(connection):
            return insert_if_missing(connection, self._table, self._keys, row)
        return bool(self._text(connection).all(connection, **row))

    def put_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The same of several, one after the other."""
        if is_mysql(connection):
            return [self.put(connection, row) for row in rows]
        answers = [self._text(connection).later(connection, **row) for row in rows]
        return [bool(answer.rows) for answer in answers]

    def _text(self, connection: Connection) -> FixedSql:
        name = connection.dialect.name
        fixed = self._fixed.get(name)
        if fixed is None:
            statement = insert_unless_there(name, self._table, self._keys)
            fixed = self._fixed[name] = FixedSql(statement)
        return fixed


class TimedWork(Protocol):
    """What a statement is run over that needs the time: :class:`hms_bridge.backend.work.Work`."""

    @property
    def connection(self) -> Connection:
        """The transaction."""
        ...

    @property
    def clock(self) -> Clock:
        """Whose time it is, where it is not the database's."""
        ...


class TimedSql:
    """A statement that needs the time: made from the time of the statement, and from that at which
    a row is made (:func:`hms_bridge.backend.dialect.row_time_expression`)."""

    def __init__(
        self, make: Callable[[ColumnElement[int], ColumnElement[int]], Executable]
    ) -> None:
        self._make = make
        self._texts: dict[tuple[str, str, bool], _Text] = {}

    def all(self, work: TimedWork, /, **values: Any) -> Sequence[tuple[Any, ...]]:
        """All rows."""
        return self._run(work, values).rows

    def first(self, work: TimedWork, /, **values: Any) -> tuple[Any, ...] | None:
        """The first row; None without one."""
        rows = self.all(work, **values)
        return rows[0] if rows else None

    def change(self, work: TimedWork, /, **values: Any) -> int:
        """How many rows a statement that returns none has changed."""
        return self._run(work, values).count

    def later(self, work: TimedWork, /, **values: Any) -> Answer:
        """As :meth:`FixedSql.later`."""
        return self._run(work, values)

    def new_key(self, work: TimedWork, /, **values: Any) -> int:
        """Which number SQLite gives to the row that this inserts; it takes half as long as an
        INSERT that returns it. There only."""
        answer = self._run(work, values)
        assert isinstance(answer, Come)
        return answer.new_key

    def _run(self, work: TimedWork, values: dict[str, Any]) -> Answer:
        return _send(work.connection, self._text(work, values), values)

    def _text(self, work: TimedWork, values: dict[str, Any]) -> _Text:
        """The text; the time is put among the values, if it is not the database's own."""
        connection, clock = work.connection, work.clock
        dialect, is_own = connection.dialect, keeps_time(connection, clock)
        if not is_own:
            values[_NOW] = clock.now_ms()
        key = (dialect.name, dialect.driver, is_own)
        text = self._texts.get(key)
        if text is None:
            given = bindparam(_NOW, type_=BigInteger)
            now = now_expression(connection, clock) if is_own else given
            row_time = row_time_expression(connection, clock) if is_own else given
            text = self._texts[key] = _Text(self._make(now, row_time), dialect, ())
        return text


def send(connection: Connection, *statements: str) -> None:
    """Send texts without values, as they are, in their turn."""
    if _is_direct(connection):
        raw = _pipelined(connection)
        for sql in statements:
            raw.ask(_bare(sql))
        return
    for sql in statements:
        execute(connection, sql, None)


def send_ahead(connection: Connection) -> None:
    """Let the database begin with what nobody has looked at yet, where it is held back."""
    if not _is_direct(connection):
        return
    try:
        _pipelined(connection).send_ahead()
    except BaseException as error:
        connection._handle_dbapi_exception(error, None, None, None, None)
        raise


_PIPELINED = "psycopg"
"""The driver whose connections are :class:`hms_bridge.backend.pipeline.PipelinedConnection`."""


def _is_direct(connection: Connection) -> bool:
    return connection.dialect.driver == _PIPELINED and not is_heard(connection)


def _pipelined(connection: Connection) -> Any:
    # The driver's own, without a way round: its interface is none of another kind.
    return connection.connection.dbapi_connection


@cache
def _bare(sql: str) -> PreparedText:
    return PreparedText(sql)


# These two are on the way of each statement, so they do by themselves what might be calls.
def _run(
    connection: Connection,
    fixed: FixedSql,
    values: Mapping[str, Any],
    *,
    is_looked_at: bool = False,
) -> Answer:
    dialect = connection.dialect
    text = fixed._texts.get((dialect.name, dialect.driver)) or fixed._make(dialect)
    return _send(connection, text, values, is_looked_at=is_looked_at)


def _send(
    connection: Connection, text: _Text, values: Mapping[str, Any], *, is_looked_at: bool = False
) -> Answer:
    """The rows, if it returns any, and how many it changed."""
    if text.prepared is not None and _is_direct(connection):
        try:
            numbered = text.numbered(values)
            answer = _pipelined(connection).ask(text.prepared, numbered, is_looked_at=is_looked_at)
        except BaseException as error:
            connection._handle_dbapi_exception(error, text.plain()[0], None, None, None)
            raise
        return _Awaited(connection, text, answer)
    sql, order = text.plain()
    named = {**text.given, **values}
    return execute(connection, sql, named if order is None else order(named))


@cache
def _numbering() -> Dialect:
    """The pipelined driver's dialect, which writes $1, $2 for values."""
    return postgresql.psycopg.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


def _compiled(statement: Executable, dialect: Dialect, columns: Sequence[str]) -> SQLCompiler:
    compiled = statement.compile(  # type: ignore[attr-defined]
        dialect=dialect, column_keys=list(columns) or None
    )
    assert isinstance(compiled, SQLCompiler)
    return compiled


def _require_plain(compiled: SQLCompiler, dialect: Dialect) -> None:
    """Raises TypeError for what the driver alone would not do as SQLAlchemy does it."""
    if compiled._bind_processors or compiled.post_compile_params:
        raise TypeError(f"a list or a value that is converted: {compiled}; run it with Core")
    for given in compiled._result_columns:
        if given.type.dialect_impl(dialect).result_processor(dialect, None) is not None:
            raise TypeError(f"{given.name} is converted: {compiled}; run it with Core")
