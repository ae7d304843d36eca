"""Locks: granted all or none, first come first served (Hive: EnqueueLockFunction,
CheckLockFunction; docs/hive/transactions.md §14).

A request's id is taken and its rows are inserted while the counter's row lock is held, so all
smaller ids are seen and a larger one comes later. A check looks only at smaller ids, waiting or
acquired; they can only disappear. So two requests never both get what excludes the other, and
nobody is overtaken. There is no deadlock detection: clients stop asking, transactions time out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    String,
    Update,
    and_,
    bindparam,
    case,
    delete,
    or_,
    select,
    union_all,
    update,
)

from hms_bridge.backend.dialect import is_mysql, is_sqlite
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS
from hms_bridge.backend.sequences import ask_lock_ids
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError, NoSuchLockError, TxnOpenError
from hms_bridge.model.ids import MAX_ID, NO_TXN, LockId, TxnId
from hms_bridge.model.lock import (
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    lock_state_of,
    lock_type_of,
)
from hms_bridge.model.target import Scope
from hms_bridge.txn.components import track_each, track_locked
from hms_bridge.txn.heartbeat import ask_heartbeat
from hms_bridge.txn.lock_rules import BLOCKERS, LockTarget, blocks
from hms_bridge.txn.names import lower_partition, require_lock_fits
from hms_bridge.txn.txn_state import LockedTxns

_L = HIVE_LOCKS.c
_LOCK_ID = bindparam("lock_id", type_=BigInteger)
_TXN_ID = bindparam("txn_id", type_=BigInteger)


class _LockRow(NamedTuple):
    """What is asked of a lock, in the order of :data:`_LOCKS`."""

    HL_LOCK_EXT_ID: int
    HL_LOCK_INT_ID: int
    HL_TXNID: int
    HL_DB: str
    HL_TABLE: str | None
    HL_PARTITION: str | None
    HL_LOCK_STATE: str
    HL_LOCK_TYPE: str


_LOCKS = select(*(_L[name] for name in _LockRow._fields))
_ORDER = (_L.HL_LOCK_EXT_ID, _L.HL_LOCK_INT_ID)
_OF_REQUEST = FixedSql(_LOCKS.where(_L.HL_LOCK_EXT_ID == _LOCK_ID).order_by(*_ORDER))
_INSERT = FixedInsert(HIVE_LOCKS)
_GIVE_BACK = FixedSql(
    delete(HIVE_LOCKS).where(
        _L.HL_LOCK_EXT_ID == _LOCK_ID,
        or_(_L.HL_TXNID == NO_TXN, _L.HL_LOCK_STATE == LockState.WAITING.stored),
    )
)
_RECORD_BLOCKER = FixedSql(
    update(HIVE_LOCKS)
    .where(
        _L.HL_LOCK_EXT_ID == _LOCK_ID,
        _L.HL_LOCK_INT_ID == bindparam("internal_id", type_=BigInteger),
    )
    .values(
        HL_BLOCKEDBY_EXT_ID=bindparam("by_lock_id", type_=BigInteger),
        HL_BLOCKEDBY_INT_ID=bindparam("by_internal_id", type_=BigInteger),
    )
)


def _acquire(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    return (
        update(HIVE_LOCKS)
        .where(_L.HL_LOCK_EXT_ID == _LOCK_ID)
        .values(
            HL_LOCK_STATE=LockState.ACQUIRED.stored,
            HL_ACQUIRED_AT=now,
            # Those of a transaction live by its heartbeat.
            HL_LAST_HEARTBEAT=case((_L.HL_TXNID == NO_TXN, now), else_=0),
            HL_BLOCKEDBY_EXT_ID=None,
            HL_BLOCKEDBY_INT_ID=None,
        )
    )


_ACQUIRE = TimedSql(_acquire)
# A transaction never waits for itself; a request of none does for others of none.
_IS_EARLIER = and_(_L.HL_LOCK_EXT_ID < _LOCK_ID, or_(_TXN_ID == NO_TXN, _L.HL_TXNID != _TXN_ID))


@cache
def _earlier_in(kinds: tuple[str, ...], *, is_whole_database: bool) -> FixedSql:
    """Earlier locks of these kinds in one database, or those that one of its tables may meet.

    A part for each kind: PostgreSQL then finds it by HMSB_LOCKS_OF_TYPE, also where it made its
    plan of a table that was empty, and does not go through ten thousand locks of other kinds.
    """
    here = [_IS_EARLIER, _L.HL_DB == bindparam("database", type_=String)]
    if not is_whole_database:
        table = bindparam("table", type_=String)
        here.append(or_(_L.HL_TABLE.is_(None), _L.HL_TABLE == table))
    parts = union_all(*(_LOCKS.where(*here, _L.HL_LOCK_TYPE == kind) for kind in kinds))
    columns = parts.selected_columns
    return FixedSql(parts.order_by(columns.HL_LOCK_EXT_ID, columns.HL_LOCK_INT_ID))


def lock(work: Work, request: LockRequest) -> LockResponse:
    """Enqueue a request and try it: ACQUIRED or WAITING.

    NOT_ACQUIRED, and nothing enqueued, if it would wait although it is a read that must not, or a
    CREATE TABLE AS that must be alone. What the locks say is written is remembered with the
    transaction. Raises NoSuchTxnError and TxnAbortedError (also for a committed transaction, where
    Hive grants the lock), MetaError for a request without components, or one of them without a
    database, and for texts that do not fit.
    """
    connection = work.connection
    if not request.components:
        raise MetaError("a lock request without components; name what to lock")
    components = tuple(lowered(component) for component in request.components)
    require_lock_fits(request)
    # Before an id is taken: who waits for the transaction's row must not hold the counter, which
    # everybody needs.
    owner = LockedTxns(connection, [request.txn_id]) if request.txn_id else None
    if owner is not None:
        track_locked(connection, request.txn_id, components)
    ids = ask_lock_ids(work)
    targets = [(number, _target(component)) for number, component in enumerate(components, start=1)]
    # Whoever holds the counter is the last: all others that are there are earlier.
    held = _ask_earlier(connection, MAX_ID, request.txn_id, targets)
    if owner is not None:
        owner.require_open(request.txn_id)
    lock_id, now = ids()
    blocked = _first_of(connection, _read(connection, held), targets)
    refusal = _refusal(request, blocked) if blocked else None
    if refusal is not None:
        return LockResponse(lock_id=lock_id, state=LockState.NOT_ACQUIRED, error_message=refusal)
    _enqueue(connection, lock_id, request, components, blocked, now)
    state = LockState.WAITING if blocked else LockState.ACQUIRED
    return LockResponse(lock_id=lock_id, state=state)


def ask_each(
    work: Work, requests: Sequence[LockRequest]
) -> Callable[[], Sequence[LockResponse]] | None:
    """As :func:`lock` for each, in this order, of requests that :func:`may_come_together` says yes
    to, for one table; None, and nothing is done, where each must come by itself. Nothing more is
    locked when the responses are looked at; that raises as :func:`lock` does for any of them."""
    connection = work.connection
    txn_ids = [request.txn_id for request in requests]
    # On SQLite a statement more is cheaper than one for several.
    if is_sqlite(connection) or (is_mysql(connection) and len(set(txn_ids)) < len(txn_ids)):
        return None
    components = [lowered(request.components[0]) for request in requests]
    for request in requests:
        require_lock_fits(request)
    owners = LockedTxns(connection, sorted(set(txn_ids)))
    track_each(connection, zip(txn_ids, components, strict=True))
    ids = ask_lock_ids(work, len(requests))
    targets = [(number, _target(component)) for number, component in enumerate(components)]
    there = _ask_earlier(connection, MAX_ID, NO_TXN, targets)

    def look() -> Sequence[LockResponse]:
        for txn_id in txn_ids:
            owners.require_open(txn_id)
        first, now = ids()
        return _grant_each(connection, requests, components, _read(connection, there), first, now)

    return look


def _grant_each(
    connection: Connection,
    requests: Sequence[LockRequest],
    components: Sequence[LockComponent],
    held: list[tuple[LockTarget, _LockRow]],
    first: LockId,
    now: int,
) -> Sequence[LockResponse]:
    """Each after those before it; ``held`` grows by those that may be in the way of one of them."""
    waiting: dict[LockId, _Blocked] = {}
    blockers = {kind for component in components for kind in BLOCKERS[component.type]}
    enqueued = []
    for number, (request, component) in enumerate(zip(requests, components, strict=True)):
        lock_id, target = LockId(first + number), _compared(connection, _target(component))
        others = [(other, row) for other, row in held if request.txn_id != row.HL_TXNID]
        blocked = _first_of(connection, others, [(1, target)])
        if blocked is not None:
            waiting[lock_id] = blocked
        new = _rows(lock_id, request, [component], blocked, now)
        if target.type in blockers:
            held += [(target, _LockRow(*(row[name] for name in _LockRow._fields))) for row in new]
        enqueued += new
    _INSERT.put(connection, enqueued)
    for lock_id, blocked in waiting.items():
        _record_blocker(connection, lock_id, blocked)
    return [
        LockResponse(
            lock_id=LockId(first + number),
            state=LockState.WAITING if first + number in waiting else LockState.ACQUIRED,
        )
        for number in range(len(requests))
    ]


def may_come_together(request: LockRequest) -> bool:
    """Whether it is a transaction's, for one thing, and is left waiting where it has to."""
    is_left_waiting = not (request.is_zero_wait_read or request.is_exclusive_ctas)
    return bool(request.txn_id) and len(request.components) == 1 and is_left_waiting


