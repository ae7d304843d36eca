"""Calls in a Spark driver: tables of the catalog as the goldens write rows."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from hms_bridge.orc.types import OrcKind, OrcType
from hms_bridge.spark.catalog import attach
from integration.referees.golden_tables import golden_table_name
from tests.support.golden import GoldenStage, golden_stages
from tests.support.golden_values import golden_value, table_type

_FRACTION = re.compile(r"(\d\d:\d\d:\d\d\.\d{6})\d+")


READABLE = tuple(
    stage for stage in golden_stages("full_acid") if stage.has_rows and stage.is_readable
)
_KEPT: list[DataFrame] = []


def _by_columns() -> tuple[GoldenStage, ...]:
    """One stage, of most rows, for each list of columns."""
    kept: dict[str, GoldenStage] = {}
    for stage in sorted(READABLE, key=lambda each: len(each.rows or [])):
        definition = stage.state["metastore_table"]
        kept[json.dumps([definition["columns"], definition["partition_columns"]])] = stage
    return tuple(kept.values())


COPIED = _by_columns()


def application(spark: SparkSession) -> str:
    """What the cluster calls the driver."""
    return spark.sparkContext.applicationId


def executors(spark: SparkSession) -> int:
    """How many there are, without the driver."""
    return len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1


def attach_catalog(spark: SparkSession, metastore: str, name: str) -> None:
    """Give the session the catalog, in place of an earlier one of the name."""
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    attach(spark, name, metastore=metastore)


def save_over(spark: SparkSession, table: str) -> None:
    """Write a table's own rows over it, by Spark's older way."""
    spark.table(table).write.mode("overwrite").saveAsTable(table)


def attach_for_two_parts(spark: SparkSession, metastore: str, taken: str) -> None:
    """Ask for Spark's own catalog in a session that has another one there."""
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.spark_catalog", taken)
    attach(other, metastore=metastore, session_catalog=True)


def golden_differences(spark: SparkSession, catalog: str, database: str) -> dict[str, str]:
    """By stage: what is refused, or the first row that the other side has not."""
    different = {}
    for stage in READABLE:
        try:
            text = _difference(spark, f"{catalog}.{database}.{golden_table_name(stage)}", stage)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
        if text:
            different[str(stage)] = text
    return different


def copy_differences(spark: SparkSession, catalog: str, database: str, copy: str) -> dict[str, str]:
    """By stage: what is refused, or in what the rows that Spark copies are other ones."""
    different = {}
    for stage in COPIED:
        name = golden_table_name(stage)
        table = f"{catalog}.{copy}.{name}"
        try:
            spark.sql(f"insert into {table} select * from {catalog}.{database}.{name}")
            text = _difference(spark, table, stage, is_copy=True)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
        if text:
            different[str(stage)] = text
    return different


def _difference(
    spark: SparkSession, table: str, stage: GoldenStage, *, is_copy: bool = False
) -> str:
    """``is_copy``: the rows have other ROW__IDs."""
    definition = stage.state["metastore_table"]
    node = table_type([*definition["columns"], *definition["partition_columns"]])
    golden = [row["values"] if is_copy else row for row in stage.rows or []]
    expected = sorted(_in_micros(json.dumps(row, sort_keys=True)) for row in golden)
    rows = spark.sql(f"select row__id, * from {table}").collect()
    read = [_golden(row, node) for row in rows]
    seen = sorted(json.dumps(row["values"] if is_copy else row, sort_keys=True) for row in read)
    if seen == expected:
        return ""
    lacking, more = set(expected) - set(seen), set(seen) - set(expected)
    text = f"{len(seen)} rows of {len(expected)}; "
    return f"{text}lacks {sorted(lacking)[:1]}, has {sorted(more)[:1]}"


def _golden(row: Row, node: OrcType) -> dict[str, Any]:
    row_id, *values = row
    pairs = zip(node.names, values, node.children, strict=True)
    return {
        "row__id": list(row_id),
        "values": {name: _value(value, child) for name, value, child in pairs},
    }


def _value(value: Any, node: OrcType) -> Any:
    if value is None:
        return None
    match node.kind:
        case OrcKind.TIMESTAMP:
            text = value.isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
        case OrcKind.LIST:
            return [_value(one, node.children[0]) for one in value]
        case OrcKind.MAP:
            key, item = node.children
            return [[_value(k, key), _value(v, item)] for k, v in value.items()]
        case OrcKind.STRUCT:
            pairs = zip(value.asDict().items(), node.children, strict=True)
            return {name: _value(one, child) for (name, one), child in pairs}
        case OrcKind.BINARY:
            return base64.b64encode(bytes(value)).decode()
        case _:
            return golden_value(value, node)


def _in_micros(text: str) -> str:
    """Spark's timestamps end there."""
    return _FRACTION.sub(lambda match: match[1].rstrip("0").rstrip("."), text)


def is_token_seen(spark: SparkSession) -> bool:
    """In the command line of any process, or by others in its file."""
    file = Path(spark.conf.get("spark.sql.catalog.acid.token-file") or "")
    seen = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            seen += path.read_bytes()
    return file.read_bytes() in seen or bool(file.stat().st_mode & 0o077)


def counted_trues(spark: SparkSession, file: str, column: int) -> int:
    """Of a boolean column, as Java's ORC knows it by the statistics of a file."""
    orc = spark._jvm.org.apache.orc.OrcFile
    conf = spark._jsc.hadoopConfiguration()
    reader = orc.createReader(spark._jvm.org.apache.hadoop.fs.Path(file), orc.readerOptions(conf))
    count: int = reader.getStatistics()[column].getTrueCount()
    return count


def fork_and_end(_: SparkSession) -> int:
    """How a fork of the driver ends, if as programs do."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        sys.exit(0)
    return os.waitpid(child, 0)[1]


def count_often(spark: SparkSession, table: str, times: int) -> None:
    """In statements of their own, whose answer is known from the partitions."""
    for _ in range(times):
        spark.sql(f"select count(*) from {table} where ds = 'none'").collect()


def keep_frame(spark: SparkSession, table: str) -> None:
    """For ``kept_rows``."""
    _KEPT.append(spark.table(table))


def kept_rows(spark: SparkSession, derived: bool) -> int:
    """Of the frame that was kept last, or of one that is made of it."""
    frame = _KEPT[-1]
    return len((frame.where("id > 0") if derived else frame).collect())


def uses_of_frames(spark: SparkSession, table: str) -> dict[str, int]:
    """Rows that each way of using a frame sees."""
    seen = spark.sparkContext.accumulator(0)
    spark.table(table).foreachPartition(lambda rows: seen.add(len(list(rows))))
    cached = spark.table(table).cache()
    counts = {
        "collected": len(spark.table(table).collect()),
        "iterated": len(list(spark.table(table).toLocalIterator())),
        "rdd": spark.table(table).rdd.count(),
        "foreach": seen.value,
        "cached": cached.count(),
        "joined": spark.table(table).join(spark.table(table), ["id", "ds"]).count(),
        "tasks of one partition": spark.table(table).where("ds = '2'").rdd.getNumPartitions(),
    }
    cached.unpersist()
    return counts
