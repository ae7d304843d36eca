"""Whether silence can be measured: whoever looks for the dead goes by a clock that may be set."""

from __future__ import annotations

from hms_bridge.clock import Clock, steady_ms

STEP_MS = 10_000
"""So much more than what went by is no drift: somebody has set the clock, or the machine slept."""


class Silence:
    """What one process that looks for the dead again and again has seen of the time.

    A heartbeat at 12:00, the clock is set from 12:01 to 13:01: everybody seems to have been silent
    for an hour. So nobody is ended before a time-out has gone by, in which who lives beats again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms: int | None = None
        self._measured_from_ms = 0

    def is_measured(self, now_ms: int, timeout_ms: int) -> bool:
        """Whether everybody who lives has had his time-out to beat in since the last step."""
        steady = steady_ms(self._clock)
        ahead_ms = now_ms - steady
        if self._ahead_ms is not None and ahead_ms > self._ahead_ms + STEP_MS:
            self._measured_from_ms = steady + timeout_ms
        self._ahead_ms = ahead_ms
        return steady >= self._measured_from_ms