def check_lock(work: Work, lock_id: LockId) -> LockResponse:
    """Try a request again, and keep it alive.

    Raises NoSuchLockError; NoSuchTxnError and TxnAbortedError if its transaction has ended.
    """
    connection = work.connection
    rows = [_LockRow(*row) for row in _OF_REQUEST.all(connection, lock_id=lock_id)]
    if not rows:
        raise NoSuchLockError(f"No such lock lockid:{lock_id}")
    txn_id = TxnId(rows[0].HL_TXNID)
    # Also while it waits: a client that asks is alive.
    require_alive = ask_heartbeat(work, txn_id, LockId(0) if txn_id else lock_id)
    if all(row.HL_LOCK_STATE == LockState.ACQUIRED.stored for row in rows):
        require_alive()
        return LockResponse(lock_id=lock_id, state=LockState.ACQUIRED)
    targets = [(row.HL_LOCK_INT_ID, _row_target(row)) for row in rows]
    there = _ask_earlier(connection, lock_id, txn_id, targets)
    require_alive()
    blocked = _first_of(connection, _read(connection, there), targets)
    if blocked is not None:
        _record_blocker(connection, lock_id, blocked)
        return LockResponse(lock_id=lock_id, state=LockState.WAITING)
    # Not if somebody has given it back meanwhile.
    if _ACQUIRE.change(work, lock_id=lock_id):
        return LockResponse(lock_id=lock_id, state=LockState.ACQUIRED)
    raise NoSuchLockError(f"No such lock lockid:{lock_id}")


