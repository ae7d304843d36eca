"""Calls of many clients on one thread: each goes on until it comes to work that is done for all of
them together, and goes on from there when it is done.

A thread for each would be woken for its part of the work, and again to have the interpreter, which
takes longer than a short call does. Here a call is a greenlet: it stops where its thread would have
waited for others, and nowhere else, so nothing of it runs beside anything else of this thread.

What is not done together must not hold up all others: such a call leaves
(:func:`leave_gathering`), and is made again, from its start, on a thread of its own. That is right
only as long as nothing that it did has come to stay; from then on it goes on here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

from greenlet import getcurrent, greenlet


class Together(Protocol):
    """Does works of several calls at once: :class:`hms_bridge.service.shared_turns.SharedTurns`."""

    size_max: int

    def take_all(self, works: Sequence[Any]) -> None:
        """Of so many at most. Raises what went wrong where it was given a single one."""

    def seconds_for_company(self, count: int) -> float:
        """How long so many are to wait for others."""


class LeftGatheringError(BaseException):
    """This call cannot be made here, and has done nothing. No Exception: whoever answers for any
    fault of a call is not to answer for this."""


class _Place(greenlet):
    """Where one call is made after the other: a new greenlet takes memory from the system.
    ``has_done``: whether something that the call did has come to stay."""

    has_done = False

    def __init__(self, parent: greenlet) -> None:
        super().__init__(self._make_each, parent)

    def _make_each(self, call: Callable[[], None]) -> None:
        assert self.parent is not None
        while True:
            self.has_done = False
            call()
            call = self.parent.switch(None)


@dataclass(frozen=True, slots=True)
class _Waiting:
    place: _Place
    together: Together
    work: Any


class Gathering:
    """The calls of one thread, which makes this and calls all of its methods."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._free: list[_Place] = []
        self._thread_part = getcurrent()

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def begin(self, call: Callable[[], None]) -> None:
        """Make a call, until it waits, or ends. It must not raise anything."""
        place = self._free.pop() if self._free else _Place(self._thread_part)
        self._look(place, place.switch(call))

    @property
    def seconds_for_company(self) -> float:
        """How long those that wait are to wait for others."""
        if not self._waiting:
            return 0.0
        return self._waiting[0].together.seconds_for_company(len(self._waiting))

    def take(self) -> None:
        """Have done together what the first of them wait for, and let each go on."""
        together = self._waiting[0].together
        first = self._waiting[: together.size_max]
        waiting = list(takewhile(lambda call: call.together is together, first))
        del self._waiting[: len(waiting)]
        error: Exception | None = None
        try:
            together.take_all([call.work for call in waiting])
        except Exception as failure:
            error = failure
        for call in waiting:
            if error is not None and len(waiting) == 1:
                self._look(call.place, call.place.throw(error))
            else:
                self._look(call.place, call.place.switch())

    def _look(self, place: _Place, asked: tuple[Together, Any] | None) -> None:
        """What a call waits for, which has stopped; None where it has ended."""
        if asked is None:
            self._free.append(place)
        else:
            self._waiting.append(_Waiting(place, *asked))


def waits_in_gathering(together: Together, work: Any) -> bool:
    """Let work of this call be done with that of others; true when that was tried. False, at once,
    where this is no call of a gathering. Raises what ``take_all`` does."""
    place = getcurrent()
    if not isinstance(place, _Place):
        return False
    assert place.parent is not None
    place.parent.switch((together, work))
    return True


def stay_in_gathering() -> None:
    """Something that this call did has come to stay: it is never made again."""
    place = getcurrent()
    if isinstance(place, _Place):
        place.has_done = True


def leave_gathering() -> None:
    """What comes next may take its time. Raises LeftGatheringError in a call of a gathering that
    has done nothing yet."""
    place = getcurrent()
    if isinstance(place, _Place) and not place.has_done:
        raise LeftGatheringError
