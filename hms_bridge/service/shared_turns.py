"""Of those who come at the same time, one does the work of all.

Who finds nobody at work does its own at once, alone. Who comes meanwhile waits; when the one at
work is done, the first of those who wait does the work of all of them together. So company comes by
itself where there is a crowd.

In a crowd all whose work was done come back together, but for the one who leads already: one turn
for one, then one for all others, and so on for ever. So where there was company of late, who leads
waits for it, for a moment that is short beside a turn; who is alone twice waits no more.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")


class _Place(Generic[T]):
    """One who has come, with work of one or of several. ``called`` is held until it leads, or until
    its work was done; then it calls the ``following`` one, whose work was done, too."""

    __slots__ = ("called", "following", "leads", "works")

    def __init__(self, works: Sequence[T], *, leads: bool) -> None:
        self.works = works
        self.leads = leads
        self.following: _Place[T] | None = None
        self.called = threading.Lock()
        self.called.acquire()


class SharedTurns(Generic[T]):
    """``do`` is given up to ``size_max`` works at once, by one thread at a time.

    A turn waits ``company_seconds`` at most for as many as there were of late.
    Who has waited for ``patience_seconds`` goes on without the others, and so does, at once, who
    comes before the one at work has come to an end: what holds up one must not hold up all.
    Threads must not be interrupted while they wait; in Python only the main thread ever is.
    """

    def __init__(
        self,
        do: Callable[[Sequence[T]], None],
        *,
        size_max: int,
        patience_seconds: float,
        company_seconds: float = 0.0,
    ) -> None:
        self.size_max = size_max
        self._do = do
        self._patience_seconds = patience_seconds
        self._company_seconds = company_seconds
        self._expected = 1
        self._all_here: threading.Lock | None = None
        self._lock = threading.Lock()
        self._waiting: deque[_Place[T]] = deque()
        self._is_led = False
        self._is_stalled = False

    def take(self, work: T) -> bool:
        """Returns when ``do`` has returned that was given this work; false if it never was given.

        What ``do`` raises, the thread hears that ran it, and nobody else.
        """
        return self._take((work,), waits_for_company=True)

    def take_all(self, works: Sequence[T]) -> None:
        """As :meth:`take`, for several who have come together, ``size_max`` at most. Whoever has
        gathered them has waited for company."""
        self._take(works, waits_for_company=False)

    def seconds_for_company(self, count: int) -> float:
        """How long so many are to wait for others; 0 where they are as many as of late."""
        return self._company_seconds if count < self._expected else 0.0

    def _take(self, works: Sequence[T], *, waits_for_company: bool) -> bool:
        with self._lock:
            if self._is_led and self._is_stalled:
                return False
            place = _Place(works, leads=not self._is_led)
            if self._is_led:
                self._waiting.append(place)
                self._greet()
            self._is_led = True
        if not place.leads and not self._is_called(place):
            return False
        if place.leads:
            if waits_for_company:
                self._wait_for_company()
            self._lead(place)
        return True

    def _is_called(self, place: _Place[T]) -> bool:
        if not place.called.acquire(timeout=self._patience_seconds):
            with self._lock:
                if place in self._waiting:
                    self._waiting.remove(place)
                    self._is_stalled = True
                    return False
            place.called.acquire()
        if place.following is not None:
            place.following.called.release()
        return True

    def _greet(self) -> None:
        """The caller holds the lock."""
        if self._all_here is not None and self._company() >= self._expected:
            self._all_here.release()
            self._all_here = None

    def _company(self) -> int:
        """How many pieces of work are here, with that of a single one who leads. The caller holds
        the lock."""
        return 1 + sum(len(place.works) for place in self._waiting)

    def _wait_for_company(self) -> None:
        with self._lock:
            if self._company_seconds <= 0 or self._company() >= self._expected:
                return
            all_here = self._all_here = threading.Lock()
            all_here.acquire()
        all_here.acquire(timeout=self._company_seconds)
        with self._lock:
            self._all_here = None

    def _lead(self, first: _Place[T]) -> None:
        works = list(first.works)
        others: list[_Place[T]] = []
        with self._lock:
            while self._waiting and len(works) + len(self._waiting[0].works) <= self.size_max:
                others.append(self._waiting.popleft())
                works += others[-1].works
            # Falls by one at a time: one who was late once is waited for again.
            self._expected = max(len(works), self._expected - 1)
        try:
            self._do(works)
        finally:
            self._call_next()
            _call_one_by_one(others)

    def _call_next(self) -> None:
        with self._lock:
            self._is_stalled = False
            following = self._waiting.popleft() if self._waiting else None
            self._is_led = following is not None
        if following is not None:
            following.leads = True
            following.called.release()


def _call_one_by_one(places: Sequence[_Place[T]]) -> None:
    """The first of them, which calls the next. Only one at a time has the interpreter: if all were
    called at once, each would be woken to wait for it, and again to have it."""
    for place, following in pairwise(places):
        place.following = following
    if places:
        places[0].called.release()
