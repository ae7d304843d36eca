"""A metastore that remembers how it was called and answers what it was told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from hms_bridge.model.event import EventRow, NotificationRequest
from hms_bridge.model.lock import LockFilter, LockInfo, LockRow
from hms_bridge.model.txn import OpenTxnRows, OpenTxns, TxnType


class FakeMetastore:
    """Implements every method of the port: ``answers`` by name, an exception is raised.

    Calls are kept as (name, positional arguments, keyword arguments). A callable answer is called.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def answer(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls.append((name, args, kwargs))
            value = self.answers.get(name)
            if isinstance(value, BaseException):
                raise value
            return value(*args, **kwargs) if callable(value) else value

        return answer

    def get_open_txn_rows(self, *excluded_types: frozenset[TxnType]) -> OpenTxnRows:
        """What the server asks in place of ``get_open_txns``, answered from that."""
        return open_txn_rows(self.get_open_txns(*excluded_types))

    def show_lock_rows(self, lock_filter: LockFilter | None = None) -> list[LockRow]:
        """What the server asks in place of ``show_locks``, answered from that."""
        return [_row(info) for info in self.show_locks(lock_filter)]

    def get_next_notification_rows(self, request: NotificationRequest) -> list[EventRow]:
        """What the server asks in place of ``get_next_notification``, answered from that."""
        return [astuple(event) for event in self.get_next_notification(request)]


def open_txn_rows(txns: OpenTxns) -> OpenTxnRows:
    """What a database would have given."""
    return OpenTxnRows(
        high_watermark=txns.high_watermark,
        rows=[(txn.id, txn.state.value) for txn in txns.txns],
        min_open_txn=txns.min_open_txn,
    )


def _row(info: LockInfo) -> LockRow:
    return (
        info.lock_id,
        info.internal_id,
        info.txn_id,
        info.last_heartbeat_ms,
        info.acquired_at_ms,
        info.blocked_by_lock_id,
        info.blocked_by_internal_id,
        info.scope.database or "",
        info.scope.table,
        info.scope.partition,
        info.state.stored,
        info.type.stored,
        info.user,
        info.host,
        info.agent,
    )
