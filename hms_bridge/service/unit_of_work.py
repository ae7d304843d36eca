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
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from changemanager.journal import log_deed
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.engine import Database
from hms_bridge.backend.fixed_sql import send_ahead
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import MetastoreError
from hms_bridge.hooks.inside import InnerHooks
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.hook import Change, HookEvent, PointDraft
from hms_bridge.notification import hook_points
from hms_bridge.notification.event_log import NOTHING, Logged, append
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.message_text import MessageFormat
from hms_bridge.service.hooks import HookDispatcher
from hms_bridge.service.replica_gate import require_own_definitions
from hms_bridge.service.shared_writes import Finish, Place, SharedWrites, Step
from hms_bridge.txn.foresight import Foresight

P = ParamSpec("P")
T = TypeVar("T")


_LOG = logging.getLogger(__name__)
_DROPS = {
    EventType.DROP_DATABASE: "database dropped",
    EventType.DROP_TABLE: "table dropped",
    EventType.DROP_PARTITION: "partitions dropped",
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
    news: list[Callable[[Foresight], None]] = field(default_factory=list)
    """What those who expect something are to learn of this verb, once it is committed."""


Look = Callable[[bool], "Sequence[T] | None"]
"""See :data:`hms_bridge.service.shared_writes.Finish`: the results, or None."""


@dataclass(frozen=True, slots=True)
class Alike(Generic[T]):
    """How verbs of one ``kind`` are done at once: ``ask`` has their requests, and what it gives
    their results in the same order; None, and nothing is done, where each must be done by
    itself."""

    kind: Hashable
    request: Any
    ask: Callable[[UnitOfWork, Sequence[Any]], Look[T] | None]
    expect: (
        Callable[[UnitOfWork, Foresight, Sequence[Any]], Callable[[], Sequence[T]] | None] | None
    ) = None
    """As ``ask``, where it is known what will come of it; the results are looked at once it is
    committed, which must not fail."""


Turn = tuple[Place | None, Alike[T] | None]
"""Where a verb stands among those that share a transaction, None for one that shares none; and with
which it is done at once."""


class _Write(Step, Generic[T]):
    """A changing verb, and what became of it."""

    unit: UnitOfWork
    result: T

    def __init__(
        self,
        work: Callable[[UnitOfWork], T],
        given: Transactions,
        place: Place | None = None,
        alike: Alike[T] | None = None,
    ) -> None:
        super().__init__(place, None if alike is None else alike.kind)
        self._work = work
        self._given = given
        self._alike = alike
        self._logged, self._place_in_log = NOTHING, slice(0)
        self._look_back: Callable[[], None] | None = None
        self.points: tuple[HookEvent, ...] = ()

    @property
    def events(self) -> tuple[NotificationEvent, ...]:
        """What it logged, with numbers; after the commit."""
        return self._logged.events[self._place_in_log]

    def take_events(self, logged: Logged, place: slice) -> None:
        """Its own of what a transaction logged."""
        self._logged, self._place_in_log = logged, place

    def run(self, connection: Connection, now_seconds: int) -> None:
        self._begin(connection, now_seconds)
        self.result = self._work(self.unit)
        require_own_definitions(connection, self.unit.events)

    def expect_with(
        self, others: Sequence[_Write[T]], connection: Connection, now_seconds: int
    ) -> bool:
        """As with :meth:`ask_with`."""
        foresight = self._given.foresight
        if self._alike is None or self._alike.expect is None or foresight is None:
            return False
        writes = [self, *others]
        requests = self._begin_all(writes, connection, now_seconds)
        look = self._alike.expect(self.unit, foresight, requests)
        if look is None:
            return False
        require_own_definitions(connection, self.unit.events)
        self._look_back = lambda: _give(writes, look())
        return True

    def look_back(self) -> None:
        """As with :meth:`expect_with`, for all that were done with it."""
        if self._look_back is not None:
            self._look_back()

    def ask_with(
        self, others: Sequence[_Write[T]], connection: Connection, now_seconds: int
    ) -> Finish | None:
        """The events of all are those of the first."""
        if self._alike is None:
            return None
        writes = [self, *others]
        requests = self._begin_all(writes, connection, now_seconds)
        look = self._alike.ask(self.unit, requests)
        return None if look is None else partial(self._finish, writes, look)

    def _finish(self, writes: Sequence[_Write[T]], look: Look[T], is_in_turn: bool) -> bool:
        results = look(is_in_turn)
        if results is None:
            return False
        _give(writes, results)
        require_own_definitions(self.unit.connection, self.unit.events)
        return True

    def _begin_all(
        self, writes: Sequence[_Write[T]], connection: Connection, now_seconds: int
    ) -> Sequence[Any]:
        """What they ask for."""
        for write in writes:
            write._begin(connection, now_seconds)
        return [write._alike.request for write in writes if write._alike is not None]

    def _begin(self, connection: Connection, now_seconds: int) -> None:
        self._logged, self.points, self._look_back = NOTHING, (), None
        self.unit = UnitOfWork(
            connection, self._given.clock, self._given.settings, now_seconds=now_seconds
        )


class Transactions:
    """Runs the work of verbs. ``shares_turns``: verbs that allow it share the transactions of
    others that come at the same time; not where hooks stand inside of them, whose time, failures
    and statements are to be one verb's own."""

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
        shares_turns: bool = True,
    ) -> None:
        self.database = database
        self.clock = clock
        self.settings = settings or Settings()
        self._message_format = message_format
        self._hooks = hooks
        self._inner = inner_hooks or InnerHooks()
        self._is_heard = hooks.has_hooks or bool(self._inner.transactional)
        self._retry = retry
        self.foresight = Foresight() if database.is_pipelined else None
        has_inner_hooks = bool(self._inner.pre or self._inner.transactional)
        self._shared: SharedWrites[_Write[Any]] | None = None
        if shares_turns and not has_inner_hooks:
            self._shared = SharedWrites(
                database, self._now_seconds, self._end, self._learn, self.foresight
            )

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

    def read_without_waiting(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`read`, for what follows a failure: a database that is gone is an error at once,
        as it was waited for before."""
        return run_in_transaction(
            self.database, work, write=False, clock=self.clock, settings=self._impatient
        )

    def write_without_waiting(self, work: Callable[[UnitOfWork], T]) -> T:
        """As :meth:`write`, likewise."""
        write = _Write(work, self)
        self._write_alone(write, self._impatient)
        return write.result

    @property
    def _impatient(self) -> RetrySettings:
        return replace(self._retry or RetrySettings(), outage_seconds_max=0.0)

    def read_whole(self, work: Callable[[Connection], T]) -> T:
        """As :meth:`read`, for what stands in many rows: all of them as they were at one moment."""
        return run_in_transaction(
            self.database,
            work,
            write=False,
            is_of_one_moment=True,
            clock=self.clock,
            settings=self._retry,
        )

    def write(
        self, work: Callable[[UnitOfWork], T], find_turn: Callable[[], Turn[T]] | None = None
    ) -> T:
        """Run a changing verb; it is run again from the start after a deadlock or the like.

        With ``find_turn``, which is asked where others may come at the same time, it may share its
        transaction with these.
        """
        return self._write(work, find_turn).result

    def write_logged(self, work: Callable[[UnitOfWork], T]) -> tuple[NotificationEvent, ...]:
        """Run a changing verb that is asked which events it logged."""
        return self._write(work).events

    def _write(
        self, work: Callable[[UnitOfWork], T], find_turn: Callable[[], Turn[T]] | None = None
    ) -> _Write[T]:
        shared = self._shared
        if find_turn is None or shared is None or not shared.takes_this_thread():
            write = _Write(work, self)
            self._write_alone(write, self._retry)
        else:
            place, alike = find_turn()
            write = _Write(work, self, place, alike)
            if place is None or not shared.run(write):
                self._write_alone(write, self._retry)
        if self._hooks.has_hooks and (write.unit.events or write.points):
            self._hooks.wake()
        if any(draft.type in _DROPS for draft in write.unit.events):
            for event in write.events:
                _log_drop(event)
        if write.unit.failure is not None:
            raise write.unit.failure
        return write

    def _write_alone(self, write: _Write[T], settings: RetrySettings | None) -> None:
        def attempt(connection: Connection) -> None:
            write.run(connection, self._now_seconds())
            self._end(connection, (write,))

        run_in_transaction(self.database, attempt, write=True, clock=self.clock, settings=settings)
        self._learn((write,))

    def _learn(self, writes: Sequence[_Write[Any]]) -> None:
        """Before the next verbs are done, which may build upon it."""
        if self.foresight is not None:
            for write in writes:
                for tell in write.unit.news:
                    tell(self.foresight)

    def _now_seconds(self) -> int:
        return self.clock.now_ms() // 1000

    def _end(self, connection: Connection, writes: Sequence[_Write[Any]]) -> None:
        """The end of a transaction: hooks are asked, events and points stored, hooks told. Those of
        several verbs in the order of these, and at once, as all others who log wait from here on.
        """
        are_points_wanted = self._is_heard or bool(self._inner.pre)
        telling = [
            write
            for write in writes
            if write.unit.events or (are_points_wanted and write.unit.points)
        ]
        if not telling:
            return
        # The server works meanwhile: to write and to zip events takes us as long as it the verb.
        send_ahead(connection)
        now_seconds = telling[0].unit.now_seconds
        drafts = [draft for write in telling for draft in write.unit.events]
        if self._inner.pre:
            points = [point for write in telling for point in write.unit.points]
            changes = [_change(point) for point in points if point.type.is_change]
            self._inner.ask([*map(_change, drafts), *changes])
        logged = append(
            connection, drafts, now_seconds=now_seconds, message_format=self._message_format
        )
        heard = (
            [draft for write in telling for draft in write.unit.points] if self._is_heard else ()
        )
        stored = hook_points.append(connection, heard, now_seconds=now_seconds)
        if self._inner.transactional and (drafts or stored):
            self._inner.tell(
                [*(hook_points.as_hook_event(event) for event in logged.events), *stored],
                connection,
            )
        _hand_out(telling, logged, stored)


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


def reads_whole(verb: Callable[Concatenate[Work, P], T]) -> Callable[Concatenate[Verbs, P], T]:
    """As :func:`reads`, for a verb that puts objects together from several statements: else one
    that is changed meanwhile would come half as it was and half as it is, without the rows of
    either (a table without columns)."""

    @wraps(verb)
    def in_transaction(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        given = verbs._transactions
        return given.read_whole(
            lambda connection: verb(Work(connection, given.clock, given.settings), *args, **kwargs)
        )

    return in_transaction


def writes(verb: Callable[Concatenate[UnitOfWork, P], T]) -> Callable[Concatenate[Verbs, P], T]:
    """The verb that does this in a database transaction of its own, with the events it logs."""

    @wraps(verb)
    def in_transaction(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verbs._transactions.write(lambda unit: verb(unit, *args, **kwargs))

    return in_transaction


def heard(
    verb: Callable[Concatenate[Verbs, P], T], nothing: T
) -> Callable[Concatenate[Verbs, P], T]:
    """A verb that does nothing, and answers so, where no hook hears of points."""

    @wraps(verb)
    def where_heard(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verb(verbs, *args, **kwargs) if verbs._transactions.is_heard else nothing

    return where_heard


def _unlike(*_args: Any, **_kwargs: Any) -> None:
    """Each is done by itself."""


def shares(
    verb: Callable[Concatenate[UnitOfWork, P], T],
    place: Callable[P, Place | None],
    alike: Callable[P, Alike[T] | None] = _unlike,
) -> Callable[Concatenate[Verbs, P], T]:
    """As :func:`writes`, for a verb that is called all the time: together with others that come at
    the same time, where ``place`` has one for it, and at once with those that are ``alike``."""

    @wraps(verb)
    def in_transaction(verbs: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verbs._transactions.write(
            lambda unit: verb(unit, *args, **kwargs),
            lambda: (place(*args, **kwargs), alike(*args, **kwargs)),
        )

    return in_transaction


def _give(writes: Sequence[_Write[T]], results: Sequence[T]) -> None:
    for write, result in zip(writes, results, strict=True):
        write.result = result


def _hand_out(writes: Sequence[_Write[Any]], logged: Logged, points: Sequence[HookEvent]) -> None:
    """To each verb its own; points are stored for all verbs, or for none."""
    further, first = iter(points), 0
    for write in writes:
        after = first + len(write.unit.events)
        write.take_events(logged, slice(first, after))
        write.points = tuple(islice(further, len(write.unit.points)))
        first = after


def _log_drop(event: NotificationEvent) -> None:
    deed = _DROPS.get(EventType(event.type))
    if deed is None:
        return
    log_deed(
        _LOG,
        deed,
        event=event.id,
        catalog=None if event.catalog_name == DEFAULT_CATALOG else event.catalog_name,
        database=event.database_name,
        table=event.table_name,
    )


def _change(draft: EventDraft | PointDraft) -> Change:
    return Change(
        type=draft.type.value,
        catalog_name=draft.catalog_name if isinstance(draft, EventDraft) else None,
        database_name=draft.database_name,
        table_name=draft.table_name,
        message=draft.message,
    )
