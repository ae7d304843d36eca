"""Event hooks: Python objects that hear of every event after its commit.

Hooks are called in the order of event ids, also where several threads commit at once: ids are
announced under the lock that numbers them, and an event waits for those announced before it.
An error of a hook is logged; it never undoes what was committed, nor stops other hooks.
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

_LOG = logging.getLogger(__name__)


class EventHook(Protocol):
    """What is called for each event."""

    def on_event(self, event: NotificationEvent) -> None:
        """One event, committed. It holds up the verb that caused it, so it should be quick."""
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
    """Calls hooks in the order of events."""

    def __init__(self, hooks: Sequence[EventHook]) -> None:
        self._hooks = tuple(hooks)
        self._lock = threading.Lock()
        self._waiting: deque[Announcement] = deque()
        self._is_delivering = False

    def announce(self, events: tuple[NotificationEvent, ...]) -> Announcement | None:
        """Numbered, not committed yet. Called while the sequence of ids is locked."""
        if not events or not self._hooks:
            return None
        announced = Announcement(events)
        with self._lock:
            self._waiting.append(announced)
        return announced

    def settle(self, announced: Announcement | None, *, is_committed: bool) -> None:
        """The transaction ended: deliver what may be delivered now."""
        if announced is None:
            return
        with self._lock:
            if not is_committed:
                announced.events = ()
            announced.is_settled = True
            if self._is_delivering:
                return
            self._is_delivering = True
        while (events := self._next()) is not None:
            for event in events:
                self._deliver(event)

    def _next(self) -> tuple[NotificationEvent, ...] | None:
        with self._lock:
            if self._waiting and self._waiting[0].is_settled:
                return self._waiting.popleft().events
            self._is_delivering = False
            return None

    def _deliver(self, event: NotificationEvent) -> None:
        for hook in self._hooks:
            try:
                hook.on_event(event)
            except Exception:  # a border: foreign code, whose errors must not undo a commit
                _LOG.exception(
                    "event hook %s failed on event %s (%s)",
                    type(hook).__name__,
                    event.id,
                    event.type,
                )
