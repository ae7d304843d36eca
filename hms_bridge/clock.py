"""Time as a port: everything that asks for the time is given a clock."""

from __future__ import annotations

import time
from functools import cache
from typing import Protocol, cast, runtime_checkable


class Clock(Protocol):
    """The time. Milliseconds since the epoch, as Hive's transaction tables keep it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""

    def sleep_seconds(self, seconds: float) -> None:
        """Wait; a simulated clock moves forward instead."""


@runtime_checkable
class SteadyClock(Protocol):
    """A clock whose time may be set, and which can measure durations all the same."""

    def steady_ms(self) -> int:
        """Milliseconds since some moment; goes forward only, whatever is done to the time."""


def steady_ms(clock: Clock) -> int:
    """What to measure durations and waits with; a clock that nobody sets back needs no more than
    its time."""
    if _is_steady(type(clock)):
        return cast("SteadyClock", clock).steady_ms()
    return clock.now_ms()


@cache
def _is_steady(kind: type) -> bool:
    # Asked once a class: to compare with a protocol takes longer than a statement of a verb.
    return issubclass(kind, SteadyClock)


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Milliseconds of the machine's monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def sleep_seconds(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)
