"""Event hooks: Python objects that hear of every event, after its commit and at least once.

Each has a thread, which reads NOTIFICATION_LOG from the hook's own position on: in the order of
event ids, whoever committed them. The position is stored when events were heard; a hook that was
down, failed, or was killed goes on from there. One process at a time tells a hook of one name. A
slow or failing hook holds up nobody, neither clients nor other hooks.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_bridge.errors import ConfigError, HmsBridgeError
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import EventId

_LOG = logging.getLogger(__name__)

BATCH = 100
"""Events that are read at once; each has its message with it."""

POLL_SECONDS = 1.0
"""How long an event of another process may stay unheard."""

STORE_SECONDS = 1.0
"""How much of what was heard may be heard again after a kill."""

RENEW_SECONDS = 5.0
RETRY_SECONDS_MAX = 60.0

CLOSE_SECONDS = 10.0
"""How long the end of the process waits for hooks."""

NAME_LENGTH_MAX = 255


class EventHook(Protocol):
    """What is called for each event."""

    def on_event(self, event: NotificationEvent) -> None:
        """One event, committed. It is called on a thread that does nothing else; again later,
        before any other event, if it raises."""
        ...


class HookPositions(Protocol):
    """Where hooks are, and what follows; each call is a transaction."""

    def register(self, name: str) -> None:
        """A new hook hears what comes from now on."""
        ...

    def take(self, name: str, owner: str) -> EventId | None:
        """The last event that was heard; None if another process tells this hook."""
        ...

    def advance(self, name: str, owner: str, last: EventId) -> bool:
        """False if another process tells this hook now."""
        ...

    def release(self, name: str, owner: str) -> None:
        """Let another process tell it."""
        ...

    def following(self, last: EventId, limit: int) -> tuple[EventId, tuple[NotificationEvent, ...]]:
        """The newest id there is, and the first events after one."""
        ...


def load_hooks(names: Sequence[str]) -> tuple[EventHook, ...]:
    """Hooks named ``module:attribute``; a class, or a function without arguments, is called.

    Raises ConfigError for what cannot be imported or is no hook.
    """
    return tuple(_load_hook(name) for name in names)


def named_hooks(
    names: Sequence[str], hooks: Sequence[EventHook] = ()
) -> tuple[tuple[str, EventHook], ...]:
    """Hooks of settings and of a program, under the names that their positions are stored by:
    what the setting says, or the class. Of several of one name the second is ``NAME#2``.

    Raises ConfigError, as :func:`load_hooks`, and for a name that is too long.
    """
    loaded = zip(names, load_hooks(names), strict=True)
    given = ((f"{type(hook).__module__}:{type(hook).__qualname__}", hook) for hook in hooks)
    seen: Counter[str] = Counter()
    registered = []
    for name, hook in (*loaded, *given):
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        if len(unique) > NAME_LENGTH_MAX:
            raise ConfigError(
                f"event hook '{unique}': a name has at most {NAME_LENGTH_MAX} characters"
            )
        registered.append((unique, hook))
    return tuple(registered)


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


class HookDispatcher:
    """Tells hooks of events, each on a thread of its own: a client never waits for one."""

    def __init__(
        self,
        hooks: Sequence[tuple[str, EventHook]],
        *,
        new_id: Callable[[], str],
    ) -> None:
        self._hooks = tuple(hooks)
        self._new_id = new_id
        self._tellers: tuple[HookTeller, ...] = ()

    def start(self, positions: HookPositions) -> None:
        """Go on where each hook stopped; a new one begins after the newest event."""
        for name, _ in self._hooks:
            positions.register(name)
        self._tellers = tuple(
            HookTeller(name, hook, positions, self._new_id()) for name, hook in self._hooks
        )
        for teller in self._tellers:
            teller.start()

    def committed(self, events: Sequence[NotificationEvent]) -> None:
        """There is news; none is told before its commit."""
        if events:
            for teller in self._tellers:
                teller.wake()

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Let hooks hear what was committed until now, for this long at most."""
        deadline = time.monotonic() + timeout_seconds
        for teller in self._tellers:
            teller.ask_to_stop()
        for teller in self._tellers:
            teller.join(max(0.0, deadline - time.monotonic()))