def unlock(connection: Connection, lock_id: LockId) -> None:
    """Give a request back: of no transaction, or still waiting. Nothing if it is not there.

    Raises TxnOpenError for acquired locks of a transaction, which only its end releases.
    """
    if _GIVE_BACK.change(connection, lock_id=lock_id):
        return
    row = _OF_REQUEST.first(connection, lock_id=lock_id)
    if row is not None:
        raise TxnOpenError(
            "Unlocking locks associated with transaction not permitted.  "
            + _describe(_LockRow(*row))
        )


@dataclass(frozen=True, slots=True)
class _Blocked:
    internal_id: int
    requested: LockType
    by: _LockRow


def lowered(component: LockComponent) -> LockComponent:
    """With names as they are stored. Raises MetaError for one that names no database."""
    given = component.scope
    if not given.database:
        raise MetaError("a lock request that names no database; name what to lock")
    scope = Scope(
        given.database.lower(),
        given.table.lower() if given.table else None,
        lower_partition(given.partition),
    )
    return component if scope == given else replace(component, scope=scope)


def _target(component: LockComponent) -> LockTarget:
    return LockTarget(component.type, component.scope)


def _row_target(row: _LockRow) -> LockTarget:
    kind = lock_type_of(row.HL_LOCK_TYPE)
    return LockTarget(kind, Scope(row.HL_DB, row.HL_TABLE, row.HL_PARTITION))


def _enqueue(
    connection: Connection,
    lock_id: LockId,
    request: LockRequest,
    components: Sequence[LockComponent],
    blocked: _Blocked | None,
    now: int,
) -> None:
    _INSERT.put(connection, _rows(lock_id, request, components, blocked, now))
    if blocked:
        _record_blocker(connection, lock_id, blocked)


def _rows(
    lock_id: LockId,
    request: LockRequest,
    components: Sequence[LockComponent],
    blocked: _Blocked | None,
    now: int,
) -> list[dict[str, Any]]:
    state = LockState.WAITING if blocked else LockState.ACQUIRED
    return [
        {
            "HL_LOCK_EXT_ID": lock_id,
            "HL_LOCK_INT_ID": number,
            "HL_TXNID": request.txn_id,
            "HL_DB": component.scope.database,
            "HL_TABLE": component.scope.table,
            "HL_PARTITION": component.scope.partition,
            "HL_LOCK_STATE": state.stored,
            "HL_LOCK_TYPE": component.type.stored,
            "HL_LAST_HEARTBEAT": 0 if request.txn_id else now,
            "HL_ACQUIRED_AT": None if blocked else now,
            "HL_USER": request.user,
            "HL_HOST": request.host,
            "HL_AGENT_INFO": request.agent,
        }
        for number, component in enumerate(components, start=1)
    ]


