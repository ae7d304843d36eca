"""Keeps a transaction alive while the work under it goes on."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from hms_bridge.errors import MetastoreError, MetastoreUnavailableError
from hms_bridge.metastore import TransactionStore
from hms_bridge.model.ids import LockId, TxnId

_LOG = logging.getLogger(__name__)


class Heartbeat:
    """A context that beats every ``interval_seconds``; ``check`` tells if the lease still holds."""

    def __init__(self, store: TransactionStore, txn_id: TxnId, interval_seconds: float) -> None:
        self._store = store
        self._txn_id = txn_id
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._lost: MetastoreError | None = None
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{txn_id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        """Beat now. Raises NoSuchTxnError or TxnAbortedError when the transaction is lost."""
        if self._lost is not None:
            raise self._lost
        self._store.heartbeat(self._txn_id, LockId(0))

    def _beat(self) -> None:
        while not self._stopping.wait(self._interval_seconds):
            try:
                self._store.heartbeat(self._txn_id, LockId(0))
            except MetastoreUnavailableError:
                _LOG.warning("no heartbeat for transaction %d: no answer", self._txn_id)
            except MetastoreError as error:
                self._lost = error
                return
