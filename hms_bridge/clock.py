"""Time as a port: everything that asks for the time is given a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time. Milliseconds since the epoch, as Hive's transaction tables keep it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""
        ...

    def sleep_seconds(self, seconds: float) -> None:
        """Wait; a simulated clock moves forward instead."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""
        return time.time_ns() // 1_000_000

    def sleep_seconds(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)