def _first_of(
    connection: Connection,
    held: Sequence[tuple[LockTarget, _LockRow]],
    targets: Sequence[tuple[int, LockTarget]],
) -> _Blocked | None:
    """The first component that has to wait, and for which lock."""
    for number, asked in targets:
        target = _compared(connection, asked)
        for other, row in held:
            if blocks(other, target):
                return _Blocked(number, target.type, row)
    return None


def _compared(connection: Connection, target: LockTarget) -> LockTarget:
    return _without_blanks(target) if is_mysql(connection) else target


def _without_blanks(target: LockTarget) -> LockTarget:
    """As MySQL compares names, by which rows are found; so Hive's join of locks does there."""
    scope = target.scope
    names = (scope.database, scope.table, scope.partition)
    if not any(name is not None and name.endswith(" ") for name in names):
        return target
    return replace(target, scope=Scope(*(name and name.rstrip(" ") for name in names)))


def _ask_earlier(
    connection: Connection,
    lock_id: int,
    txn_id: TxnId,
    targets: Sequence[tuple[int, LockTarget]],
) -> Callable[[], Sequence[Sequence[Any]]]:
    """Locks that may be in the way: database and table only narrow down, `blocks` decides."""
    kinds = tuple(sorted({kind.stored for _, target in targets for kind in BLOCKERS[target.type]}))
    databases = sorted({target.scope.database or "" for _, target in targets})
    tables = sorted({target.scope.table for _, target in targets if target.scope.table})
    is_whole = any(target.is_whole_database for _, target in targets)
    given: dict[str, Any] = {"lock_id": lock_id, "txn_id": txn_id}
    # Nearly all requests are of one table, and under load a statement built anew costs more than
    # its rows: this one is compiled once a database.
    if len(databases) == 1 and (is_whole or len(tables) == 1):
        given |= {"database": databases[0]} | ({} if is_whole else {"table": tables[0]})
        answer = _earlier_in(kinds, is_whole_database=is_whole).later(connection, **given)
        return lambda: answer.rows
    here = [_IS_EARLIER, _L.HL_DB.in_(databases), _L.HL_LOCK_TYPE.in_(kinds)]
    if not is_whole:
        here.append(or_(_L.HL_TABLE.is_(None), _L.HL_TABLE.in_(tables)))
    rows = connection.execute(_LOCKS.where(and_(*here)).order_by(*_ORDER), given).all()
    return lambda: rows


def _read(
    connection: Connection, rows: Callable[[], Sequence[Sequence[Any]]]
) -> list[tuple[LockTarget, _LockRow]]:
    """Locks, each with what it is compared by."""
    earlier = [_LockRow(*row) for row in rows()]
    return [(_compared(connection, _row_target(row)), row) for row in earlier]


def _record_blocker(connection: Connection, lock_id: LockId, blocked: _Blocked) -> None:
    _RECORD_BLOCKER.later(
        connection,
        lock_id=lock_id,
        internal_id=blocked.internal_id,
        by_lock_id=blocked.by.HL_LOCK_EXT_ID,
        by_internal_id=blocked.by.HL_LOCK_INT_ID,
    )


def _refusal(request: LockRequest, blocked: _Blocked) -> str | None:
    """Why the request is not left waiting; None if it is."""
    if not request.txn_id:
        return None
    if request.is_zero_wait_read and blocked.requested is LockType.SHARED_READ:
        return (
            "Unable to acquire read lock due to an existing exclusive lock "
            f"{{{_describe(blocked.by)}}}"
        )
    if request.is_exclusive_ctas:
        return (
            "the table of this CREATE TABLE AS is locked already "
            f"{{{_describe(blocked.by)}}}; try again when that is over"
        )
    return None


def _describe(row: _LockRow) -> str:
    table, partition = row.HL_TABLE or "null", row.HL_PARTITION or "null"
    return (
        f"lockid:{row.HL_LOCK_EXT_ID} intLockId:{row.HL_LOCK_INT_ID} txnid:{row.HL_TXNID} "
        f"db:{row.HL_DB} table:{table} partition:{partition} "
        f"state:{lock_state_of(row.HL_LOCK_STATE).name} "
        f"type:{lock_type_of(row.HL_LOCK_TYPE).name}"
    )
