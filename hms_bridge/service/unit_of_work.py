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

from changemanager.journal import log_deed
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.engine import Database
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import MetastoreError
from hms_bridge.hooks.inside import InnerHooks
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.hook import Change, HookEvent, PointDraft
from hms_bridge.notification import hook_points
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
    points: list[PointDraft] = field(default_factory=list)
    """What hooks are told of besides; dropped where there are none."""
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
        inner_hooks: InnerHooks | None = None,
        settings: Settings | None = None,
        retry: RetrySettings | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.settings = settings or Settings()
        self._message_format = message_format
        self._hooks = hooks
        self._inner = inner_hooks or InnerHooks()
        self._is_heard = hooks.has_hooks or bool(self._inner.transactional)
        self._retry = retry

    def close(self) -> None:
        """After hooks have heard what they had not heard yet."""
        self._hooks.close()
        self.database.close()

    def look_for_hooks(self) -> None:
        """Write points also for hooks that other processes tell, if any are registered now."""
        self._is_heard = self._is_heard or self.read(hook_points.has_hooks)

    @property
    def is_heard(self) -> bool:
        """Whether hooks may hear of points."""
        return self._is_heard

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

        def attempt(
            connection: Connection,
        ) -> tuple[T, tuple[NotificationEvent, ...], tuple[HookEvent, ...]]:
            unit = UnitOfWork(
                connection,
                self.clock,
                self.settings,
                now_seconds=self.clock.now_ms() // 1000,
            )
            units[:] = [unit]
            result = work(unit)
            require_own_definitions(connection, unit.events)
            return result, *self._log(connection, unit)

        result, events, points = run_in_transaction(
            self.database, attempt, write=True, clock=self.clock, settings=self._retry
        )
        self._hooks.committed((*events, *points))
        for event in events:
            if event.type in _DROPS:
                _log_drop(event)
        if units[0].failure is not None:
            raise units[0].failure
        return result, events

    def _log(
        self, connection: Connection, unit: UnitOfWork
    ) -> tuple[tuple[NotificationEvent, ...], tuple[HookEvent, ...]]:
        """The end of a transaction: hooks are asked, events and points stored, hooks told."""
        if self._inner.pre:
            self._inner.ask([_change(draft) for draft in unit.events])
        events = append(
            connection,
            unit.events,
            now_seconds=unit.now_seconds,
            message_format=self._message_format,
        )
        drafts = unit.points if self._is_heard else ()
        points = hook_points.append(connection, drafts, now_seconds=unit.now_seconds)
        if self._inner.transactional and (events or points):
            heard = [hook_points.as_hook_event(event) for event in events]
            self._inner.tell([*heard, *points], connection)
        return events, points


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
    log_deed(
        _LOG,
        _DROPS[event.type],
        event=event.id,
        database=event.database_name,
        table=event.table_name,
    )


def _change(draft: EventDraft) -> Change:
    return Change(
        type=draft.type.value,
        catalog_name=draft.catalog_name,
        database_name=draft.database_name,
        table_name=draft.table_name,
        message=draft.message,
    )
