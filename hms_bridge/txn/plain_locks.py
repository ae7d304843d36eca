"""Locks of tables that nothing is in the way of, on PostgreSQL in one go
(:mod:`hms_bridge.txn.locks` has the rules, and all other locks)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    bindparam,
    column,
    exists,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
)

from hms_bridge.backend.dialect import or_fault
from hms_bridge.backend.fixed_sql import TimedSql, json_rows
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, NEXT_LOCK_ID
from hms_bridge.backend.sequences import ask_lock_ids
from hms_bridge.backend.work import Work
from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import LockRequest, LockResponse, LockState, LockType
from hms_bridge.txn.components import track_each, track_locked
from hms_bridge.txn.foresight import SHARING, Foresight
from hms_bridge.txn.lock_rules import BLOCKERS
from hms_bridge.txn.locks import lowered
from hms_bridge.txn.names import require_lock_fits
from hms_bridge.txn.txn_state import LockedTxns, is_open

_L = HIVE_LOCKS.c
_GIVEN = (
    "HL_TXNID",
    "HL_DB",
    "HL_TABLE",
    "HL_PARTITION",
    "HL_LOCK_TYPE",
    "HL_USER",
    "HL_HOST",
    "HL_AGENT_INFO",
)
_PLACE = column("place", BigInteger)
_COUNT = bindparam("count", type_=BigInteger)


def expect_locks(
    work: Work, foresight: Foresight, requests: Sequence[LockRequest]
) -> Callable[[], Sequence[LockResponse]] | None:
    """As :func:`hms_bridge.txn.locks.ask_each`, where all are granted; else the statement fails,
    when it is done. None, and nothing is asked, where that is not likely, or where some may be in
    the way of others."""
    components = [lowered(request.components[0]) for request in requests]
    scope, types = components[0].scope, {component.type for component in components}
    if scope.database is None or scope.table is None or not types <= SHARING:
        return None
    for request in requests:
        require_lock_fits(request)
    if not foresight.is_free(scope.database, scope.table, types):
        return None
    connection = work.connection
    txn_ids = [request.txn_id for request in requests]
    LockedTxns(connection, sorted(set(txn_ids)))
    is_single = len(requests) == 1
    if is_single:
        track_locked(connection, txn_ids[0], components)
    else:
        track_each(connection, zip(txn_ids, components, strict=True))
    ids = ask_lock_ids(work, len(requests))
    rows = [
        {
            "HL_TXNID": request.txn_id,
            "HL_DB": component.scope.database,
            "HL_TABLE": component.scope.table,
            "HL_PARTITION": component.scope.partition,
            "HL_LOCK_TYPE": component.type.stored,
            "HL_USER": request.user,
            "HL_HOST": request.host,
            "HL_AGENT_INFO": request.agent,
        }
        for request, component in zip(requests, components, strict=True)
    ]
    given: dict[str, Any] = rows[0]
    if not is_single:
        placed = [{**row, _PLACE.name: place} for place, row in enumerate(rows)]
        given = {"rows": json.dumps(placed)}
    grant = _grant(_in_the_way(types), is_single=is_single)
    grant.later(work, count=len(requests), **given)

    def look() -> Sequence[LockResponse]:
        first, _ = ids()
        return [
            LockResponse(lock_id=LockId(first + place), state=LockState.ACQUIRED)
            for place in range(len(requests))
        ]

    return look


def _in_the_way(types: set[LockType]) -> tuple[str, ...]:
    return tuple(sorted({kind.stored for wanted in types for kind in BLOCKERS[wanted]}))


@cache
def _grant(kinds: tuple[str, ...], *, is_single: bool) -> TimedSql:
    """Fails unless all are of open transactions, and nobody else's lock of these kinds is there
    that they may meet. The caller has taken the last ids of the counter, in a statement before: so
    this one sees all locks that were asked for earlier, whatever it had to wait for."""

    def make(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Select[Any]:
        given = _one() if is_single else json_rows("rows", HIVE_LOCKS, _GIVEN, _PLACE)
        rows = {
            "HL_LOCK_EXT_ID": NEXT_LOCK_ID.c.NL_NEXT - _COUNT + given.c.place,
            "HL_LOCK_INT_ID": literal(1, Integer),
            "HL_LOCK_STATE": literal(LockState.ACQUIRED.stored, _L.HL_LOCK_STATE.type),
            # Those of a transaction live by its heartbeat.
            "HL_LAST_HEARTBEAT": literal(0, BigInteger),
            "HL_ACQUIRED_AT": now,
            **{name: given.c[name] for name in _GIVEN},
        }
        granted = (
            insert(HIVE_LOCKS)
            .from_select(
                list(rows),
                select(*rows.values())
                .select_from(given)
                .join(NEXT_LOCK_ID, literal_column("true"))
                .where(
                    is_open(given.c.HL_TXNID),
                    *(~_is_there(kind, given) for kind in kinds),
                ),
            )
            .returning(_L.HL_LOCK_EXT_ID)
            .cte("granted")
        )
        are_all = func.count() == _COUNT
        return select(or_fault(func.count(), are_all, "a lock is not granted at once")).select_from(
            granted
        )

    return TimedSql(make)


def _one() -> FromClause:
    values = [bindparam(name, type_=_L[name].type).label(name) for name in _GIVEN]
    return select(*values, literal(0, BigInteger).label(_PLACE.name)).subquery("given")


def _is_there(kind: str, given: FromClause) -> ColumnElement[bool]:
    """A lock of a kind, of another transaction. Each kind by itself: see ``locks._earlier_in``.

    Of the database and table that a row names, not of parameters: of these PostgreSQL makes a plan
    each time, as it takes one that knows them for a better one.
    """
    held = HIVE_LOCKS.alias(f"held_{kind}").c
    return exists().where(
        held.HL_DB == given.c.HL_DB,
        held.HL_LOCK_TYPE == literal_column(f"'{kind}'"),
        or_(held.HL_TABLE.is_(None), held.HL_TABLE == given.c.HL_TABLE),
        held.HL_TXNID != given.c.HL_TXNID,
    )
