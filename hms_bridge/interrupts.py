"""Lets Ctrl-C wait until what must not be cut in two has come to its end."""

from __future__ import annotations

# What `signal` is written over: in Python 3.11 its own functions look for an enumeration's member
# that a handler is, and fail, which takes longer than all else of a short block.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (int(signal.SIGINT), int(signal.SIGTERM))


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends a block as Ctrl-C does: also that of a container's first process, which the
    system spares otherwise."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class HeldInterrupts:
    """A block, in the main thread, whose interrupts are raised when it is left or released.

    For short work: between any two steps of Python an interrupt may come, also between taking
    something and remembering that it was taken. A second one of the same kind does not wait.
    Signals without a handler of Python's do what they always do. In other threads, which get no
    signals, nothing is held.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._waiting: dict[int, FrameType | None] = {}

    def __enter__(self) -> HeldInterrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = _signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    _signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let interrupts through from now on: first the one that came meanwhile."""
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) == self._note:  # else somebody has set a newer one
                _signal.signal(number, handler)
        while self._waiting:
            number, frame = self._waiting.popitem()
            self._handlers[number](number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._waiting:
            self._waiting[number] = frame
            return
        del self._waiting[number]
        self._handlers[number](number, frame)
