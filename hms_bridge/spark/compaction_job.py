"""Runs a compaction's tasks as tasks of one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hms_bridge.compaction.executor import TaskResult
from hms_bridge.compaction.kernel import BucketKernel
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError
from hms_bridge.spark.failures import first_line


@dataclass(frozen=True, kw_only=True)
class SparkExecutor:
    """The executor over a session: one Spark task for each bucket."""

    spark: SparkSession
    kernel: BucketKernel

    @property
    def job_id(self) -> str:
        """Spark's application, as its history server lists it."""
        return str(self.spark.sparkContext.applicationId)

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """Results in the order of the tasks. Raises CompactionError with the task's own words."""
        if not tasks:
            return ()
        kernel = self.kernel
        shares = self.spark.sparkContext.parallelize(list(tasks), len(tasks))
        try:
            # collect() keeps the order in which the tasks were given.
            return tuple(shares.map(lambda task: kernel(task, root, temporary)).collect())
        except (PySparkException, Py4JError) as error:
            raise CompactionError(f"a Spark task failed: {first_line(error)}") from error
