"""What runs jobs, started when it is needed, and again when it has ended.

A cluster ends applications, and a machine without memory kills Spark's Java. Without a new one all
that is queued would fail, as fast as workers take it, until somebody starts the server again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from hms_bridge.compaction.executor import CompactionJob, EntryTasks, TaskResult, run_alone
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError, HmsBridgeError

_CLOSE_SECONDS = 10.0


class EndingJob(CompactionJob, Protocol):
    """What may end by itself; from then on it answers everything with CompactionError."""

    @property
    def has_ended(self) -> bool:
        """Whether it can run nothing any more."""

    def close(self) -> None:
        """End it, or put away what is left of it."""


class LastingJob:
    """One of them at a time, for all threads. As a job, and as an executor."""

    def __init__(self, start: Callable[[], EndingJob]) -> None:
        self._start = start
        self._job: EndingJob | None = None
        self._is_closed = False
        self._changing = threading.Lock()

    @property
    def job_id(self) -> str:
        """As the one that runs now."""
        return self.ready().job_id

    def ready(self) -> EndingJob:
        """One that runs. Raises what its start raises; CompactionError after the close."""
        with self._changing:  # of several threads one starts it
            if self._is_closed:
                raise CompactionError("the workers of this process end; try again")
            if self._job is not None and self._job.has_ended:
                ended, self._job = self._job, None
                ended.close()
            if self._job is None:
                self._job = self._start()
            return self._job

    def close(self) -> None:
        """End the one that runs, if there is one. None is started any more; for one whose start
        hangs nobody waits: it ends with the process."""
        self._is_closed = True
        if not self._changing.acquire(timeout=_CLOSE_SECONDS):
            return
        try:
            if self._job is not None:
                self._job.close()
        finally:
            self._changing.release()

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """See CompactionExecutor."""
        return run_alone(self, tasks, root, temporary)

    def run_all(
        self, entries: Sequence[EntryTasks]
    ) -> tuple[tuple[TaskResult, ...] | CompactionError, ...]:
        """See CompactionJob. What ended with the job is run once more, each entry by itself: one of
        them may be what ended it."""
        job = self.ready()
        answers = job.run_all(entries)
        has_failed = any(isinstance(answer, CompactionError) for answer in answers)
        if not has_failed or not job.has_ended:
            return answers
        return tuple(
            self._again(entry) if isinstance(answer, CompactionError) else answer
            for entry, answer in zip(entries, answers, strict=True)
        )

    def _again(self, entry: EntryTasks) -> tuple[TaskResult, ...] | CompactionError:
        try:
            (answer,) = self.ready().run_all([entry])
        except HmsBridgeError as error:
            return CompactionError(str(error))
        return answer
