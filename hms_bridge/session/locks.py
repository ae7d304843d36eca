"""Locks of a transaction: what readers ask for, and how long one waits."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.clock import Clock
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockLevel,
    LockState,
    LockType,
)
from hms_bridge.session.transaction import Transaction

_FIRST_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 2.0


def read_lock(table: Table, partition_name: str | None = None) -> LockComponent:
    """The lock of who reads a table, or one partition."""
    return LockComponent(
        type=LockType.SHARED_READ,
        level=LockLevel.PARTITION if partition_name else LockLevel.TABLE,
        database_name=table.database_name,
        table_name=table.name,
        partition_name=partition_name,
        operation=DataOperation.SELECT,
        is_transactional=True,
    )


def acquire(transaction: Transaction, clock: Clock, locks: Sequence[LockComponent]) -> None:
    """Wait for the locks. Raises DmlError, with who holds them, if they are not granted in time."""
    metastore, wait_seconds = transaction.metastore, transaction.client.lock_wait_seconds
    answer = transaction.lock(locks)
    deadline_ms = clock.now_ms() + int(wait_seconds * 1000)
    pause_seconds = _FIRST_PAUSE_SECONDS
    while answer.state is LockState.WAITING:
        if clock.now_ms() >= deadline_ms:
            raise DmlError(_who_blocks(metastore, answer.lock_id, wait_seconds))
        clock.sleep_seconds(pause_seconds)
        pause_seconds = min(pause_seconds * 2, _PAUSE_SECONDS_MAX)
        answer = metastore.check_lock(answer.lock_id)
    if answer.state is not LockState.ACQUIRED:
        raise DmlError(answer.error_message or f"the locks were not granted: {answer.state.name}")


def _who_blocks(metastore: Metastore, lock_id: LockId, waited_seconds: float) -> str:
    listed = metastore.show_locks(LockFilter())
    own = next(
        (lock for lock in listed if lock.lock_id == lock_id and lock.blocked_by_lock_id), None
    )
    text = f"the locks were not granted in {waited_seconds:g} s"
    if own is None:
        return f"{text}; see hms-bridge locks"
    blocker = next((lock for lock in listed if lock.lock_id == own.blocked_by_lock_id), None)
    who = f", held by {blocker.user}@{blocker.host}" if blocker else ""
    owner = f" of transaction {blocker.txn_id}" if blocker and blocker.txn_id else ""
    return f"{text}: lock {own.blocked_by_lock_id}{owner}{who} comes first; try again later"
