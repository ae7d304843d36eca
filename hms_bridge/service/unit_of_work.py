"""One verb is one database transaction: its connection, its time, its events, what comes after.

What a verb does inside is a plain function, over :class:`Work` in the rooms of SQL, over
:class:`UnitOfWork` if it logs events. :func:`reads` and :func:`writes` make a verb of it; a family
of verbs is a list of them. Verbs of several transactions, with file work between, or that need a
part of their family are methods.

Events are numbered by the last statements before the commit (I8), because the row that numbers
them holds up everyone else. File work and hooks come after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from changemanager.journal import tell
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.engine import Database
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import MetastoreError
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.notification.event_log import append
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.message_text import MessageFormat
from hms_bridge.service.hooks import HookDispatcher
from hms_bridge.service.replica_gate import require_own_definitions

P = ParamSpec("P")
T = TypeVar("T")


_LOG = logging.getLogger(__name__)
_DROPS = {
    EventType.DROP_DATABASE.value: "database dropped",
    EventType.DROP_TABLE.value: "table dropped",
    EventType.DROP_PARTITION.value: "partitions dropped",
}


@dataclass(slots=True)
class UnitOfWork(Work):
    """What a changing verb works with besides: its events, and the time of its rows and events.

    ``now_seconds`` is the server's time, as in Hive's rows and events. Heartbeats and time-outs of
    transactions, which several servers compare, go by the database's, ``now_ms``.
    """

    now_seconds: int
    events: list[EventDraft] = field(default_factory=list)
    failure: MetastoreError | None = None
    """Raised after the commit: a refusal that leaves a trace (a lost write-write conflict)."""


class Transactions:
    """Runs the work of verbs."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        message_format: MessageFormat,
        hooks: HookDispatcher,
        settings: Settings | None = None,
        retry: RetrySettings | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.settings = settings or Settings()
        self._message_format = message_format
        self._hooks = hooks
        self._retry = retry

    def close(self) -> None:
        """Let hooks hear what they have not heard yet, and give back connections."""
        self._hooks.close()
        self.database.close()

    def read(self, work: Callable[[Connection], T]) -> T:
        """In a database transaction of its own, again after a deadlock or the like."""
        return run_in_transaction(
            self.database, work, write=False, clock=self.clock, settings=self._retry
        )

    def write(self, work: Callable[[UnitOfWork], T]) -> T:
        """Run a changing verb; it is run again from the start after a deadlock or the like."""
        return self._write(work)[0]

    def write_logged(self, work: Callable[[UnitOfWork], T]) -> tuple[NotificationEvent, ...]:
        """Run a changing verb that is asked which events it logged."""
        return self._write(work)[1]

    def _write(self, work: Callable[[UnitOfWork], T]) -> tuple[T, tuple[NotificationEvent, ...]]:
        units: list[UnitOfWork] = []

        def attempt(connection: Connection) -> tuple[T, tuple[NotificationEvent, ...]]:
            unit = UnitOfWork(
                connection, self.clock, self.settings, now_seconds=self.clock.now_ms() // 1000
            )
            units[:] = [unit]
            result = work(unit)
            require_own_definitions(connection, unit.events)
            events = append(
                connection,
                unit.events,
                now_seconds=unit.now_seconds,
                message_format=self._message_format,
            )
            return result, events

        result = run_in_transaction(
            self.database, attempt, write=True, clock=self.clock, settings=self._retry
        )
        self._hooks.committed(result[1])
        for event in result[1]:
            if event.type in _DROPS:
                _log_drop(event)
        if units[0].failure is not None:
            raise units[0].failure
        return result


class Verbs:
    """Base of every family of verbs."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions


def reads(verb: Callable[Concatenate[Work, P], T]) -> Callable[Concatenate[Verbs, P], T]:
    """The verb that does this in a database transaction of its own, which changes nothing."""

    @wraps(verb)
    def in_transaction(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        given = verbs._transactions
        return given.read(
            lambda connection: verb(Work(connection, given.clock, given.settings), *args, **kwargs)
        )

    return in_transaction


def writes(verb: Callable[Concatenate[UnitOfWork, P], T]) -> Callable[Concatenate[Verbs, P], T]:
    """The verb that does this in a database transaction of its own, with the events it logs."""

    @wraps(verb)
    def in_transaction(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verbs._transactions.write(lambda unit: verb(unit, *args, **kwargs))

    return in_transaction


def _log_drop(event: NotificationEvent) -> None:
    tell(
        _LOG,
        _DROPS[event.type],
        event=event.id,
        database=event.database_name,
        table=event.table_name,
    )
