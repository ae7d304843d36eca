"""Who works on what, in SQL: a lease has an owner, and runs out when its owner is silent.

The owner is a text that nobody else has, so that whoever lost a lease finds that it is not his any
more (a fencing token). Times are those that callers give; a lease from the future (a clock that
stepped back) counts as one that ran out.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    String,
    bindparam,
    delete,
    select,
    update,
)

from changemanager.manifest import LEASE_MS
from hms_bridge.archive.digest import digest
from hms_bridge.backend.dialect import keeps_time
from hms_bridge.backend.fixed_sql import FixedInsertIfMissing, FixedSql
from hms_bridge.backend.schema.archive_tables import HMSB_LEASE
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.backend.work import Work

_ROW = HMSB_LEASE.c
_NAMED = _ROW.LEASE_DIGEST == bindparam("lease", type_=String)
_HELD = FixedSql(select(_ROW.OWNER, _ROW.HELD_AT_MS).where(_NAMED).with_for_update())
_HELD_ONES = TextKeyedSql(
    _ROW.LEASE_DIGEST,
    lambda is_meant: (
        select(_ROW.LEASE_DIGEST, _ROW.OWNER, _ROW.HELD_AT_MS)
        .where(is_meant)
        .order_by(_ROW.LEASE_DIGEST)
        .with_for_update()
    ),
)
_KEPT = FixedSql(
    update(HMSB_LEASE)
    .where(_NAMED)
    .values(
        OWNER=bindparam("owner", type_=String), HELD_AT_MS=bindparam("now_ms", type_=BigInteger)
    )
)
_ENDED = FixedSql(delete(HMSB_LEASE).where(_NAMED, _ROW.OWNER == bindparam("owner", type_=String)))

_TAKEN = FixedInsertIfMissing(HMSB_LEASE, [_ROW.LEASE_DIGEST])


def lease_time_ms(work: Work, given_ms: int) -> int:
    """The time by which leases go: of a database that has a clock that one, as of two hosts one may
    be ahead, and would take what the other one holds; else what the caller gives."""
    return work.now_ms if keeps_time(work.connection, work.clock) else given_ms


def take(connection: Connection, name: str, owner: str, now_ms: int) -> bool:
    """Take or keep a lease; False, and no change, if another owner's has not run out."""
    return bool(take_all(connection, [name], owner, now_ms))


def take_all(
    connection: Connection, names: Collection[str], owner: str, now_ms: int
) -> frozenset[str]:
    """Take or keep leases; which, without those of other owners that have not run out."""
    # In the order of their keys: two that take several do not wait for each other.
    keys = {digest(name): name for name in sorted(names, key=digest)}
    held = {row[0]: row[1:] for row in _HELD_ONES.all(connection, list(keys))}
    new = [key for key in keys if key not in held]
    rows = [
        {"LEASE_DIGEST": key, "NAME": keys[key], "OWNER": owner, "HELD_AT_MS": now_ms}
        for key in new
    ]
    is_taken = dict(zip(new, _TAKEN.put_each(connection, rows), strict=True))
    for key, (other, held_at_ms) in held.items():
        is_taken[key] = owner == other or _is_over(held_at_ms, now_ms)
        if is_taken[key]:
            _KEPT.later(connection, lease=key, owner=owner, now_ms=now_ms)
    return frozenset(name for key, name in keys.items() if is_taken[key])


def renew(connection: Connection, name: str, owner: str, now_ms: int) -> bool:
    """A sign of life of the owner; False if the lease is not his (any more)."""
    if not is_owned(connection, name, owner):
        return False
    _KEPT.change(connection, lease=digest(name), owner=owner, now_ms=now_ms)
    return True


def is_owned(connection: Connection, name: str, owner: str) -> bool:
    """Whether a lease is an owner's, even if it has run out; held until the transaction ends."""
    held = _held(connection, name)
    return held is not None and held[0] == owner


def owner_of(connection: Connection, name: str) -> str | None:
    """Who has a lease, even if it has run out."""
    return connection.scalar(select(_ROW.OWNER).where(_is(name)))


def is_free(connection: Connection, name: str, now_ms: int) -> bool:
    """Whether anybody may take it."""
    row = connection.execute(select(HMSB_LEASE).where(_is(name))).first()
    return row is None or _is_over(row.HELD_AT_MS, now_ms)


def end(connection: Connection, name: str, owner: str | None = None) -> None:
    """Give a lease back, or take it away from whoever has it."""
    if owner is None:
        connection.execute(delete(HMSB_LEASE).where(_is(name)))
        return
    _ENDED.change(connection, lease=digest(name), owner=owner)


def end_all(connection: Connection, names: Collection[str], owner: str) -> None:
    """Give back those that are the owner's."""
    for key in sorted(map(digest, names)):
        _ENDED.later(connection, lease=key, owner=owner)


def forget(connection: Connection, before_ms: int) -> int:
    """Drop leases of which nothing was heard since a time; how many."""
    return connection.execute(delete(HMSB_LEASE).where(_ROW.HELD_AT_MS < before_ms)).rowcount


def _held(connection: Connection, name: str) -> tuple[str, int] | None:
    """The owner, and when he was last heard of; held until the transaction ends."""
    row = _HELD.first(connection, lease=digest(name))
    return None if row is None else (row[0], row[1])


def _is(name: str) -> ColumnElement[bool]:
    return _ROW.LEASE_DIGEST == digest(name)


def _is_over(held_at_ms: int, now_ms: int) -> bool:
    return not -LEASE_MS <= now_ms - held_at_ms <= LEASE_MS
