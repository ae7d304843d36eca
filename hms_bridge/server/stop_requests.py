"""Signals that ask a process to stop, as something that its main thread waits for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGINT)
_MANY = 4096


class StopRequests:
    """SIGTERM and Ctrl-C. ``on_second`` is called, in the signal's handler, for each that comes
    after the first. ``heeded``: the signals that ask; the others of them ask for nothing.

    A pipe, and no lock: the handler runs between any two steps of the thread that would hold it.
    The interpreter writes to the pipe, too, in whichever thread the system has interrupted: while
    a process is stopped (SIGSTOP, ``docker pause``) that may be another one than the main thread,
    which then would sleep on with a request in its pocket.
    """

    def __init__(
        self,
        on_second: Callable[[], None],
        heeded: Sequence[signal.Signals] = STOPPING,
    ) -> None:
        self._on_second = on_second
        self._heeded = heeded
        self._is_asked = False
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._rope, False)

    @property
    def is_asked(self) -> bool:
        """Whether one has come."""
        return self._is_asked

    def listen(self) -> None:
        """Hear signals from now on, in the main thread; again after others took them over."""
        signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)
        for number in STOPPING:
            signal.signal(number, self._note if number in self._heeded else signal.SIG_IGN)

    def wait(self, timeout_seconds: float | None = None, also: Sequence[int] = ()) -> bool:
        """Until one has come, or one of some descriptors can be read, or the time is over; whether
        one has come."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while not self._is_asked:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._bell not in wait([self._bell, *also], left):
                break
            os.read(self._bell, _MANY)  # perhaps a signal that is another one's to handle
        return self._is_asked

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_asked:
            self._on_second()
        self._is_asked = True
        with suppress(BlockingIOError):
            os.write(self._rope, b".")
