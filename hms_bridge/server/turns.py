"""Whose turn it is on a connection: the client's, which may then be closed for another one."""

from __future__ import annotations

import threading

from hms_bridge.clock import Clock, steady_ms


class Turns:
    """One connection: idle between two messages, or busy. A call that began is never cut off."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._idle_since_ms: int | None = None
        self._is_over = False
        self._is_silent = True

    @property
    def is_silent(self) -> bool:
        """Whether no message has come as a whole yet."""
        return self._is_silent

    @property
    def idle_ms(self) -> int:
        """For how long we have waited for the client; 0 while we work."""
        with self._lock:
            return self._idle_ms()

    def rest(self) -> None:
        """It is the client's turn: to send a message, the rest of it, or to take its answer."""
        # Without the lock: whoever ends an idle connection has seen this moment, or the last one.
        self._idle_since_ms = steady_ms(self._clock)

    def work(self) -> bool:
        """A message is here as a whole; false if the connection was given up meanwhile."""
        with self._lock:
            self._idle_since_ms = None
            self._is_silent = False
            return not self._is_over

    def end_if_idle(self, idle_ms: int) -> bool:
        """Give the connection up if it has been idle for so long; whether it was."""
        with self._lock:
            self._is_over = self._idle_since_ms is not None and self._idle_ms() >= idle_ms
            return self._is_over

    def end_if_silent(self) -> bool:
        """Give the connection up if no message has come as a whole yet; whether none had."""
        with self._lock:
            self._is_over = self._is_silent
            return self._is_over

    def _idle_ms(self) -> int:
        if self._idle_since_ms is None:
            return 0
        return steady_ms(self._clock) - self._idle_since_ms
