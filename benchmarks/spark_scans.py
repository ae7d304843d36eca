"""``make bench-scan``: ACID tables in Spark beside Spark's own ORC of the same rows, and a real
Hive 4.2.

``--ours`` without a Hive. Spark has two threads; each figure is the median of turns, all are warm.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.compaction import COLUMNS, some_rows
from benchmarks.report import HEADING, TURNS, Ratio, beside, machine
from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.config.settings import Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.model.catalog import Column, Database
from hms_bridge.spark.catalog import configure
from integration.referees.acid_writes import write
from integration.referees.hive42 import Hive42
from integration.referees.hive_schema import HiveSchemas
from integration.referees.ours import OurProgram
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import FAST_JAVA, Workplace
from tests.conformance import objects
from tests.support.table_write import RowId, TableWrite

WRITERS, BATCHES, ROWS_A_BATCH = 4, 10, 250_000
ROWS = WRITERS * BATCHES * ROWS_A_BATCH
SIX = COLUMNS[:5] + COLUMNS[7:]
DELETED = 100
"""One row of so many."""


def _cheap(column: Column) -> str:
    """An aggregate by which the scan is measured: Spark takes three times as long for the greatest
    of texts as for reading them."""
    return f"sum(length(`{column.name}`))" if column.type == "string" else f"sum(`{column.name}`)"


QUERIES = (
    ("count", "count(*)", "", 0.7, 0.65),
    ("one column", "sum(`count`)", "", 0.9, 0.65),
    ("three columns", "sum(id), sum(`count`), sum(length(item))", "", 0.85, 0.8),
    ("all columns", ", ".join(_cheap(column) for column in SIX), "", 0.95, 0.9),
    ("point query", "max(item)", " where id = 1234567", 0.8, 0.0),
)
"""What, columns, condition, target without deletes and with."""
HIVE_TARGET = 2.0
MANY = (100, 300, 1000)
BUCKETS = 16


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where both read: one metastore, one warehouse."""

    store: LocalStore
    url: str
    folder: Path
    hive: Any = None


def main() -> None:
    """Print the machine, then one line a ratio."""
    print(machine())
    print(HEADING)
    with tempfile.TemporaryDirectory(prefix="hms-bridge-bench-") as name:
        folder = Path(name)
        if "--ours" in sys.argv[1:]:
            place = alone(folder)
            _print(place)
            place.store.metastore.close()
            return
        workplace = Workplace(folder / "logs", java=FAST_JAVA)
        try:
            _print(_beside_hive(workplace, folder))
        finally:
            workplace.close()


def _print(place: Place) -> None:
    with spark_session(place) as spark:
        for ratio in chain(_scan_ratios(place, spark), _many_deltas(place, spark)):
            print(ratio.line(), flush=True)
        print(f"memory: {_peak_mebibytes(spark)} MiB of Java at most, heap of 2 GiB")


