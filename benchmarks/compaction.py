"""Minor compaction against a Spark DataFrame rewrite of the same files, and plain copies."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.report import Ratio, median_seconds
from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from hms_bridge.acid.directory import resolve
from hms_bridge.compaction.executor import CompactionExecutor
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.plan import CompactionPlan, plan_compaction
from hms_bridge.config.settings import Settings
from hms_bridge.connect import open_local
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.model.catalog import ORC_INPUT_FORMAT, ORC_OUTPUT_FORMAT, Column, Storage, Table
from hms_bridge.model.compaction import CompactionType, VerifyMode
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import AllocateWriteIdsRequest, OpenTxnsRequest
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.reader import has_raw_rows
from tests.support.table_write import TableWrite

DELTAS = 20
BUCKETS = 2
ROWS_PER_BUCKET = 50_000
COLUMNS = tuple(
    Column(name=name, type=kind)
    for name, kind in (
        ("id", "bigint"), ("customer", "int"), ("item", "string"), ("price", "decimal(10,2)"),
        ("count", "int"), ("day", "date"), ("note", "string"), ("weight", "double"),
    )
)  # fmt: skip


def compaction_ratios(folder: Path, spark: Any) -> Iterator[Ratio]:
    """Make a table of insert deltas, then compare."""
    root = folder / "table"
    _write_table(root)
    volume = LocalVolume()
    txns = ValidTxnList(high_watermark=TxnId(1000))
    write_ids = ValidWriteIdList(table="d.t", high_watermark=WriteId(DELTAS)).compactor_view()

    def compact(executor: CompactionExecutor) -> None:
        listing = list_acid_directory(
            volume, str(root), has_raw_rows=functools.partial(has_raw_rows, volume)
        )
        plan = plan_compaction(
            resolve(listing, txns=txns, write_ids=write_ids),
            write_ids,
            kind=CompactionType.MINOR,
            txn_id=TxnId(1001),
            columns=COLUMNS,
        )
        assert isinstance(plan, CompactionPlan)
        executor.run(plan.tasks, root=str(root), temporary=str(folder / "ours"))

    from hms_bridge.spark.compaction_job import SparkExecutor

    kernel = BucketKernel(resolver=FsspecResolver())
    local = median_seconds(lambda: compact(LocalExecutor(kernel=kernel)))
    counting = BucketKernel(resolver=FsspecResolver(), verify=VerifyMode.COUNTS)
    counted = median_seconds(lambda: compact(LocalExecutor(kernel=counting)))
    tasks = median_seconds(lambda: compact(SparkExecutor(spark=spark, kernel=kernel)))
    frame = median_seconds(lambda: _rewrite(spark, root, folder / "theirs"))
    copied = median_seconds(lambda: _copy(root, folder / "copied"))
    rows = DELTAS * BUCKETS * ROWS_PER_BUCKET
    label = f"minor compaction, {DELTAS} deltas, {rows:,} rows"
    yield Ratio(what=f"{label}, one process, vs Spark DataFrame rewrite", ours=f"{local:.3f} s",
                theirs=f"{frame:.3f} s", ratio=frame / local, target=50)  # fmt: skip
    yield Ratio(what=f"{label}, Spark tasks, vs Spark DataFrame rewrite", ours=f"{tasks:.3f} s",
                theirs=f"{frame:.3f} s", ratio=frame / tasks, target=20)  # fmt: skip
    yield Ratio(what=f"{label}, verified by keys, vs by counts", ours=f"{local:.3f} s",
                theirs=f"{counted:.3f} s", ratio=counted / local, target=0.5)  # fmt: skip
    yield Ratio(what=f"{label}, one process, vs plain file copy", ours=f"{local:.3f} s",
                theirs=f"{copied:.3f} s", ratio=copied / local, target=0.66)  # fmt: skip


def _write_table(root: Path) -> None:
    random = np.random.default_rng(7)
    store = open_local(f"sqlite:///{root}.db", Settings(warehouse=str(root.parent)))
    metastore = store.metastore
    storage = Storage(
        columns=COLUMNS, location=str(root),
        input_format=ORC_INPUT_FORMAT, output_format=ORC_OUTPUT_FORMAT,
    )  # fmt: skip
    metastore.create_table(
        Table(
            name="t", database_name="default", storage=storage,
            parameters={"transactional": "true"},
        )
    )  # fmt: skip
    table = metastore.get_table("default", "t")
    txns = metastore.open_txns(OpenTxnsRequest(user="u", host="h", count=DELTAS))
    allocated = metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="default", table_name="t", txn_ids=txns)
    )
    for given in allocated:
        write = TableWrite(metastore, store.resolver, table, given.txn_id, given.write_id)
        write.insert(
            *([some_rows(random, given.write_id, ROWS_PER_BUCKET)] for _ in range(BUCKETS))
        )
    metastore.close()


def some_rows(random: np.random.Generator, number: int, count: int) -> pa.RecordBatch:
    """Rows of COLUMNS; ``number`` tells batches apart."""
    words = np.array([f"word{number}" for number in range(1000)])
    cents = random.integers(1, 99_999, count)
    return pa.record_batch(
        [
            pa.array(np.arange(count) + number * count),
            pa.array(random.integers(0, 10_000, count, dtype=np.int32)),
            pa.array(words[random.integers(0, 1000, count)]),
            pa.array(np.round(cents / 100, 2)).cast(pa.decimal128(10, 2)),
            pa.array(random.integers(1, 9, count, dtype=np.int32)),
            pa.array(random.integers(15_000, 20_000, count, dtype=np.int32)).cast(pa.date32()),
            pa.array([f"note {number}" for number in random.integers(0, 10**9, count)]),
            pa.array(random.random(count)),
        ],
        names=[column.name for column in COLUMNS],
    )


def _rewrite(spark: Any, root: Path, target: Path) -> None:
    """What a user without a compactor does: read all, sort as ACID wants it, write again."""
    frame = spark.read.orc([str(path) for path in sorted(root.glob("delta_*"))])
    keys = ("bucket", "originalTransaction", "rowId")
    ordered = frame.repartitionByRange(BUCKETS, "bucket").sortWithinPartitions(*keys)
    ordered.write.mode("overwrite").option("compression", "zlib").orc(str(target))


def _copy(root: Path, target: Path) -> None:
    """The least that any compaction must do: read every byte and write it."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for bucket in range(BUCKETS):
        with (target / f"bucket_{bucket:05d}").open("wb") as sink:
            for path in sorted(root.glob(f"delta_*/bucket_{bucket:05d}*")):
                with path.open("rb") as source:
                    shutil.copyfileobj(source, sink, 4 * 1024 * 1024)
