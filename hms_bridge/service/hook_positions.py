"""The positions of event hooks, and the events that follow them, in the metastore's database."""

from __future__ import annotations

from functools import partial

from hms_bridge.backend.connection import Connection
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_log, hook_positions
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork


class StoredPositions:
    """Implements ``HookPositions``."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def register(self, name: str) -> None:
        """A new hook hears what comes from now on."""

        def work(unit: UnitOfWork) -> None:
            newest = event_log.current_event_id(unit.connection)
            hook_positions.register(unit.connection, name, newest)

        self._transactions.write(work)

    def take(self, name: str, owner: str) -> EventId | None:
        """The last event that was heard; None if another process tells this hook."""
        return self._transactions.write(
            lambda unit: hook_positions.take(unit.connection, name, owner, unit.now_ms)
        )

    def advance(self, name: str, owner: str, last: EventId) -> bool:
        """False if another process tells this hook now."""
        return self._transactions.write(
            lambda unit: hook_positions.advance(unit.connection, name, owner, last, unit.now_ms)
        )

    def release(self, name: str, owner: str) -> None:
        """Let another process tell it."""
        self._transactions.write(lambda unit: hook_positions.release(unit.connection, name, owner))

    def following(self, last: EventId, limit: int) -> tuple[EventId, tuple[NotificationEvent, ...]]:
        """The newest id there is, and the first events after one."""
        return self._transactions.read(partial(_following, last=last, limit=limit))


def _following(
    connection: Connection, last: EventId, limit: int
) -> tuple[EventId, tuple[NotificationEvent, ...]]:
    newest = event_log.current_event_id(connection)  # first: what it counts is there, or is gone
    request = NotificationRequest(last_event_id=last, max_events=limit)
    return newest, event_log.read(connection, request)
