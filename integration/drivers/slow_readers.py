"""Calls in a Spark driver: readers that take as long as they are given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import Row, SparkSession

IN_TASKS, IN_DRIVER = "rows take their time in tasks", "rows take their time in the driver"


def read_slowly(spark: SparkSession, table: str, rows: int, seconds: float) -> list[list[int]]:
    """The ids that a task of a single core sees, which comes to the last file at the very end, and
    those of an iterator, each of whose parts is a job of its own. Both begin at once."""
    begin = threading.Barrier(2)
    pause_seconds = seconds / rows

    def in_tasks() -> list[int]:
        spark.sparkContext.setJobDescription(IN_TASKS)
        milliseconds = int(pause_seconds * 500)
        slowly = f"reflect('java.lang.Thread', 'sleep', {milliseconds}L) is not null"
        frame = spark.table(table).where(slowly).coalesce(1)
        begin.wait()
        return sorted(
            frame.rdd.mapPartitions(lambda rows: _slow(rows, pause_seconds / 2)).collect()
        )

    def in_driver() -> list[int]:
        spark.sparkContext.setJobDescription(IN_DRIVER)
        frame = spark.table(table)
        begin.wait()
        return sorted(_slow(frame.toLocalIterator(), pause_seconds))

    with ThreadPoolExecutor(2) as threads:
        return [reader.result() for reader in (threads.submit(in_tasks), threads.submit(in_driver))]


def _slow(rows: Iterator[Row], seconds: float) -> Iterator[int]:
    for row in rows:
        time.sleep(seconds)
        yield row.id
