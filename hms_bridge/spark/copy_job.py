"""Copies the files of a load as tasks of one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from changemanager.location import Resolver
from hms_bridge.errors import ReplError
from hms_bridge.repl.load.copy_task import CopiedFile, CopyTask, FileToCopy
from hms_bridge.spark.executor_check import look_at_locations
from hms_bridge.spark.failures import first_line
from hms_bridge.spark.session import stop_spark
from hms_bridge.spark.tasks import CountedCopyTask

_LOOKS_EVERY_SECONDS = 1.0
_WORDS = "copies files of a load"


class SparkCopyJob:
    """The job over a session, which ``start`` begins once something is to be copied."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: SparkSession | None = None

    def close(self) -> None:
        """Stop Spark, if it was needed."""
        if self._session is not None:
            stop_spark(self._session)
            self._session = None

    def processes(self) -> int:
        """Tasks that run at once. Raises ConfigError if Spark does not start."""
        return max(1, int(self._spark().sparkContext.defaultParallelism))

    def run(
        self,
        task: CopyTask,
        shares: Sequence[Sequence[FileToCopy]],
        *,
        places: Sequence[str],
        while_waiting: Callable[[int], None],
    ) -> tuple[CopiedFile, ...]:
        """What became of each file; see :class:`hms_bridge.repl.load.distributed.CopyJob`."""
        spark = self._spark()
        self._require_reached(spark, task.resolve, places)
        context = spark.sparkContext
        counted = CountedCopyTask(task=task, brought=context.accumulator(0))
        group = f"hms-bridge-copy-{uuid4()}"
        with ThreadPoolExecutor(1, thread_name_prefix=group) as thread:
            future = thread.submit(_collected, context, counted, shares, group)
            try:
                _wait_for(future, counted, while_waiting)
            except BaseException:
                # Not begun yet, it would not hear of its end: it is cancelled again.
                while not future.done():
                    context.cancelJobGroup(group)
                    wait([future], _LOOKS_EVERY_SECONDS)
                raise
        try:
            return future.result()
        except (PySparkException, Py4JError) as error:
            raise ReplError(
                f"a Spark task failed: {first_line(error)}; what was copied stays: load again"
            ) from error

    def _spark(self) -> SparkSession:
        if self._session is None:
            self._session = self._start()
        return self._session

    def _require_reached(
        self, spark: SparkSession, resolve: Resolver, places: Sequence[str]
    ) -> None:
        """Raises ReplError for a place that an executor does not see: it would write elsewhere."""
        looked = look_at_locations(spark, resolve, places)
        wrong = [f"{host}: {place}: {text}" for host, place, text in looked if text]
        if wrong:
            raise ReplError(
                f"Spark's executors do not reach all that is to be copied: {'; '.join(wrong)}. "
                "Nothing was copied; load without --copy-with spark"
            )


def _collected(
    context: SparkContext,
    task: CountedCopyTask,
    shares: Sequence[Sequence[FileToCopy]],
    group: str,
) -> tuple[CopiedFile, ...]:
    context.setJobGroup(group, _WORDS, interruptOnCancel=True)
    return tuple(context.parallelize(list(shares), len(shares)).flatMap(task).collect())


def _wait_for(
    future: Future[tuple[CopiedFile, ...]],
    task: CountedCopyTask,
    while_waiting: Callable[[int], None],
) -> None:
    before = 0
    is_done = False
    while not is_done:
        wait([future], _LOOKS_EVERY_SECONDS)
        is_done = future.done()
        now = task.brought.value
        while_waiting(now - before)
        before = now
