"""The transaction of one statement or read: its locks are held, its snapshot is registered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hms_bridge.clock import Clock
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockComponent
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.session.locks import acquire
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import Client, current_snapshot, open_transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedTransaction:
    """An open transaction that holds its locks, and the snapshot that it reads."""

    id: TxnId
    txns: ValidTxnList
    metastore: Metastore

    def write_ids(self, full_table_name: str) -> ValidWriteIdList:
        """What the transaction may see of a table."""
        return self.metastore.get_valid_write_ids([full_table_name], self.txns)[0]


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
            acquire(transaction, clock, locks)
            register_reader(metastore, transaction.id, _read_tables(locks))
        yield LockedTransaction(
            id=transaction.id,
            txns=current_snapshot(metastore, transaction.id),
            metastore=metastore,
        )
        transaction.heartbeat.check()


def _read_tables(locks: Sequence[LockComponent]) -> list[str]:
    """Tables that are read: an insert reads nothing of its target."""
    return [
        f"{lock.database_name}.{lock.table_name}".lower()
        for lock in locks
        if lock.table_name and lock.operation is not DataOperation.INSERT
    ]
