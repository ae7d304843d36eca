"""The one place where SQLite, PostgreSQL and MySQL/MariaDB differ.

Row locks need no function here: ``select(…).with_for_update()`` is left out on SQLite, where the
immediate transaction is the lock. Neither does ``column.is_not_distinct_from(other)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Table,
    Text,
    case,
    cast,
    extract,
    func,
    insert,
    literal,
    select,
    text,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import ReturningInsert

from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.clock import Clock, SystemClock


def is_sqlite(connection: Connection) -> bool:
    """Whether the database is SQLite."""
    return connection.dialect.name == "sqlite"


def is_postgresql(connection: Connection) -> bool:
    """Whether the database is PostgreSQL."""
    return connection.dialect.name == "postgresql"


def is_mysql(connection: Connection) -> bool:
    """Whether the database is MySQL or MariaDB."""
    return connection.dialect.name in ("mysql", "mariadb")


def keeps_time(connection: Connection, clock: Clock) -> bool:
    """Whether the database's own time counts, and not the given clock's: see
    :func:`now_expression`."""
    return isinstance(clock, SystemClock) and not is_sqlite(connection)


def now_expression(connection: Connection, clock: Clock) -> ColumnElement[int]:
    """The time in milliseconds, to be put into a statement; the same wherever it stands in it.

    The database's own time, so that several servers on one database agree; the given clock's on
    SQLite (one host), and wherever the clock is simulated.
    """
    if is_postgresql(connection) and isinstance(clock, SystemClock):
        return cast(func.floor(extract("epoch", func.statement_timestamp()) * 1000), BigInteger)
    if is_mysql(connection) and isinstance(clock, SystemClock):
        return cast(func.unix_timestamp(func.now(text("3"))) * 1000, BigInteger)
    return literal(clock.now_ms(), BigInteger)


def row_time_expression(connection: Connection, clock: Clock) -> ColumnElement[int]:
    """The time at which a row is made, in milliseconds: read by the database while it makes the
    row, so that nothing can hold up the statement between the two. See :func:`now_expression`.
    """
    if is_postgresql(connection) and isinstance(clock, SystemClock):
        return cast(func.floor(extract("epoch", func.clock_timestamp()) * 1000), BigInteger)
    if is_mysql(connection) and isinstance(clock, SystemClock):
        # SQLAlchemy's own func.sysdate drops its argument, and with it the milliseconds.
        return cast(func.unix_timestamp(text("SYSDATE(3)")) * 1000, BigInteger)
    return literal(clock.now_ms(), BigInteger)


def insert_generating_ids(
    connection: Connection,
    table: Table,
    key: Column[Any],
    rows: Sequence[Mapping[str, Any]],
    computed: Mapping[str, ColumnElement[Any]] | None = None,
) -> tuple[int, ...]:
    """Insert rows whose key the database generates; the keys, ascending.

    ``computed``: columns of every row that the database computes while it makes the row.
    """
    if not rows:
        return ()
    statement = insert(table).values(computed) if computed else insert(table)
    if connection.dialect.insert_returning:
        if len(rows) == 1:
            single = statement.values(rows[0]).returning(key)
            return (connection.execute(single).scalar_one(),)
        keys = connection.execute(statement.returning(key), list(rows)).scalars()
        return tuple(sorted(keys))
    return tuple(
        int(connection.execute(statement.values(row)).inserted_primary_key[0])  # type: ignore[index]
        for row in rows
    )


def advance_generated_txn_id(connection: Connection, next_id: int) -> bool:
    """Make ``next_id`` the next TXN_ID; false if ids up to there were given already.

    The caller holds ``lock_txns`` exclusively and has inserted the row ``next_id - 1``, which is
    enough for SQLite and MySQL; PostgreSQL's sequence does not look at rows.
    """
    if not is_postgresql(connection):
        return True
    last = connection.execute(select(last_txn_id(txn_sequence()))).scalar_one()
    if last is not None and last >= next_id:
        return False
    connection.execute(select(func.setval(_in_catalog(txn_sequence()), next_id, False)))
    return True


def txn_sequence() -> ColumnElement[str]:
    """The name of what TXN_IDs are drawn from; on PostgreSQL only."""
    return func.pg_get_serial_sequence(f'"{TXNS.name}"', TXNS.c.TXN_ID.name, type_=Text)


def next_txn_id(sequence: ColumnElement[str]) -> ColumnElement[int]:
    """The next TXN_ID, drawn where it stands; on PostgreSQL only."""
    return func.nextval(_in_catalog(sequence), type_=BigInteger)


def last_txn_id(sequence: ColumnElement[str]) -> ColumnElement[int]:
    """The last TXN_ID that was drawn, also by who has not committed; on PostgreSQL only."""
    return func.pg_sequence_last_value(_in_catalog(sequence), type_=BigInteger)


def _in_catalog(name: ColumnElement[str]) -> ColumnElement[Any]:
    return cast(name, postgresql.REGCLASS)


def or_fault(
    value: ColumnElement[int],
    condition: ColumnElement[bool],
    what: str,
    number: ColumnElement[int] | None = None,
) -> ColumnElement[int]:
    """The value if a condition on aggregates, or on a ``number`` that changes, holds; else the
    statement fails, and says ``what`` is not so, and the number (or how many rows there are). For
    who does not wait for the answer, with a commit behind the statement; on PostgreSQL only."""
    # What does not depend on rows or on such a number would be worked out, and fail, at once.
    counted = func.count() if number is None else number
    fault = literal(f"{what}: ", Text) + cast(counted, Text)
    return case((condition, value), else_=cast(fault, BigInteger))


def insert_if_missing(
    connection: Connection, table: Table, keys: Sequence[Column[Any]], row: Mapping[str, Any]
) -> bool:
    """Insert a row unless one with the same unique keys is there; whether it was inserted."""
    if is_mysql(connection):
        # Neither INSERT IGNORE (hides other errors) nor the count of an empty update can decide it.
        try:
            with connection.begin_nested():
                connection.execute(insert(table).values(row))
        except IntegrityError:
            return False
        return True
    statement = insert_unless_there(connection.dialect.name, table, keys)
    return connection.execute(statement, row).first() is not None


def insert_unless_there(
    dialect_name: str, table: Table, keys: Sequence[Column[Any]]
) -> ReturningInsert[Any]:
    """Gives a row if it inserts one; not for MySQL."""
    make = postgresql.insert if dialect_name == "postgresql" else sqlite.insert
    return make(table).on_conflict_do_nothing(index_elements=keys).returning(keys[0])


def insert_or_update(
    connection: Connection,
    table: Table,
    keys: Sequence[Column[Any]],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Insert rows, or overwrite those with the same unique keys; all rows name the same columns."""
    if not rows:
        return
    key_names = {key.name for key in keys}
    changed = [name for name in rows[0] if name not in key_names]
    if is_mysql(connection):
        replace = mysql.insert(table)
        new = {name: replace.inserted[name] for name in changed}
        connection.execute(replace.on_duplicate_key_update(new), list(rows))
    elif is_postgresql(connection):
        upsert = postgresql.insert(table)
        new = {name: upsert.excluded[name] for name in changed}
        connection.execute(upsert.on_conflict_do_update(index_elements=keys, set_=new), list(rows))
    else:
        merge = sqlite.insert(table)
        new = {name: merge.excluded[name] for name in changed}
        connection.execute(merge.on_conflict_do_update(index_elements=keys, set_=new), list(rows))


def null_safe_equals(column: ColumnElement[Any], value: Any) -> ColumnElement[bool]:
    """``column = value`` where None equals NULL; indexes stay usable."""
    return column.is_(None) if value is None else column == value
