"""Records of locks. Times are milliseconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from hms_bridge.model.ids import NO_TXN, LockId, TxnId
from hms_bridge.model.stored_enum import StoredEnum
from hms_bridge.model.target import EVERYTHING, Scope


class LockType(StoredEnum):
    """Kind of a lock: the number on the wire and the character in HIVE_LOCKS.HL_LOCK_TYPE."""

    SHARED_READ = (1, "r")
    SHARED_WRITE = (2, "w")
    EXCLUSIVE = (3, "e")
    EXCL_WRITE = (4, "x")


class LockLevel(IntEnum):
    """What a lock covers; the number stands on the wire."""

    DB = 1
    TABLE = 2
    PARTITION = 3


class LockState(StoredEnum):
    """State of a lock: the number on the wire and the character in HIVE_LOCKS.HL_LOCK_STATE."""

    ACQUIRED = (1, "a")
    WAITING = (2, "w")
    ABORT = (3, "")
    NOT_ACQUIRED = (4, "")


class DataOperation(StoredEnum):
    """What is done under a lock: the number on the wire, the character in TXN_COMPONENTS.

    COMPACT has no number.
    """

    SELECT = (1, "s")
    INSERT = (2, "i")
    UPDATE = (3, "u")
    DELETE = (4, "d")
    UNSET = (5, "")
    NO_TXN = (6, "")
    COMPACT = (0, "c")


CHANGES = (DataOperation.UPDATE, DataOperation.DELETE)
"""What two transactions must not both do to the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockComponent:
    """One thing to lock. ``operation`` and ``is_transactional`` are None where the client set
    nothing, which counts as a write of a transactional table."""

    type: LockType
    level: LockLevel
    scope: Scope
    operation: DataOperation | None = None
    is_transactional: bool | None = None
    is_dynamic_partition_write: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LockRequest:
    """Locks that are granted together or not at all. ``txn_id`` 0 means none."""

    components: tuple[LockComponent, ...]
    txn_id: TxnId = NO_TXN
    user: str
    host: str
    agent: str | None = None
    is_zero_wait_read: bool = False
    is_exclusive_ctas: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LockResponse:
    """The answer to lock and check_lock."""

    lock_id: LockId
    state: LockState
    error_message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LockFilter:
    """Which locks SHOW LOCKS lists; None means all."""

    scope: Scope = EVERYTHING
    txn_id: TxnId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LockInfo:
    """One line of SHOW LOCKS."""

    lock_id: LockId
    internal_id: int
    scope: Scope
    state: LockState
    type: LockType
    txn_id: TxnId
    last_heartbeat_ms: int
    acquired_at_ms: int | None
    user: str
    host: str
    agent: str | None = None
    blocked_by_lock_id: LockId | None = None
    blocked_by_internal_id: int | None = None


LockRow: TypeAlias = tuple[
    int, int, int, int, int | None, int | None, int | None,
    str, str | None, str | None, str, str, str, str, str | None,
]  # fmt: skip
"""A lock as it is stored, for lists of thousands: lock id, internal id, transaction, last heartbeat
and time of acquisition in ms, lock id and internal id of what blocks it; database, table,
partition, characters of state and type, user, host, agent."""

_STATES = {state.stored: state for state in (LockState.ACQUIRED, LockState.WAITING)}
_TYPES = {kind.stored: kind for kind in LockType}


def lock_state_of(letter: str) -> LockState:
    """What HL_LOCK_STATE says. A letter that has no meaning here counts as what keeps most away."""
    return _STATES.get(letter, LockState.ACQUIRED)


def lock_type_of(letter: str) -> LockType:
    """What HL_LOCK_TYPE says, in the same way."""
    return _TYPES.get(letter, LockType.EXCLUSIVE)


def lock_info(row: LockRow) -> LockInfo:
    """The record of a row."""
    lock_id, inner_id, txn_id, heartbeat_ms, acquired_ms, by_id, by_inner_id = row[:7]
    database, table, partition, state, kind, user, host, agent = row[7:]
    return LockInfo(
        lock_id=LockId(lock_id),
        internal_id=inner_id,
        scope=Scope(database, table, partition),
        state=lock_state_of(state),
        type=lock_type_of(kind),
        txn_id=TxnId(txn_id),
        last_heartbeat_ms=heartbeat_ms,
        acquired_at_ms=acquired_ms,
        user=user,
        host=host,
        agent=agent,
        blocked_by_lock_id=None if by_id is None else LockId(by_id),
        blocked_by_internal_id=by_inner_id,
    )
