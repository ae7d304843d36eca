"""A clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod

START_MS = 1_700_000_000_000
DAY_MS = 86_400_000


class SimulatedClock:
    """Stands still until it is moved, or somebody sleeps."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._now_ms = start_ms
        self._steady_ms = 0
        self.slept_seconds: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self._watchers: list[WeakMethod[Callable[[], object]]] = []
        self._watched_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def sleep_seconds(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        self.advance_ms(int(seconds * 1000))
        self.on_sleep()

    def steady_ms(self) -> int:
        return self._steady_ms

    def watch(self, look: Callable[[], object]) -> None:
        """Call a method once a day, as a server looks at its clock that is up all the time; for as
        long as somebody else holds its object, which would keep its database open otherwise."""
        self._watchers.append(WeakMethod(look))

    def watch_no_more(self) -> None:
        """No server is up."""
        self._watchers.clear()

    def advance_ms(self, milliseconds: int) -> None:
        self._steady_ms += milliseconds
        while self._watchers and self._now_ms + milliseconds > self._watched_ms + DAY_MS:
            milliseconds -= self._watched_ms + DAY_MS - self._now_ms
            self._now_ms = self._watched_ms = self._watched_ms + DAY_MS
            for watcher in self._watchers:
                if look := watcher():
                    look()
        self._now_ms += milliseconds

    def set_back_ms(self, milliseconds: int) -> None:
        """Somebody corrects the time; no time passes."""
        self._now_ms -= milliseconds
        self._watched_ms = self._now_ms
