"""Stand in front of a metastore, a store or a volume, and pass on what is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hms_bridge.model.event import NotificationEvent, NotificationRequest


class Passing:
    """Answers as ``inner`` does, but for the methods that a subclass has."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Interrupted(Passing):
    """Something happens just before one of the calls, or just after it, so many times."""

    def __init__(
        self,
        inner: Any,
        action: Callable[[], object],
        times: int = 1,
        *,
        before: str = "",
        after: str = "",
    ) -> None:
        super().__init__(inner)
        self.times = times
        self._action = action
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if name not in (self._before, self._after):
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            if name == self._before:
                self._act()
            answer = method(*arguments, **named)
            if name == self._after:
                self._act()
            return answer

        return call

    def _act(self) -> None:
        if self.times > 0:
            self.times -= 1
            self._action()


class Counting(Passing):
    """Counts the calls of a metastore."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return method(*arguments, **named)

        return call


class Purged(Passing):
    """A metastore whose log begins after an event."""

    def __init__(self, inner: Any, last_purged: int) -> None:
        super().__init__(inner)
        self._last_purged = last_purged

    def get_next_notification(self, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
        found = self.inner.get_next_notification(request)
        return tuple(event for event in found if event.id > self._last_purged)
