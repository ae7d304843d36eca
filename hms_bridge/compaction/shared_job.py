"""What several workers of one process do at the same time.

On Spark their entries go as one job, which costs what one would. A job begins with what waits at
that moment, and others gather while it runs; nobody waits for more to come. Each entry keeps its
own transaction, its own worker and its own end: only the tasks travel together.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from hms_bridge.compaction.executor import (
    CompactionExecutor,
    CompactionJob,
    EntryTasks,
    TaskResult,
)
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError

ENTRIES_MAX = 64
"""In one job. All workers of one server, at most."""

JOBS_AT_ONCE = 2
"""While the last tasks of one job run, the next one uses what is free."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """An entry from its call to its answer."""

    entry: EntryTasks
    answer: tuple[TaskResult, ...] | CompactionError | None = None


@dataclass(kw_only=True)
class SharedJobs:
    """The executor of several threads: whoever finds no job to wait for runs one for all."""

    job: CompactionJob
    _waiting: list[_Waiting] = field(default_factory=list)
    _running: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def job_id(self) -> str:
        """As the job's."""
        return self.job.job_id

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """See CompactionExecutor. An entry without tasks waits for nobody."""
        if not tasks:
            return ()
        own = _Waiting(EntryTasks(tasks=tuple(tasks), root=root, temporary=temporary))
        with self._changed:
            self._waiting.append(own)
        try:
            while own.answer is None:
                together = self._next_job(own)
                if together:
                    self._run(together)
        finally:
            with self._changed:
                if own in self._waiting:  # of an interrupt; nobody would publish what it wrote
                    self._waiting.remove(own)
        if isinstance(own.answer, CompactionError):
            raise own.answer
        return own.answer

    def _next_job(self, own: _Waiting) -> list[_Waiting]:
        """What goes together now; nothing once ``own`` has its answer from another's job."""
        with self._changed:
            while own.answer is None and (
                own not in self._waiting or self._running >= JOBS_AT_ONCE
            ):
                self._changed.wait()
            if own.answer is not None:
                return []
            together = self._waiting[:ENTRIES_MAX]
            del self._waiting[:ENTRIES_MAX]
            self._running += 1
            return together

    def _run(self, together: list[_Waiting]) -> None:
        answers: Sequence[tuple[TaskResult, ...] | CompactionError] = ()
        try:
            answers = self.job.run_all([waiting.entry for waiting in together])
        finally:
            # Also of an interrupt, which is this thread's own matter: the others try again.
            given = answers or [CompactionError("its job was ended; try again")] * len(together)
            with self._changed:
                for waiting, answer in zip(together, given, strict=True):
                    waiting.answer = answer
                self._running -= 1
                self._changed.notify_all()


class TakenInTurns:
    """An executor that runs tasks of so many entries at once, in this process: more threads than
    cores would only wait for Python's lock, each with a decoded stripe in memory."""

    def __init__(self, executor: CompactionExecutor, at_once: int) -> None:
        self._executor = executor
        self._turns = threading.BoundedSemaphore(at_once)

    @property
    def job_id(self) -> str:
        """As the executor's."""
        return self._executor.job_id

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """See CompactionExecutor."""
        with self._turns:
            return self._executor.run(tasks, root=root, temporary=temporary)
