"""A log that tests write events and points to, and what they committed, in order."""

from __future__ import annotations

import itertools
import json

from hms_bridge.backend.engine import Database
from hms_bridge.hooks.port import HookPositions
from hms_bridge.model.event import EventType
from hms_bridge.model.hook import HookEvent, HookPosition, PointDraft, PointType
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.message_text import MessageFormat
from hms_bridge.service.hook_positions import StoredPositions
from hms_bridge.service.hooks import HookDispatcher
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork
from tests.support.faults import CrashError, FaultPlan
from tests.support.simulated_clock import SimulatedClock


class Silent:
    """A hook that is registered, so that points are written."""

    def on_event(self, event: HookEvent) -> None:
        """Heard."""


class HookedLog:
    """``committed``: the numbers in the messages of what was committed, in the order of commits."""

    def __init__(self, database: Database) -> None:
        self.clock = SimulatedClock()
        self.transactions = Transactions(
            database,
            self.clock,
            message_format=MessageFormat.JSON,
            hooks=HookDispatcher([("silent", Silent())], new_id=lambda: "nobody", kept_by=""),
        )
        self.positions = StoredPositions(self.transactions)
        self.committed: list[int] = []
        self._numbers = itertools.count(1)

    def write(self, kinds: str, *, is_killed: bool = False) -> None:
        """A transaction with an event for each ``e`` and a point for each ``p``. Of what is killed
        before its commit nobody may ever hear."""
        written = [(kind, next(self._numbers)) for kind in kinds]

        def work(unit: UnitOfWork) -> None:
            unit.events += [_event(number) for kind, number in written if kind == "e"]
            unit.points += [_point(number) for kind, number in written if kind == "p"]

        def die(unit: UnitOfWork) -> None:
            work(unit)
            raise CrashError("before the commit")

        if is_killed:
            try:
                self.transactions.write(die)
            except CrashError:
                return
        self.transactions.write(work)
        events_first = sorted(written, key=lambda item: item[0])
        self.committed += [number for _, number in events_first]


def _event(number: int) -> EventDraft:
    return EventDraft(type=EventType.RELOAD, message={"number": number})


def _point(number: int) -> PointDraft:
    return PointDraft(type=PointType.TEST, message={"number": number})


def number_of(event: HookEvent) -> int:
    """Which one it is."""
    number: int = json.loads(event.message)["number"]
    return number


class DyingPositions:
    """The process dies before or after one of its transactions."""

    def __init__(self, positions: HookPositions, faults: FaultPlan) -> None:
        self._positions = positions
        self._faults = faults

    def register(self, name: str) -> None:
        self._faults.around("register", lambda: self._positions.register(name))

    def take(self, name: str, owner: str) -> HookPosition | None:
        return self._faults.around("take", lambda: self._positions.take(name, owner))

    def advance(self, name: str, owner: str, since: HookPosition, last: HookPosition) -> bool:
        return self._faults.around(
            "advance", lambda: self._positions.advance(name, owner, since, last)
        )

    def release(self, name: str, owner: str) -> None:
        self._faults.around("release", lambda: self._positions.release(name, owner))

    def following(
        self, last: HookPosition, limit: int
    ) -> tuple[HookPosition, tuple[HookEvent, ...]]:
        return self._faults.around("following", lambda: self._positions.following(last, limit))


class Hearer:
    """Remembers what it heard; hears no more when its process is dead, and fails when told to."""

    def __init__(self) -> None:
        self.heard: list[HookEvent] = []
        self.faults = FaultPlan()
        self.failures = 0

    def on_event(self, event: HookEvent) -> None:
        if self.faults.is_dead:
            return
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody is there")
        self.heard.append(event)
        try:
            self.faults.point("heard")
        except CrashError:
            return  # the teller finds out at its next step
