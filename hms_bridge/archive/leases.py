"""Who works on what, in SQL: a lease has an owner, and runs out when its owner is silent.

The owner is a text that nobody else has, so that whoever lost a lease finds that it is not his any
more (a fencing token). Times are those that callers give; a lease from the future (a clock that
stepped back) counts as one that ran out.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, select, update

from changemanager.manifest import LEASE_MS
from hms_bridge.archive.digest import digest
from hms_bridge.backend.dialect import insert_if_missing
from hms_bridge.backend.schema.archive_tables import HMSB_LEASE

_ROW = HMSB_LEASE.c


def take(connection: Connection, name: str, owner: str, now_ms: int) -> bool:
    """Take or keep a lease; False, and no change, if another owner's has not run out."""
    row = _held(connection, name)
    if row is None:
        values = {
            "LEASE_DIGEST": digest(name),
            "NAME": name,
            "OWNER": owner,
            "HELD_AT_MS": now_ms,
        }
        return insert_if_missing(connection, HMSB_LEASE, [_ROW.LEASE_DIGEST], values)
    if owner != row.OWNER and not _is_over(row, now_ms):
        return False
    connection.execute(update(HMSB_LEASE).where(_is(name)).values(OWNER=owner, HELD_AT_MS=now_ms))
    return True


def renew(connection: Connection, name: str, owner: str, now_ms: int) -> bool:
    """A sign of life of the owner; False if the lease is not his (any more)."""
    if not is_owned(connection, name, owner):
        return False
    connection.execute(update(HMSB_LEASE).where(_is(name)).values(HELD_AT_MS=now_ms))
    return True


def is_owned(connection: Connection, name: str, owner: str) -> bool:
    """Whether a lease is an owner's, even if it has run out; held until the transaction ends."""
    row = _held(connection, name)
    return row is not None and row.OWNER == owner


def owner_of(connection: Connection, name: str) -> str | None:
    """Who has a lease, even if it has run out."""
    return connection.scalar(select(_ROW.OWNER).where(_is(name)))


def is_free(connection: Connection, name: str, now_ms: int) -> bool:
    """Whether anybody may take it."""
    row = connection.execute(select(HMSB_LEASE).where(_is(name))).first()
    return row is None or _is_over(row, now_ms)


def end(connection: Connection, name: str, owner: str | None = None) -> None:
    """Give a lease back, or take it away from whoever has it."""
    condition = _is(name) if owner is None else _is(name) & (_ROW.OWNER == owner)
    connection.execute(delete(HMSB_LEASE).where(condition))


def forget(connection: Connection, before_ms: int) -> int:
    """Drop leases of which nothing was heard since a time; how many."""
    return connection.execute(delete(HMSB_LEASE).where(_ROW.HELD_AT_MS < before_ms)).rowcount


def _held(connection: Connection, name: str) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(select(HMSB_LEASE).where(_is(name)).with_for_update()).first()


def _is(name: str) -> ColumnElement[bool]:
    return _ROW.LEASE_DIGEST == digest(name)


def _is_over(row: Row[*tuple[Any, ...]], now_ms: int) -> bool:
    return not -LEASE_MS <= now_ms - row.HELD_AT_MS <= LEASE_MS
