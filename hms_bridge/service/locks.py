"""Verbs of locks."""

from __future__ import annotations

from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import LockFilter, LockInfo, LockRequest, LockResponse
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.txn import locks


class LockVerbs(VerbFamily):
    """The LockStore."""

    def lock(self, request: LockRequest) -> LockResponse:
        """Raises NoSuchTxnError, TxnAbortedError."""
        return self._transactions.write(
            lambda unit: locks.lock(unit.connection, request, self._clock)
        )

    def check_lock(self, lock_id: LockId) -> LockResponse:
        """Try again, and keep alive. Raises NoSuchLockError, NoSuchTxnError, TxnAbortedError."""
        return self._transactions.write(
            lambda unit: locks.check_lock(unit.connection, lock_id, self._clock)
        )

    def unlock(self, lock_id: LockId) -> None:
        """Idempotent. Raises TxnOpenError for acquired locks of a transaction."""
        self._transactions.write(lambda unit: locks.unlock(unit.connection, lock_id))

    def show_locks(self, lock_filter: LockFilter | None = None) -> tuple[LockInfo, ...]:
        """Acquired ones first, then by strength and id."""
        return self._transactions.read(lambda c: locks.show_locks(c, lock_filter))
