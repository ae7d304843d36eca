"""How a verb holds the catalog rows that it is about to change, or counts on.

Deciding and then changing must see the same rows: a verb that changes an object holds its row
alone; one that adds something below an object shares it, so that the object stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, select


class RowLock(Enum):
    """How a row is held until the transaction ends."""

    NONE = "none"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


def hold(
    connection: Connection, key: Column[Any], where: ColumnElement[bool], lock: RowLock
) -> Collection[Any] | None:
    """Hold the rows that match, in the order of their keys, so that nobody waits in a ring; their
    keys. On SQLite the write transaction does it already: None, as without a lock."""
    if lock is RowLock.NONE or connection.dialect.name == "sqlite":
        return None
    rows = select(key).where(where).order_by(key)
    return frozenset(connection.scalars(rows.with_for_update(read=lock is RowLock.SHARED)))


def read_held(
    connection: Connection,
    key: Column[Any],
    where: ColumnElement[bool],
    lock: RowLock,
    read: Callable[[], Sequence[Row[Any]]],
) -> Sequence[Row[Any]]:
    """What ``read`` finds of the rows that match, all of them held. One that comes between the
    lock and the read is not yet: another process could change it, or drop it, at the same time."""
    while True:
        held = hold(connection, key, where, lock)
        rows = read()
        if held is None or all(getattr(row, key.name) in held for row in rows):
            return rows


def select_held(
    connection: Connection, statement: Select[Any], key: Column[Any], lock: RowLock
) -> Sequence[Row[Any]]:
    """The same of one statement, which says which rows match."""
    where = statement.whereclause
    assert where is not None
    return read_held(connection, key, where, lock, lambda: connection.execute(statement).all())