@contextmanager
def spark_session(place: Place) -> Iterator[SparkSession]:
    """Two threads, and the place's ACID tables."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    for key, value in (
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
    ):
        builder = builder.config(key, value)
    spark = configure(builder, metastore=place.url).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def alone(folder: Path) -> Place:
    """Without a Hive."""
    url = f"sqlite:///{folder}/metastore.db"
    store = open_local(url, Settings(warehouse=f"file:{folder}/warehouse"))
    store.metastore.create_database(Database(name="ours"))
    return Place(store=store, url=url, folder=folder)


def _beside_hive(workplace: Workplace, folder: Path) -> Place:
    database = HiveSchemas(PostgreSql(workplace)).database("4.2.0", "bench")
    hive = Hive42(workplace, database)
    OurProgram(workplace, database.sqlalchemy_url).run("schema", "init")
    settings = Settings(warehouse=f"file:{hive.warehouse}")
    store = open_local(database.sqlalchemy_url, settings)
    store.metastore.create_database(Database(name="ours"))
    return Place(store=store, url=database.sqlalchemy_url, folder=folder, hive=hive.main)


def _scan_ratios(place: Place, spark: Any) -> Iterator[Ratio]:
    write_id = make_table(place.store)
    yield from _queries(place, spark, "no deletes", place.folder / "plain", deleted=False)
    _delete_some(place.store, write_id)
    yield from _queries(place, spark, "1 % deleted", place.folder / "survivors", deleted=True)


def _queries(place: Place, spark: Any, what: str, plain: Path, *, deleted: bool) -> Iterator[Ratio]:
    spark.table("acid.ours.sales").write.orc(str(plain))
    spark.read.orc(str(plain)).createOrReplaceTempView("plain")
    for name, columns, condition, whole, holed in QUERIES:

        def run(table: str, text: str = f"select {columns} from %s{condition}") -> Any:
            return tuple(spark.sql(text % table).collect()[0])

        def hive(text: str = f"select {columns} from ours.sales{condition}") -> Any:
            return place.hive.sql(text)

        assert run("acid.ours.sales") == run("plain")
        label = f"{name} of {ROWS:,} rows, {what}"
        target = holed if deleted else whole
        yield beside(f"{label}, vs Spark's own ORC", lambda: run("acid.ours.sales"),
                     lambda: run("plain"), target)  # fmt: skip
        if place.hive is not None:
            yield beside(f"{label}, Hive 4.2 beside", lambda: run("acid.ours.sales"), hive,
                         HIVE_TARGET)  # fmt: skip


def _many_deltas(place: Place, spark: Any) -> Iterator[Ratio]:
    """What a plan of small deltas costs: linear is a ratio of 1 for each time as many."""
    store = place.store
    storage = objects.orc_storage(SIX, bucket_count=BUCKETS, bucket_columns=("id",))
    store.metastore.create_table(objects.acid_table("ours", "many", storage=storage))
    costs: list[tuple[int, float]] = []
    made = 0
    for deltas in MANY:
        _add_deltas(store, deltas - made)
        made = deltas
        seconds = []
        for _ in range(TURNS):
            frame = spark.table("acid.ours.many")
            began = time.process_time()
            tasks = frame.rdd.getNumPartitions()
            seconds.append(time.process_time() - began)
        costs.append((deltas, median(seconds)))
        yield Ratio(what=f"tasks of {deltas} deltas x {BUCKETS} buckets", ours=f"{tasks}",
                    theirs="64", ratio=64 / max(tasks, 1), target=1)  # fmt: skip
    for (few, first), (many, then) in pairwise(costs):
        yield Ratio(what=f"plan of {many} deltas, vs {few} and linear", ours=f"{then:.2f} CPU s",
                    theirs=f"{first:.2f} CPU s", ratio=first / then * many / few,
                    target=0.7)  # fmt: skip
    yield Ratio(what=f"plan of {MANY[-1]} deltas", ours=f"{costs[-1][1]:.2f} CPU s",
                theirs="3 CPU s", ratio=3 / costs[-1][1], target=1)  # fmt: skip


def make_table(store: LocalStore) -> int:
    """``ours.sales``, of ROWS rows; its write id."""
    table = objects.acid_table("ours", "sales", storage=objects.orc_storage(SIX))
    store.metastore.create_table(table)
    random = np.random.default_rng(7)
    writers = [range(number * BATCHES, (number + 1) * BATCHES) for number in range(WRITERS)]
    batches = ((_six(some_rows(random, at, ROWS_A_BATCH)) for at in part) for part in writers)
    return _write(store, "ours.sales", lambda write: write.insert(*batches))


def _delete_some(store: LocalStore, write_id: int) -> None:
    victims: list[RowId] = [
        (write_id, encode_bucket(number, 0), row)
        for number in range(WRITERS)
        for row in range(7, BATCHES * ROWS_A_BATCH, DELETED)
    ]
    _write(store, "ours.sales", lambda write: write.delete(victims))


def _add_deltas(store: LocalStore, count: int) -> None:
    random = np.random.default_rng(7)
    for number in range(count):
        rows = _six(some_rows(random, number, BUCKETS))
        buckets = [[rows.slice(bucket, 1)] for bucket in range(BUCKETS)]
        _write(store, "ours.many", partial(_insert, buckets))


def _insert(buckets: list[list[pa.RecordBatch]], write: TableWrite) -> None:
    write.insert(*buckets)


def _write(store: LocalStore, name: str, change: Callable[[TableWrite], None]) -> int:
    return write(store.metastore, store.resolver, name, change)


def _six(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select([column.name for column in SIX])


def _peak_mebibytes(spark: Any) -> int:
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    main()
