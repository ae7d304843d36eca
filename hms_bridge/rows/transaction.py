"""A transaction of a reader or writer: open, lock, take the snapshot, keep alive, end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hms_bridge.clock import Clock
from hms_bridge.errors import DmlError, HmsBridgeError
from hms_bridge.interrupts import HeldInterrupts
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import NO_TXN, LockId, TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.heartbeat import Heartbeat
from hms_bridge.rows.min_history import register_reader


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """Who reads or writes, and how patiently."""

    user: str
    host: str
    agent: str = "hms-bridge"
    lock_wait_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """An open transaction that holds its locks, and the snapshot that it reads."""

    id: TxnId
    txns: ValidTxnList
    metastore: Metastore

    def write_ids(self, full_table_name: str) -> ValidWriteIdList:
        """What the transaction may see of a table."""
        return self.metastore.get_valid_write_ids([full_table_name], self.txns)[0]


@contextmanager
def open_transaction(
    metastore: Metastore,
    client: Client,
    clock: Clock,
    locks: Sequence[LockComponent],
    *,
    kind: TxnType = TxnType.DEFAULT,
) -> Iterator[Transaction]:
    """Commit at the end of the block; abort if it raises.

    The snapshot is taken once the locks are held, so that what was waited for is seen.
    Raises DmlError if the locks are not granted in time; what the metastore raises.
    """
    request = OpenTxnsRequest(user=client.user, host=client.host, agent=client.agent, type=kind)
    with HeldInterrupts() as held:  # else one could leave a transaction open that nobody knows
        (txn_id,) = metastore.open_txns(request)
        try:
            held.release()
            with Heartbeat(metastore, txn_id) as heartbeat:
                if locks:
                    _acquire(metastore, client, clock, txn_id, locks)
                    register_reader(metastore, txn_id, _read_tables(locks))
                yield Transaction(
                    id=txn_id, txns=current_snapshot(metastore, txn_id), metastore=metastore
                )
                heartbeat.check()
            metastore.commit_txn(CommitTxnRequest(txn_id=txn_id, type=kind))
        except BaseException:
            _abort(metastore, txn_id, kind)
            raise


def read_lock(table: Table) -> LockComponent:
    """The lock of who reads a table."""
    return LockComponent(
        type=LockType.SHARED_READ,
        level=LockLevel.TABLE,
        scope=Scope(table.database_name, table.name),
        operation=DataOperation.SELECT,
        is_transactional=True,
    )


def _read_tables(locks: Sequence[LockComponent]) -> list[str]:
    """Tables that are read: an insert reads nothing of its target."""
    return [
        f"{lock.scope.database}.{lock.scope.table}".lower()
        for lock in locks
        if lock.scope.table and lock.operation is not DataOperation.INSERT
    ]


def current_snapshot(metastore: Metastore, txn_id: TxnId = NO_TXN) -> ValidTxnList:
    """What a reader sees that starts now, under a transaction of its own if it has one.

    The list goes on above ``txn_id``: who began later may have committed while the transaction
    waited for its locks. Hive's list ends at the own id (docs/hive/transactions.md §5), and so Hive
    opens a new transaction then.
    """
    return metastore.get_open_txns().without(txn_id).snapshot()


def _acquire(
    metastore: Metastore,
    client: Client,
    clock: Clock,
    txn_id: TxnId,
    locks: Sequence[LockComponent],
) -> None:
    answer = metastore.lock(
        LockRequest(
            components=tuple(locks),
            txn_id=txn_id,
            user=client.user,
            host=client.host,
            agent=client.agent,
        )
    )
    deadline_ms = clock.now_ms() + int(client.lock_wait_seconds * 1000)
    pause_seconds = 0.05
    while answer.state is LockState.WAITING:
        if clock.now_ms() >= deadline_ms:
            raise DmlError(_who_blocks(metastore, answer.lock_id, client.lock_wait_seconds))
        clock.sleep_seconds(pause_seconds)
        pause_seconds = min(pause_seconds * 2, 2.0)
        answer = metastore.check_lock(answer.lock_id)
    if answer.state is not LockState.ACQUIRED:
        raise DmlError(answer.error_message or f"the locks were not granted: {answer.state.name}")


def _who_blocks(metastore: Metastore, lock_id: LockId, waited_seconds: float) -> str:
    listed = metastore.show_locks(LockFilter())
    own = next((one for one in listed if one.lock_id == lock_id and one.blocked_by_lock_id), None)
    text = f"the locks were not granted in {waited_seconds:g} s"
    if own is None:
        return f"{text}; see hms-bridge locks"
    blocker = next((one for one in listed if one.lock_id == own.blocked_by_lock_id), None)
    who = f", held by {blocker.user}@{blocker.host}" if blocker else ""
    transaction = f" of transaction {blocker.txn_id}" if blocker and blocker.txn_id else ""
    return f"{text}: lock {own.blocked_by_lock_id}{transaction}{who} comes first; try again later"


def _abort(metastore: Metastore, txn_id: TxnId, kind: TxnType) -> None:
    """The error that led here matters more than one of the abort: a time-out aborts as well."""
    request = AbortTxnRequest(txn_id=txn_id, type=kind, reason=AbortReason.ROLLBACK)
    try:
        metastore.abort_txn(request)
    except HmsBridgeError:
        return
