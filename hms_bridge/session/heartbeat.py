"""Keeps a transaction or a lock alive while the work under it goes on."""

from __future__ import annotations

import logging
import threading

from hms_bridge.errors import BackendError, MetastoreError, MetastoreUnavailableError
from hms_bridge.metastore import TransactionStore
from hms_bridge.model.ids import LockId, TxnId

_LOG = logging.getLogger(__name__)

_NO_LOCK = LockId(0)
_SECONDS_MAX = 60.0
_BEATS_IN_TIMEOUT = 3


def heartbeat_interval_seconds(store: TransactionStore) -> float:
    """How often to beat: a third of the metastore's hive.txn.timeout, at most a minute.

    Hive beats twice in it (DbTxnManager.getHeartbeatInterval; docs/hive/transactions.md §12); a
    third lets one be late.
    """
    return min(_SECONDS_MAX, store.get_txn_timeout_ms() / 1000 / _BEATS_IN_TIMEOUT)


def require_open(store: TransactionStore, txn_id: TxnId) -> None:
    """Raises NoSuchTxnError, TxnAbortedError if it has ended, as one that was given up for lost."""
    store.heartbeat(txn_id, _NO_LOCK)


class Heartbeat:
    """A context that beats every ``interval_seconds``; ``check`` is for who must know that
    the lease still holds.

    ``txn_id`` or ``lock_id`` is 0 where only the other is kept alive.
    """

    def __init__(
        self,
        store: TransactionStore,
        txn_id: TxnId,
        interval_seconds: float,
        lock_id: LockId = _NO_LOCK,
    ) -> None:
        self._store = store
        self._txn_id = txn_id
        self._lock_id = lock_id
        self._what = f"transaction {txn_id}" if txn_id else f"lock {lock_id}"
        self.interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._lost: MetastoreError | None = None
        self._thread = threading.Thread(
            target=self._beat, name=f"heartbeat of {self._what}", daemon=True
        )

    def start(self) -> None:
        """On a thread of its own; the first beat comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Waits for a beat under way; the lock or transaction stays."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Heartbeat:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def raise_if_lost(self) -> None:
        """Raises what the last beats heard: NoSuchTxnError, TxnAbortedError, NoSuchLockError."""
        if self._lost is not None:
            raise self._lost

    def check(self) -> None:
        """Beat now. Raises NoSuchTxnError, TxnAbortedError, NoSuchLockError if it is lost."""
        self.raise_if_lost()
        self._store.heartbeat(self._txn_id, self._lock_id)

    def _beat(self) -> None:
        while not self._stopping.wait(self.interval_seconds):
            try:
                self._store.heartbeat(self._txn_id, self._lock_id)
            except (MetastoreUnavailableError, BackendError) as error:
                _LOG.warning("no heartbeat for %s: %s", self._what, error)
            except MetastoreError as error:
                self._lost = error
                return
