"""``make bench-write``: what Spark appends to ACID tables, beside its own ORC of the same rows.

Spark has two threads; each figure is the median of turns, all are warm, both compress by ZLIB.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.report import HEADING, Ratio, beside, machine
from benchmarks.spark_scans import ROWS, SIX, Place, alone, make_table, spark_session
from tests.conformance import objects

APPEND_TARGET = 0.8


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print(HEADING)
    with tempfile.TemporaryDirectory(prefix="hms-bridge-bench-") as name:
        place = alone(Path(name))
        make_table(place.store)
        with spark_session(place) as spark:
            for ratio in _appends(place, spark):
                print(ratio.line(), flush=True)
        place.store.metastore.close()


def _appends(place: Place, spark: SparkSession) -> Iterator[Ratio]:
    spark.conf.set("spark.sql.orc.compression.codec", "zlib")
    numbers = itertools.count()
    rows = spark.table("acid.ours.sales")
    rows.write.orc(f"{place.folder}/rows")
    rows = spark.read.orc(f"{place.folder}/rows")

    def append() -> None:
        name = f"copy_{next(numbers)}"
        table = objects.acid_table("ours", name, storage=objects.orc_storage(SIX))
        place.store.metastore.create_table(table)
        rows.writeTo(f"acid.ours.{name}").append()

    def plain() -> None:
        rows.write.orc(f"{place.folder}/plain_{next(numbers)}")

    yield beside(f"append of {ROWS:,} rows, vs Spark's own ORC", append, plain, APPEND_TARGET)


if __name__ == "__main__":
    main()
