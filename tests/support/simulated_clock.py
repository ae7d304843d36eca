"""A clock that a test moves."""

from __future__ import annotations


class SimulatedClock:
    """Stands still until it is moved, or somebody sleeps."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms
        self.slept_seconds: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def sleep_seconds(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        self.advance_ms(int(seconds * 1000))

    def advance_ms(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
