"""Runs the tasks of compactions as tasks of one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hms_bridge.compaction.executor import EntryTasks, TaskResult, run_alone
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.session import is_running, stop_spark, tries_of_a_task
from hms_bridge.spark.tasks import CompactionTask, TaskFailure

_SHARES_A_CORE = 2
"""Of a job of many entries: a core that was given little takes another share."""


@dataclass(frozen=True, kw_only=True)
class SparkExecutor:
    """The executor over a session: one Spark task for each bucket of one entry, fewer of many."""

    spark: SparkSession
    kernel: BucketKernel

    @property
    def job_id(self) -> str:
        """Spark's application, as its history server lists it."""
        return str(self.spark.sparkContext.applicationId)

    @property
    def has_ended(self) -> bool:
        """Whether Spark is gone: stopped by somebody, or with its Java."""
        return not is_running(self.spark)

    def close(self) -> None:
        """Stop Spark."""
        stop_spark(self.spark)

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """Results in the order of the tasks. Raises CompactionError with the task's own words."""
        return run_alone(self, tasks, root, temporary)

    def run_all(
        self, entries: Sequence[EntryTasks]
    ) -> tuple[tuple[TaskResult, ...] | CompactionError, ...]:
        """See CompactionJob: one job, and one more for each entry if all of it failed, as it does
        when one of the tasks takes its process down; none more where Spark itself has gone."""
        try:
            done = iter(self._collected(entries))
        except Exception as error:  # of a Spark that is gone PySpark raises anything
            if self.has_ended:
                return (CompactionError(f"Spark has ended: {first_line(error)}"),) * len(entries)
            if not isinstance(error, (PySparkException, Py4JError)):
                raise
            if len(entries) == 1:
                return (CompactionError(f"a Spark task failed: {first_line(error)}"),)
            return tuple(answer for entry in entries for answer in self.run_all([entry]))
        return tuple(_answer(list(islice(done, len(entry.tasks)))) for entry in entries)

    def _collected(self, entries: Sequence[EntryTasks]) -> list[TaskResult | TaskFailure]:
        context = self.spark.sparkContext
        work = [(task, entry.root, entry.temporary) for entry in entries for task in entry.tasks]
        shares = len(work)
        if len(entries) > 1:  # small ones: each share costs about as much as compacting one
            shares = min(shares, _SHARES_A_CORE * max(1, int(context.defaultParallelism)))
        task = CompactionTask(kernel=self.kernel, tries=tries_of_a_task(context))
        # collect() keeps the order in which the tasks were given.
        done: list[TaskResult | TaskFailure] = context.parallelize(work, shares).map(task).collect()
        return done


def _answer(done: Sequence[TaskResult | TaskFailure]) -> tuple[TaskResult, ...] | CompactionError:
    results = []
    for result in done:
        if isinstance(result, TaskFailure):
            return CompactionError(f"a Spark task failed: {result.reason}")
        results.append(result)
    return tuple(results)
