"""What several workers of one process do at the same time.

On Spark their entries go as one job, which costs what one would. A job takes what waits when it
begins; others gather while it runs. Those whose job has ended come back one after the other, as
each ends its entry and begins the next: the first of them would be a job alone. So where there was
company of late, a job waits a little for as many, and for as long as others come. Who is alone
soon waits no more. Each entry keeps its own transaction, its own worker and its own end: only the
tasks travel together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

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

COMPANY_SECONDS = 0.2
"""How long a job waits for company: about what it costs however little it has to do."""

NEXT_SECONDS = 0.05
"""How long it waits for the next one to come: some times what an entry takes beside its tasks."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """An entry from its call to its answer."""

    entry: EntryTasks
    answer: tuple[TaskResult, ...] | CompactionError | None = None


class SharedJobs:
    """The executor of several threads: who has waited longest runs one job for all."""

    def __init__(
        self,
        *,
        job: CompactionJob,
        company_seconds: float = COMPANY_SECONDS,
        next_seconds: float = NEXT_SECONDS,
    ) -> None:
        self.job = job
        self._company_seconds = company_seconds
        self._next_seconds = next_seconds
        self._waiting: list[_Waiting] = []
        self._running = 0
        self._expected = 1
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._arrived = threading.Condition(lock)

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
            self._arrived.notify()
        try:
            while own.answer is None:
                together = self._next_job(own)
                if together:
                    self._run(together)
        finally:
            with self._changed:
                if own in self._waiting:  # of an interrupt; nobody would publish what it wrote
                    self._waiting.remove(own)
                    self._changed.notify_all()
        if isinstance(own.answer, CompactionError):
            raise own.answer
        return own.answer

    def _next_job(self, own: _Waiting) -> list[_Waiting]:
        """What goes together now; nothing once ``own`` has its answer from another's job."""
        with self._changed:
            while own.answer is None and not self._may_begin(own):
                self._changed.wait()
            if own.answer is not None:
                return []
            self._wait_for_company()
            together = self._waiting[:ENTRIES_MAX]
            del self._waiting[:ENTRIES_MAX]
            # Falls by one at a time: one who was late once is waited for again.
            self._expected = max(len(together), self._expected - 1)
            self._running += 1
            self._changed.notify_all()
            return together

    def _may_begin(self, own: _Waiting) -> bool:
        """The caller holds the lock, here and below."""
        return self._waiting[:1] == [own] and self._running < JOBS_AT_ONCE

    def _wait_for_company(self) -> None:
        end = time.monotonic() + self._company_seconds
        while len(self._waiting) < self._expected:
            seconds = min(self._next_seconds, end - time.monotonic())
            if seconds <= 0 or not self._arrived.wait(seconds):
                return

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
