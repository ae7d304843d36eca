"""Event hooks: Python objects that hear of every event, after its commit and at least once.

Each has a thread, which reads NOTIFICATION_LOG, and the points between its events, from the hook's
own position on: in the order of commits, whoever made them. The position is stored when events were
heard; a hook that was down, failed, or was killed goes on from there. One process at a time tells a
hook of one name. A slow or failing hook holds up nobody, neither clients nor other hooks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from hms_bridge.errors import HmsBridgeError
from hms_bridge.hooks.port import EventHook, HookPositions, NotHeardError
from hms_bridge.model.hook import HookEvent, HookPosition, after, just_before

_LOG = logging.getLogger(__name__)

BATCH = 100
"""Events that are read at once; each has its message with it."""

POLL_SECONDS = 1.0
"""How long an event of another process may stay unheard."""

STORE_SECONDS = 1.0
"""How much of what was heard may be heard again after a kill."""

RENEW_SECONDS = 5.0
"""How long the process that has a hook is silent when nothing happens: well below HOLD_MS."""

RETRY_SECONDS_MAX = 60.0

CLOSE_SECONDS = 10.0
"""How long the end of the process waits for hooks."""


class HookDispatcher:
    """Tells hooks of events, each on a thread of its own: a client never waits for one.

    ``kept_by``: the setting that says how long events are kept."""

    def __init__(
        self,
        hooks: Sequence[tuple[str, EventHook]],
        *,
        new_id: Callable[[], str],
        kept_by: str,
    ) -> None:
        self._hooks = tuple(hooks)
        self._new_id = new_id
        self._kept_by = kept_by
        self._tellers: tuple[HookTeller, ...] = ()

    @property
    def has_hooks(self) -> bool:
        """Whether there is anybody to tell."""
        return bool(self._hooks)

    def start(self, positions: HookPositions) -> None:
        """Go on where each hook stopped; a new one begins after the newest event."""
        for name, _ in self._hooks:
            positions.register(name)
        self._tellers = tuple(
            HookTeller(name, hook, positions, self._new_id(), kept_by=self._kept_by)
            for name, hook in self._hooks
        )
        for teller in self._tellers:
            teller.start()

    def wake(self) -> None:
        """Something was committed that hooks hear of."""
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

    def __init__(
        self, name: str, hook: EventHook, positions: HookPositions, owner: str, *, kept_by: str
    ) -> None:
        self._name = name
        self._hook = hook
        self._positions = positions
        self._owner = owner
        self._kept_by = kept_by
        self._last: HookPosition | None = None
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
                self.run_once()
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
                self._stopping.wait(self._pause_seconds())
            else:
                self._news.wait(POLL_SECONDS)
        self._release()

    def _pause_seconds(self) -> float:
        return min(2.0 ** min(self._failures - 1, 30), RETRY_SECONDS_MAX)

    def _release(self) -> None:
        try:
            self._positions.release(self._name, self._owner)
        except HmsBridgeError as error:
            _LOG.warning("event hook %s: %s; another process has to wait", self._name, error)

    def run_once(self) -> None:
        """Tell what there is, unless another process does. Called by the thread of the hook."""
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

    def _deliver(self, last: HookPosition, events: Sequence[HookEvent]) -> bool:
        """Whether to go on with the next ones."""
        for event in events:
            complete = just_before(last, event)
            if complete != last:
                self._say_gone(last, complete)
                last = complete
            if not self._is_heard(event):
                self._store(last)
                return False
            last = after(last, event)
            if self._is_left:
                return False
            if time.monotonic() - self._stored_at > STORE_SECONDS:
                self._store(last)
                if self._last is None:
                    return False
        self._store(last)
        return self._last is not None

    def _is_heard(self, event: HookEvent) -> bool:
        try:
            self._hook.on_event(event)
        except NotHeardError as error:
            self._failures += 1
            _LOG.error(
                "event hook %s has not heard event %s (%s): %s; it is told again in %g s, and no "
                "other event before that",
                self._name,
                event.key,
                event.type,
                error,
                self._pause_seconds(),
            )
            return False
        except BaseException:
            self._failures += 1
            _LOG.exception(
                "event hook %s failed on event %s (%s); it is told again, and no other event "
                "before that",
                self._name,
                event.key,
                event.type,
            )
            return False
        self._failures = 0
        return True

    def _store(self, last: HookPosition) -> None:
        """Who lost the hook to another process goes on from where that one is."""
        since = self._last or last
        is_mine = self._positions.advance(self._name, self._owner, since, last)
        self._last = last if is_mine else None
        self._stored_at = time.monotonic()

    def _say_gone(self, last: HookPosition, until: HookPosition) -> None:
        if until.event_id < last.event_id or until.point_id < last.point_id:
            _LOG.error(
                "event hook %s has heard event %s, but the newest is %s: the log was begun anew, "
                "or is of a backup; it goes on from there, and what was between is not told",
                self._name,
                last,
                until,
            )
            return
        if until.event_id > last.event_id:
            _LOG.error(
                "event hook %s was not told of %d events, from %d to %d: they are purged from the "
                "notification log (%s)",
                self._name,
                until.event_id - last.event_id,
                last.event_id + 1,
                until.event_id,
                self._kept_by,
            )
        if until.point_id > last.point_id:
            _LOG.error(
                "event hook %s was not told of %d points, from %d to %d: they are purged, as old "
                "as events that are",
                self._name,
                until.point_id - last.point_id,
                last.point_id + 1,
                until.point_id,
            )
