"""Actors as threads of which one runs at a time, stopped at every operation on disk or database.

The scheduler, and nothing else, says who runs, how far, who fails and who dies: the same steps give
the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FOREVER = 1 << 30


class CrashError(BaseException):
    """The process dies here: no clean-up of its code may have any effect from now on."""


class SlowError(Exception):
    """An actor made more steps than any honest one, or none at all."""


STEPS_MAX = 20_000
STANDSTILL_SECONDS = 300.0
"""Of real time: so long no actor computes between two points."""


def _closed_gate() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


class Actor:
    """One process. It runs until its budget of points is used up, or it is told to die."""

    def __init__(
        self, scheduler: Scheduler, number: int, name: str, work: Callable[[], None]
    ) -> None:
        self.number = number
        self.name = name
        self.error: BaseException | None = None
        self.is_done = False
        self.is_dead = False
        self.is_stalled = False
        self.is_refused = False
        """Its transaction had ended when it gave a sign of life, and it has no other."""
        self.stalled_ms = 0
        self.points = 0
        self.budget = 0
        self.fault: OSError | None = None
        self.fault_count = 1
        self.database_fault: Exception | None = None
        self.is_broken_late = False
        """The transaction is committed, and who asked for it does not hear of it."""
        self.delay_ms = 0
        self.ahead_ms = 0
        """So much is its host's clock ahead of the others."""
        self.label = "start"
        self._scheduler = scheduler
        self._work = work
        self._go = _closed_gate()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return not self.is_done

    def resume(self, budget: int) -> None:
        """Run for so many points; back when they are used up or the actor has ended."""
        self.budget = budget
        self._scheduler.current = self
        self._go.release()
        if not self._scheduler.handed_back.acquire(timeout=STANDSTILL_SECONDS):
            self.error = SlowError(f"waits for another actor, which stalls: {self.label}")
            self.is_done = True
        self._scheduler.current = None

    def wait(self) -> None:
        """Give control back, and wait to be resumed."""
        self._scheduler.handed_back.release()
        self._go.acquire()

    def owns_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.is_dead:
                self._work()
        except CrashError:
            pass
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._scheduler.handed_back.release()


class Scheduler:
    """All actors of one run."""

    def __init__(self) -> None:
        self.on_delay: Callable[[Actor], None] = lambda _: None
        self.handed_back = _closed_gate()
        self.restart()

    def restart(self) -> None:
        """Nobody has run yet."""
        self.current: Actor | None = None
        self.actors: dict[int, Actor] = {}
        self.kill_count = 0
        self.point_count = 0
        self._atomic = 0

    def spawn(self, number: int, name: str, work: Callable[[], None]) -> Actor:
        self.actors[number] = Actor(self, number, name, work)
        return self.actors[number]

    @property
    def living(self) -> list[Actor]:
        return [one for one in self.actors.values() if one.is_alive]

    def point(self, label: str, path: str = "", changes: bool = True) -> None:
        """Every operation on disk and database comes by here before it is done."""
        actor = self.current
        if actor is None or not actor.owns_this_thread():
            return
        if actor.is_dead:
            raise CrashError(label)
        if self._atomic:
            return
        self.point_count += 1
        actor.points += 1
        actor.label = f"{label} {path}"
        if actor.points > STEPS_MAX:
            raise SlowError(f"{actor.name} does not come to an end: {actor.label}")
        if actor.budget <= 0:
            actor.wait()
            if actor.is_dead:
                raise CrashError(label)
        actor.budget -= 1
        if path and actor.delay_ms:
            self.on_delay(actor)
        if actor.fault is not None and path:
            fault = actor.fault
            actor.fault_count -= 1
            if actor.fault_count <= 0:
                actor.fault = None
            raise fault
        due = {"after commit"} if actor.is_broken_late else {"commit", "read"}
        if actor.database_fault is not None and label in due:
            broken, actor.database_fault = actor.database_fault, None
            raise broken

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Nobody else runs: a database transaction holds the one write lock."""
        self._atomic += 1
        try:
            yield
        finally:
            self._atomic -= 1

    def kill(self, actor: Actor) -> None:
        """Die where it stands; what it would still do finds the process dead."""
        if actor.is_alive:
            actor.is_dead = True
            self.kill_count += 1
            actor.resume(FOREVER)
