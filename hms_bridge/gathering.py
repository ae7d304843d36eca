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

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

_log = logging.getLogger(__name__)


class Together(Protocol):
    """Does works of several calls at once: :class:`hms_bridge.service.shared_turns.SharedTurns`."""

    size_max: int

    def take_all(self, works: Sequence[Any]) -> None:
        """Of ``size_max`` at most. What it raises, a single one hears; of several nobody does."""

    def seconds_for_company(self, count: int) -> float:
        """How long so many are to wait for others."""


class LeftGatheringError(BaseException):
    """This call cannot be made here, and has done nothing. ``has_waited``: it was tried with
    others, and may be another time. No Exception: whoever answers for any fault of a call is not to
    answer for this."""

    def __init__(self, *, has_waited: bool) -> None:
        super().__init__()
        self.has_waited = has_waited


class _Seat(greenlet):
    """Where one call is made after the other: a new greenlet takes memory from the system.
    ``has_waited``: whether the call was done with others, or tried to be; ``has_done``: whether
    something that it did has come to stay."""

    has_waited = False
    has_done = False

    def __init__(self, parent: greenlet) -> None:
        super().__init__(self._make_each, parent)
        self.switch()  # up to its first call: a greenlet keeps what it begins with

    def _make_each(self) -> None:
        assert self.parent is not None
        while True:
            call: Callable[[], None] = self.parent.switch(None)
            self.has_waited = self.has_done = False
            call()
            del call  # and its client with it


@dataclass(frozen=True, slots=True)
class _Waiting:
    seat: _Seat
    together: Together
    work: Any


class Gathering:
    """The calls of one thread, which makes this and calls all of its methods."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._free: list[_Seat] = []
        self._thread_part = getcurrent()

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def begin(self, call: Callable[[], None]) -> None:
        """Make a call, until it waits, or ends. It must not raise anything, so it sees to a
        LeftGatheringError itself."""
        seat = self._free.pop() if self._free else _Seat(self._thread_part)
        self._look(seat, seat.switch(call))

    def close(self) -> None:
        """No call comes any more, and none waits. A seat that is stopped keeps itself otherwise,
        and all that it has seen."""
        while self._free:
            self._free.pop().throw()

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
        # The border: what was not done, each does by itself, and hears what is wrong.
        except Exception as failure:
            error = failure
            if len(waiting) > 1:
                _log.exception("what came together was not done so")
        for call in waiting:
            if error is not None and len(waiting) == 1:
                self._look(call.seat, call.seat.throw(error))
            else:
                self._look(call.seat, call.seat.switch())

    def _look(self, seat: _Seat, asked: tuple[Together, Any] | None) -> None:
        """What a call waits for, which has stopped; None where it has ended."""
        if asked is None:
            self._free.append(seat)
        else:
            self._waiting.append(_Waiting(seat, *asked))


def do_in_gathering(together: Together, work: Any) -> bool:
    """Let work of this call be done with that of others; true when that was tried. False, at once,
    where this is no call of a gathering. Raises what ``take_all`` does."""
    seat = getcurrent()
    if not isinstance(seat, _Seat):
        return False
    assert seat.parent is not None
    seat.has_waited = True
    seat.parent.switch((together, work))
    return True


def stay_in_gathering() -> None:
    """Something that this call did has come to stay: it is never made again."""
    seat = getcurrent()
    if isinstance(seat, _Seat):
        seat.has_done = True


def leave_gathering() -> None:
    """What comes next may take its time. Raises LeftGatheringError in a call of a gathering that
    has done nothing yet."""
    seat = getcurrent()
    if isinstance(seat, _Seat) and not seat.has_done:
        raise LeftGatheringError(has_waited=seat.has_waited)
