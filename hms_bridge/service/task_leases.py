"""Claims on file tasks, kept for as long as the work goes on: to copy a directory may take hours.

A claim runs out after CLAIM_MS without a beat; then its task is anyone's, so a dead process keeps
nobody waiting. Who was only slow and lost its claim hears so before its next step, and stops.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from changemanager.clock import span_text
from changemanager.errors import LeaseLostError
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError

_LOG = logging.getLogger(__name__)

CLAIM_MS = 600_000
"""How long a process may be silent before another one takes its tasks over."""
BEAT_MS = CLAIM_MS // 5


class TaskLeases:
    """The claims of this process. ``renew`` lengthens one; False if it is another's now."""

    def __init__(self, renew: Callable[[FileTask], bool], clock: Clock) -> None:
        self._renew = renew
        self._clock = clock
        self._lock = threading.Lock()
        self._beaten_ms: dict[str, int] = {}
        self._held: dict[str, FileTask] = {}
        self._stopping: threading.Event | None = None

    @contextmanager
    def held(self, tasks: Sequence[FileTask]) -> Iterator[None]:
        """Beat for claimed tasks while the block runs."""
        now_ms = self._clock.now_ms()
        with self._lock:
            self._held |= {task.id: task for task in tasks}
            self._beaten_ms |= dict.fromkeys((task.id for task in tasks), now_ms)
            if tasks and self._stopping is None:
                self._stopping = threading.Event()
                threading.Thread(
                    target=self._beat, args=(self._stopping,), name="file tasks", daemon=True
                ).start()
        try:
            yield
        finally:
            with self._lock:
                for task in tasks:
                    self._held.pop(task.id, None)
                    self._beaten_ms.pop(task.id, None)
                if not self._held and self._stopping is not None:
                    self._stopping.set()
                    self._stopping = None

    def check(self, task: FileTask) -> None:
        """Before a step: raises LeaseLostError if the task is another's now."""
        beaten_ms = self._beaten_ms.get(task.id)
        if beaten_ms is not None and 0 <= self._clock.now_ms() - beaten_ms < BEAT_MS:
            return
        now_ms = self._clock.now_ms()
        if not self._renew(task):
            raise LeaseLostError(
                f"{task.location}: another process took this over, because nothing was heard of "
                f"this one for {span_text(CLAIM_MS)}; it goes on from here"
            )
        with self._lock:
            if task.id in self._held:
                self._beaten_ms[task.id] = now_ms

    def _beat(self, stopping: threading.Event) -> None:
        while not stopping.wait(BEAT_MS / 1000):
            with self._lock:
                tasks = list(self._held.values())
            for task in tasks:
                try:
                    self.check(task)
                except LeaseLostError as error:
                    _LOG.warning("%s", error)
                except HmsBridgeError as error:
                    _LOG.warning("the claim on %s was not renewed: %s", task.location, error)