class HookTeller:
    """The thread of one hook. ``owner`` is a text that nobody else has."""

    def __init__(self, name: str, hook: EventHook, positions: HookPositions, owner: str) -> None:
        self._name = name
        self._hook = hook
        self._positions = positions
        self._owner = owner
        self._last: EventId | None = None
        self._stored_at = 0.0
        self._failures = 0
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._is_left = False
        self._thread = threading.Thread(target=self._loop, name=f"event-hook {name}", daemon=True)

    def start(self) -> None:
        """Deliver on a thread of its own, until the dispatcher is closed."""
        self._thread.start()

    def wake(self) -> None:
        """Look for events at once."""
        self._news.set()

    def ask_to_stop(self) -> None:
        """One more pass: what is committed by now is told."""
        self._stopping.set()
        self._news.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end; who is not at the end by then is left alone."""
        if self._thread is threading.current_thread():
            return
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            self._is_left = True
            _LOG.warning(
                "event hook %s is still busy at the end; it is told again, and of what came "
                "after, when this starts again",
                self._name,
            )

    def _loop(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stopping.is_set()
            self._news.clear()
            try:
                self._pass()
            except Exception as error:  # the border of a thread: events must not stay unheard
                self._last = None
                self._failures += 1
                is_ours = isinstance(error, HmsBridgeError)
                _LOG.warning(
                    "event hook %s cannot be told now: %s", self._name, error, exc_info=not is_ours
                )
            if self._is_left:
                return
            if self._failures:
                self._stopping.wait(min(2.0 ** (self._failures - 1), RETRY_SECONDS_MAX))
            else:
                self._news.wait(POLL_SECONDS)
        self._release()

    def _release(self) -> None:
        try:
            self._positions.release(self._name, self._owner)
        except HmsBridgeError as error:
            _LOG.warning("event hook %s: %s; another process has to wait", self._name, error)

    def _pass(self) -> None:
        """Tell what there is, unless another process does."""
        if self._last is None or time.monotonic() - self._stored_at > RENEW_SECONDS:
            self._last = self._positions.take(self._name, self._owner)
            self._stored_at = time.monotonic()
        while self._last is not None and not self._is_left:
            newest, events = self._positions.following(self._last, BATCH)
            if not events:
                if newest != self._last:
                    self._say_gone(self._last, newest)
                    self._store(newest)
                self._failures = 0
                return
            if not self._deliver(self._last, events):
                return

    def _deliver(self, last: EventId, events: Sequence[NotificationEvent]) -> bool:
        """Whether to go on with the next ones."""
        for event in events:
            if event.id > last + 1:
                self._say_gone(last, EventId(event.id - 1))
                last = EventId(event.id - 1)
            if not self._is_heard(event):
                self._store(last)
                return False
            last = event.id
            if self._is_left:
                return False
            if time.monotonic() - self._stored_at > STORE_SECONDS:
                self._store(last)
                if self._last is None:
                    return False
        self._store(last)
        return self._last is not None

    def _is_heard(self, event: NotificationEvent) -> bool:
        try:
            self._hook.on_event(event)
        except BaseException:
            self._failures += 1
            _LOG.exception(
                "event hook %s failed on event %d (%s); it is told again, and no other event "
                "before that",
                self._name,
                event.id,
                event.type,
            )
            return False
        self._failures = 0
        return True

    def _store(self, last: EventId) -> None:
        """Who lost the hook to another process goes on from where that one is."""
        is_mine = self._positions.advance(self._name, self._owner, last)
        self._last = last if is_mine else None
        self._stored_at = time.monotonic()

    def _say_gone(self, last: EventId, until: EventId) -> None:
        if until < last:
            _LOG.error(
                "event hook %s has heard event %d, but the newest is %d: the log was begun anew, "
                "or is of a backup; it goes on from there, and what was between is not told",
                self._name,
                last,
                until,
            )
            return
        _LOG.error(
            "event hook %s was not told of %d events, from %d to %d: they are purged from the "
            "notification log (hive.metastore.event.db.listener.timetolive)",
            self._name,
            until - last,
            last + 1,
            until,
        )
