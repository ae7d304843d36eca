"""The one loop that calls a daemon's ``run_once`` again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class PeriodicTask:
    """Calls ``run_once`` on a thread of its own, ``interval_seconds`` after it returned last.

    A pass that fails is logged, and the next one comes all the same: a purge or a clean-up must
    not stop for good over one bad moment.
    """

    def __init__(self, name: str, run_once: Callable[[], object], interval_seconds: float) -> None:
        self._name = name
        self._run_once = run_once
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)

    def start(self) -> None:
        """The first pass comes at once, on a thread of its own."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """No pass begins any more."""
        self._stopping.set()

    def stop(self, timeout_seconds: float = 30.0) -> None:
        """Ask it to end, and wait for the pass under way."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                self._run_once()
            except Exception:  # the border of a daemon: one bad pass must not end it
                _LOG.exception("%s: this pass failed; the next comes as usual", self._name)
            self._stopping.wait(self._interval_seconds)
