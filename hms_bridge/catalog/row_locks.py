"""How a verb holds the catalog rows that it is about to change, or counts on.

Deciding and then changing must see the same rows: a verb that changes an object holds its row
alone; one that adds something below an object shares it, so that the object stays.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, Connection, select


class RowLock(Enum):
    """How a row is held until the transaction ends."""

    NONE = "none"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


def hold(
    connection: Connection, key: ColumnElement[Any], where: ColumnElement[bool], lock: RowLock
) -> None:
    """Hold the rows that match, in the order of their keys, so that nobody waits in a ring. On
    SQLite the write transaction does it already."""
    if lock is RowLock.NONE or connection.dialect.name == "sqlite":
        return
    rows = select(key).where(where).order_by(key)
    connection.execute(rows.with_for_update(read=lock is RowLock.SHARED)).all()
