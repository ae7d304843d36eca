"""How old files of an archive truly are, whatever clocks say; clocks of hosts that are wrong."""

from __future__ import annotations

from tests.simulation.disk import Directory, File
from tests.simulation.scheduler import Scheduler
from tests.support.simulated_clock import DAY_MS, SimulatedClock

_DOUBTED_MS = DAY_MS + 600_000
"""Of a step of a clock a day counts, and what two clocks may be apart."""


class HostClock:
    """The clock of the host on which the actor at work runs."""

    def __init__(self, clock: SimulatedClock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self.sleep_seconds = clock.sleep_seconds
        self.steady_ms = clock.steady_ms

    def now_ms(self) -> int:
        actor = self._scheduler.current
        return self._clock.now_ms() + (actor.ahead_ms if actor else 0)


class Ages:
    """When files came into an archive, by a clock that nobody sets."""

    def __init__(self) -> None:
        self.steps = 0
        """How often somebody set a clock."""
        self._since: dict[int, tuple[File, int]] = {}

    def note(self, archive: Directory, now_ms: int) -> None:
        """What is there now and was not at the last look."""
        for file in archive.names.values():
            if isinstance(file, File):
                self._since.setdefault(id(file), (file, now_ms))

    def renew(self, file: File, now_ms: int) -> None:
        """Somebody archived it again."""
        self._since[id(file)] = file, now_ms

    def at_most_ms(self, file: File, now_ms: int) -> int | None:
        """What may be believed of its age; None if nobody has seen it there."""
        known = self._since.get(id(file))
        return None if known is None else now_ms - known[1] + self.steps * _DOUBTED_MS
