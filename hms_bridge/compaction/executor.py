"""The port to what carries out a compaction's tasks: this process, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import VerifyMode
from hms_bridge.rows.row_sum import SeenRows


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFile:
    """One file that a task wrote, below the temporary directory.

    ``path`` as in OutputFile; ``written_as`` is its name until the worker has checked it, which no
    other try of the task shares: a try that was given up for lost may still be writing.
    """

    path: str
    written_as: str
    row_count: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What another reader than the writer's found (see compaction/verify.py)."""

    mode: VerifyMode
    rows: SeenRows
    written_rows: SeenRows
    deletes: SeenRows
    written_deletes: SeenRows

    @property
    def difference(self) -> str | None:
        """What does not agree; None if all does."""
        for what, wanted, counted in (
            ("rows", self.rows, self.written_rows),
            ("delete events", self.deletes, self.written_deletes),
        ):
            if wanted.count != counted.count:
                return f"a reader sees {wanted.count} {what} in the inputs, {counted.count} written"
            if wanted.checksum != counted.checksum:
                which = "values" if self.mode is VerifyMode.FULL else "identifiers"
                return f"the {wanted.count} {what} that were written have other {which}"
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """What a task did. ``rows_read`` counts the rows of its inputs that the snapshot sees."""

    bucket_id: int
    files: tuple[WrittenFile, ...]
    rows_read: int
    delete_events_read: int = 0
    verification: Verification | None = None


class CompactionExecutor(Protocol):
    """Runs tasks, in any order, maybe at once, maybe again after a failure or at the same time."""

    @property
    def job_id(self) -> str:
        """Where to look for what the tasks did; it stands in the queue as the Hadoop job."""

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """Results in the order of the tasks. ``temporary`` is below ``root``. Raises
        CompactionError if a task fails."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryTasks:
    """All tasks of one entry, and where they read and write: see CompactionExecutor.run."""

    tasks: tuple[BucketTask, ...]
    root: str
    temporary: str


class CompactionJob(Protocol):
    """Runs the tasks of many entries at once."""

    @property
    def job_id(self) -> str:
        """As CompactionExecutor.job_id."""

    def run_all(
        self, entries: Sequence[EntryTasks]
    ) -> tuple[tuple[TaskResult, ...] | CompactionError, ...]:
        """For each entry what CompactionExecutor.run would give or raise, in the order of the
        entries: none fails for another's sake."""


def run_alone(
    job: CompactionJob, tasks: Sequence[BucketTask], root: str, temporary: str
) -> tuple[TaskResult, ...]:
    """What CompactionExecutor.run is of a job."""
    if not tasks:
        return ()
    (answer,) = job.run_all([EntryTasks(tasks=tuple(tasks), root=root, temporary=temporary)])
    if isinstance(answer, CompactionError):
        raise answer
    return answer


ExecutorFor = Callable[[int], CompactionExecutor]
"""Who runs the tasks of a compaction whose inputs have so many bytes."""


def always(executor: CompactionExecutor) -> ExecutorFor:
    """The same for all of them."""
    return lambda _input_bytes: executor
