"""The transaction of one statement or read: its locks are held, its snapshot is registered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockLevel,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AllocateWriteIdsRequest, TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import Client, Transaction, current_snapshot, open_transaction

_FIRST_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedTransaction:
    """An open transaction that holds its locks, and the snapshot that it reads."""

    id: TxnId
    txns: ValidTxnList
    metastore: Metastore

    def write_ids(self, full_table_name: str) -> ValidWriteIdList:
        """What the transaction may see of a table."""
        return self.metastore.get_valid_write_ids([full_table_name], self.txns)[0]

    def allocate_write_id(self, table: Table) -> WriteId:
        """For what the transaction writes to a table. Raises what the metastore raises."""
        (allocated,) = self.metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(
                database_name=table.database_name, table_name=table.name, txn_ids=(self.id,)
            )
        )
        return allocated.write_id


@contextmanager
def locked_transaction(
    metastore: Metastore,
    client: Client,
    clock: Clock,
    locks: Sequence[LockComponent],
    *,
    kind: TxnType = TxnType.DEFAULT,
) -> Iterator[LockedTransaction]:
    """Commit at the end of the block; abort if it raises.

    The snapshot is taken once the locks are held, so that what was waited for is seen.
    Raises DmlError if the locks are not granted in time; what the metastore raises.
    """
    with open_transaction(metastore, client, kind=kind) as transaction:
        if locks:
            acquire_locks(transaction, clock, locks)
            register_reader(metastore, transaction.id, _read_tables(locks))
        yield LockedTransaction(
            id=transaction.id,
            txns=current_snapshot(metastore, transaction.id),
            metastore=metastore,
        )
        transaction.heartbeat.check()


def read_lock(table: Table, partition_name: str | None = None) -> LockComponent:
    """The lock of who reads a table, or one partition."""
    return LockComponent(
        type=LockType.SHARED_READ,
        level=LockLevel.PARTITION if partition_name else LockLevel.TABLE,
        scope=Scope(table.database_name, table.name, partition_name),
        operation=DataOperation.SELECT,
        is_transactional=True,
    )


def write_lock(table: Table, operation: DataOperation, lock_type: LockType) -> LockComponent:
    """The lock of who writes to a table, or to partitions of it that nobody knows beforehand."""
    return LockComponent(
        type=lock_type,
        level=LockLevel.TABLE,
        scope=Scope(table.database_name, table.name),
        operation=operation,
        is_transactional=True,
        is_dynamic_partition_write=table.is_partitioned,
    )


def _read_tables(locks: Sequence[LockComponent]) -> list[str]:
    """Tables that are read: an insert reads nothing of its target."""
    return [
        f"{lock.scope.database}.{lock.scope.table}".lower()
        for lock in locks
        if lock.scope.table and lock.operation is not DataOperation.INSERT
    ]


def acquire_locks(transaction: Transaction, clock: Clock, locks: Sequence[LockComponent]) -> None:
    """Wait for the locks. Raises DmlError, with who holds them, if they are not granted in time."""
    metastore, wait_seconds = transaction.metastore, transaction.client.lock_wait_seconds
    answer = transaction.lock(locks)
    deadline_ms = steady_ms(clock) + int(wait_seconds * 1000)  # a clock may be set back
    pause_seconds = _FIRST_PAUSE_SECONDS
    while answer.state is LockState.WAITING:
        if steady_ms(clock) >= deadline_ms:
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
