"""How fast a load may copy: a token bucket that all its threads draw from."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hms_bridge.clock import Clock, steady_ms

_BURST_SECONDS = 0.25


class TokenBucket:
    """Bytes that may be taken, as many a second as was said, up to a quarter of a second's in
    advance. Pure but for its own level: the time comes with each call. Not for several threads.
    """

    def __init__(self, bytes_per_second: int, now_ms: int) -> None:
        self._rate = bytes_per_second
        self._most = bytes_per_second * _BURST_SECONDS
        self._level = self._most
        self._filled_ms = now_ms

    def take(self, size_bytes: int, now_ms: int) -> float:
        """Take what was just read; how many seconds to wait for it. What is not there yet is owed,
        so whoever comes next waits longer, in turn."""
        gone_ms = max(0, now_ms - self._filled_ms)
        self._filled_ms = max(self._filled_ms, now_ms)
        self._level = min(self._most, self._level + self._rate * gone_ms / 1000) - size_bytes
        return max(0.0, -self._level / self._rate)


class Throttle:
    """Makes the threads of a load wait, so that all together keep to a number of bytes a second."""

    def __init__(self, bytes_per_second: int, clock: Clock) -> None:
        self._bucket = TokenBucket(bytes_per_second, steady_ms(clock))
        self._clock = clock
        self._lock = threading.Lock()

    def __call__(self, size_bytes: int) -> None:
        """Given what was read, returns when more may be."""
        with self._lock:
            seconds = self._bucket.take(size_bytes, steady_ms(self._clock))
        if seconds > 0:
            self._clock.sleep_seconds(seconds)


def throttle(bytes_per_second: int | None, clock: Clock) -> Callable[[int], None]:
    """What makes a load keep to it; None: nothing does."""
    return (lambda _: None) if bytes_per_second is None else Throttle(bytes_per_second, clock)
