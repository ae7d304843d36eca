"""The transaction under which a bootstrap dump, or a comparison, reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hms_bridge.clock import Clock
from hms_bridge.errors import MetastoreError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.txn import TxnType
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import Client, Transaction, open_transaction


class ReadTxn:
    """A read-only transaction: while it is open, no cleaner takes what the snapshot reads (I3)."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._transaction = transaction
        self._clock = clock
        self._interval_ms = 1000 * transaction.heartbeat.interval_seconds
        self._beat_ms = clock.now_ms()

    def register(self, full_table_names: Sequence[str]) -> None:
        """Keep the files of transactional tables from Hive's Cleaner too; before the snapshot."""
        register_reader(self._transaction.metastore, self._transaction.id, full_table_names)

    def keep_alive(self) -> None:
        """A heartbeat now and then, beside those of the thread: time may be another's."""
        if self._clock.now_ms() - self._beat_ms >= self._interval_ms:
            self.check()

    def check(self) -> None:
        """Raises ReplError if the transaction was lost: files may have gone meanwhile."""
        try:
            self._transaction.heartbeat.check()
        except MetastoreError as error:
            raise ReplError(
                f"transaction {self._transaction.id}, under which files were read, was lost "
                f"({error}), so some may have been cleaned meanwhile; begin again"
            ) from error
        self._beat_ms = self._clock.now_ms()


@contextmanager
def open_read_txn(source: Metastore, clock: Clock, *, user: str, host: str) -> Iterator[ReadTxn]:
    """Until the end of the block, which raises ReplError if the transaction was lost meanwhile."""
    client = Client(user=user, host=host, agent=None)
    with open_transaction(source, client, kind=TxnType.READ_ONLY) as transaction:
        reader = ReadTxn(transaction, clock)
        yield reader
        reader.check()
