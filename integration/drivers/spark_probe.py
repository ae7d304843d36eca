"""What a Spark job says about where it ran."""

from __future__ import annotations

import os
import socket

from pyspark.sql import SparkSession


def squares_by_process(spark: SparkSession, *, count: int, slices: int) -> dict[str, object]:
    """Square 0..count-1 in `slices` tasks; the sum, and the executors that took part."""

    def square(numbers: object) -> object:
        executor = os.environ.get("SPARK_EXECUTOR_DIRS") or socket.gethostname()
        yield executor, sum(number * number for number in numbers)  # type: ignore[attr-defined]

    parts = spark.sparkContext.parallelize(range(count), slices).mapPartitions(square).collect()
    return {"sum": sum(part[1] for part in parts), "executors": sorted({part[0] for part in parts})}
