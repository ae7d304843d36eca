"""How old files of an archive truly are, whatever clocks say; clocks of hosts that are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.service.metastore_service import MetastoreService
from tests.simulation.disk import Directory, File
from tests.simulation.scheduler import Actor, Scheduler
from tests.simulation.story import ViolationError
from tests.support.simulated_clock import DAY_MS, SimulatedClock

_DOUBTED_MS = DAY_MS + 600_000
"""Of a step of a clock a day counts, and what two clocks may be apart."""
_LONG_AGO_MS = 100 * DAY_MS


class HostClock:
    """The clock of the host on which the actor at work runs."""

    def __init__(self, clock: SimulatedClock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler

    def now_ms(self) -> int:
        actor = self._scheduler.current
        return self._clock.now_ms() + (actor.ahead_ms if actor else 0)

    def steady_ms(self) -> int:
        return self._clock.steady_ms()

    def sleep_seconds(self, seconds: float) -> None:
        self._clock.sleep_seconds(seconds)


def right_clock(
    clock: SimulatedClock, start_ms: int, services: Sequence[MetastoreService], *, is_set: bool
) -> None:
    """As it was in the beginning. Services remember by how much it was ahead: a step long ago is
    the last one that they see."""
    wrong_ms = clock.now_ms() - clock.steady_ms() - start_ms
    clock.set_back_ms(wrong_ms)
    clock.advance_ms(start_ms - _LONG_AGO_MS - clock.now_ms())
    for step_ms in (-DAY_MS, DAY_MS) if wrong_ms or is_set else ():
        clock.set_back_ms(-step_ms)
        for service in services:
            service.run_housekeeping()
    clock.advance_ms(_LONG_AGO_MS)


class Ages:
    """When files came into an archive, by a clock that nobody sets."""

    def __init__(self, retain_ms: int) -> None:
        self._retain_ms = retain_ms
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

    def too_young(
        self, path: str, file: File, actor: Actor | None, clock: SimulatedClock
    ) -> ViolationError | None:
        """I5 of dumps that nobody here knows, such as Hive's: nothing but its retention keeps a
        file for them. Whoever believes a clock that was set answers for it."""
        known = self._since.get(id(file))
        if known is None or actor is None or not actor.name.startswith("purge"):
            return None
        if self.steps and not actor.name.startswith("purge_daily"):
            return None
        age_ms = clock.steady_ms() - known[1] + self.steps * _DOUBTED_MS
        if age_ms >= self._retain_ms:
            return None
        return ViolationError("I5", f"{path} is purged after {age_ms} ms of {self._retain_ms}")
