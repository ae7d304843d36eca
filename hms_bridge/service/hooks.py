"""Event hooks: Python objects that hear of every event after its commit.

Hooks are called in the order of event ids, also where several threads commit at once: ids are
announced under the lock that numbers them, and an event waits for those announced before it.
An error of a hook is logged; it never undoes what was committed, nor stops other hooks. A slow one
holds up nobody but the hooks.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hms_bridge.errors import ConfigError
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId

_LOG = logging.getLogger(__name__)

WAITING_MAX = 10_000
"""Events that wait for slow hooks; each has its message with it."""

CLOSE_SECONDS = 10.0
"""How long the end of the process waits for hooks."""


class EventHook(Protocol):
    """What is called for each event."""

    def on_event(self, event: NotificationEvent) -> None:
        """One event, committed. It is called on a thread that does nothing else."""
        ...


def load_hooks(names: Sequence[str]) -> tuple[EventHook, ...]:
    """Hooks named ``module:attribute``; a class, or a function without arguments, is called.

    Raises ConfigError for what cannot be imported or is no hook.
    """
    return tuple(_load_hook(name) for name in names)


def _load_hook(name: str) -> EventHook:
    module_name, separator, attribute = name.partition(":")
    if not separator:
        raise ConfigError(f"event hook '{name}': write it as module:attribute")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"event hook '{name}': {error}; is it on the Python path?") from error
    hook = found() if callable(found) and not hasattr(found, "on_event") else found
    if isinstance(hook, type):
        hook = hook()
    if not callable(getattr(hook, "on_event", None)):
        raise ConfigError(f"event hook '{name}': it has no method on_event(event)")
    checked: EventHook = hook
    return checked


@dataclass(slots=True)
class Announcement:
    """Events of one transaction; ``is_settled`` when it is known whether they were committed."""

    events: tuple[NotificationEvent, ...]
    is_settled: bool = False


class HookDispatcher:
    """Calls hooks in the order of events, on a thread of its own: a client never waits for one.

    At most ``waiting_max`` events wait for slow hooks. Those of a transaction that comes when so
    many wait are told to none, and the log says which: they are in NOTIFICATION_LOG.
    """

    def __init__(self, hooks: Sequence[EventHook], *, waiting_max: int = WAITING_MAX) -> None:
        self._hooks = tuple(hooks)
        self._waiting_max = waiting_max
        self._condition = threading.Condition()
        self._waiting: deque[Announcement] = deque()
        self._count = 0
        self._untold: list[EventId] = []
        self._untold_count = 0
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def announce(self, events: tuple[NotificationEvent, ...]) -> Announcement | None:
        """Numbered, not committed yet. Called while the sequence of ids is locked."""
        if not events or not self._hooks:
            return None
        announced = Announcement(events)
        with self._condition:
            self._waiting.append(announced)
            self._count += len(events)
        return announced

    def settle(self, announced: Announcement | None, *, is_committed: bool) -> None:
        """The transaction ended: its events may be delivered now, or are forgotten."""
        if announced is None:
            return
        with self._condition:
            if not is_committed:
                self._forget(announced)
            elif self._count - len(announced.events) >= self._waiting_max:
                self._leave_untold(announced)
            announced.is_settled = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._deliver_all, name="event-hooks", daemon=True
                )
                self._thread.start()
            self._condition.notify_all()

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Deliver what waits, for this long at most; the log says what remains untold."""
        with self._condition:
            thread = self._thread
            self._is_closing = True
            self._condition.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)
        with self._condition:
            left = [event.id for one in self._waiting for event in one.events]
            if left:
                _LOG.warning(
                    "event hooks did not hear of %d events before the end, from %d to %d; read "
                    "them with get_next_notification",
                    len(left),
                    left[0],
                    left[-1],
                )

    def _forget(self, announced: Announcement) -> None:
        self._count -= len(announced.events)
        announced.events = ()

    def _leave_untold(self, announced: Announcement) -> None:
        if not self._untold:
            _LOG.warning(
                "event hooks are too slow: %d events wait for them; those from event %d on are "
                "not told until some have been heard",
                self._waiting_max,
                announced.events[0].id,
            )
        self._untold += [event.id for event in announced.events]
        self._untold[1:-1] = []
        self._untold_count += len(announced.events)
        self._forget(announced)

    def _deliver_all(self) -> None:
        while (announced := self._next()) is not None:
            for event in announced.events:
                self._deliver(event)
            with self._condition:
                self._waiting.popleft()
                self._forget(announced)

    def _next(self) -> Announcement | None:
        """The first, once it is settled; None when the end has come and nothing is."""
        with self._condition:
            if self._untold and self._count < self._waiting_max:
                _LOG.warning(
                    "event hooks were not told of %d events, from %d to %d; read them with "
                    "get_next_notification",
                    self._untold_count,
                    self._untold[0],
                    self._untold[-1],
                )
                self._untold, self._untold_count = [], 0
            while not (self._waiting and self._waiting[0].is_settled):
                if self._is_closing:
                    self._thread, self._is_closing = None, False
                    return None
                self._condition.wait()
            return self._waiting[0]

    def _deliver(self, event: NotificationEvent) -> None:
        for hook in self._hooks:
            try:
                hook.on_event(event)
            except BaseException:
                _LOG.exception(
                    "event hook %s failed on event %s (%s)",
                    type(hook).__name__,
                    event.id,
                    event.type,
                )
