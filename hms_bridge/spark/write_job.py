"""Carries out a write plan: Spark tasks write event files, the driver publishes directories.

1. Run the plan's query once and keep its result, where more than one step reads it, or nothing else
decides how many files to write. 2. Allocate the write id. 3. Tasks write delete
events (one task for each partition and bucket, sorted by key) and insert events (one file for each
task and partition) below ``_tmp_write_v<txn>``. 4. The driver gathers the files that successful
tasks reported into directories, and renames each into place: invisible until the commit, because
the write id is open. 5. New partitions, write notifications and dynamic partitions are recorded;
the caller commits. Whatever happens before the commit leaves no visible row (I7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name everyone knows it by)

from changemanager.location import Resolver
from hms_bridge.acid.bucket_codec import BUCKET_ID_MAX
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.publication import Publication
from hms_bridge.directories.written import EventFile, WrittenDirectory
from hms_bridge.dml.names import ROW_PARTITION
from hms_bridge.dml.plan import Write, WritePlan
from hms_bridge.dml.rewrite import quote
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import WriteId
from hms_bridge.rows.event_files import BUCKET_COLUMN, EventFileSpec
from hms_bridge.rows.key_sum import KEY_SUM_MODULUS
from hms_bridge.session.locked_transaction import LockedTransaction
from hms_bridge.spark.tasks import BucketTask, DeleteTask, InsertTask

_RESULT = (
    "partition string, path string, bucket int, row_count long, size_bytes long, key_sum string"
)
_ROWS_PER_WRITER = 250_000
_BYTES_PER_WRITER = 8 * 1024 * 1024
"""Fewer rows, or what is read for them, are one file: small files are what compaction is there to
get rid of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteOutcome:
    """What a write did. ``write_id`` is None where there was no row to write."""

    write_id: WriteId | None
    inserted_count: int = 0
    deleted_count: int = 0


class WriteJob:
    """One statement's write under an open transaction."""

    def __init__(
        self,
        spark: SparkSession,
        metastore: Metastore,
        resolver: Resolver,
        transaction: LockedTransaction,
    ) -> None:
        self._spark = spark
        self._metastore = metastore
        self._resolver = resolver
        self._transaction = transaction

    def run(self, plan: WritePlan, source_bytes: int) -> WriteOutcome:
        """Write and publish; the caller's commit makes it visible. ``source_bytes``: how large the
        files are that the plan's sources read."""
        rows = self._spark.sql(plan.query)
        if plan.is_bounded and plan.delete_statement_id is None:
            return self._write(plan, rows, None, math.ceil(source_bytes / _BYTES_PER_WRITER))
        rows = rows.persist()
        try:
            count = rows.count()
            if not count:
                return WriteOutcome(write_id=None)
            return self._write(plan, rows, count, math.ceil(count / _ROWS_PER_WRITER))
        finally:
            rows.unpersist()

    def _write(
        self, plan: WritePlan, rows: DataFrame, planned: int | None, writers: int
    ) -> WriteOutcome:
        """``planned``: how many rows there are; None if nobody has looked."""
        write_id = self._transaction.allocate_write_id(plan.table)
        publication = Publication(
            self._metastore, self._resolver, plan.table, self._transaction.id, write_id
        )
        publication.forget_dead(self._transaction.txns)
        try:
            written = []
            deleted = inserted = 0
            if plan.delete_statement_id is not None:
                name = DirectoryName.delete_delta(write_id, write_id, plan.delete_statement_id)
                files = self._delete(plan, rows, publication.staging, write_id)
                written.append(WrittenDirectory(name=name, files=files))
                deleted = _counted(files, planned, "deleted")
            if plan.insert_statement_id is not None:
                name = DirectoryName.delta(write_id, write_id, plan.insert_statement_id)
                # Each writer is a bucket of its own, of which there are not more.
                merged = rows.coalesce(min(max(1, writers), BUCKET_ID_MAX + 1))
                files = self._insert(plan, merged, publication.staging, write_id)
                written.append(WrittenDirectory(name=name, files=files))
                inserted = _counted(files, planned, "inserted")
            if plan.kind is Write.UPDATE:
                _require_same_rows(*(directory.files for directory in written))
            if not any(directory.files for directory in written):
                return WriteOutcome(write_id=None)
            publication.publish(written, plan.kind.operation)
        finally:
            publication.discard_staging()
        return WriteOutcome(write_id=write_id, inserted_count=inserted, deleted_count=deleted)

    def _delete(
        self, plan: WritePlan, rows: DataFrame, staging: str, write_id: WriteId
    ) -> tuple[EventFile, ...]:
        spec = EventFileSpec.of_table(plan.table, staging, write_id, plan.delete_statement_id or 0)
        keys = rows.select(
            F.col(ROW_PARTITION),
            F.col("row__id.writeid").alias("writeid"),
            F.col("row__id.bucketid").alias("bucketid"),
            F.col("row__id.rowid").alias("rowid"),
        ).withColumn(BUCKET_COLUMN, _writer_of(F.col("bucketid")))
        tasks = keys.repartition(ROW_PARTITION, BUCKET_COLUMN).sortWithinPartitions(
            ROW_PARTITION, BUCKET_COLUMN, "writeid", "bucketid", "rowid"
        )
        return _collect(tasks.mapInArrow(DeleteTask(spec, self._resolver), _RESULT))

    def _insert(
        self, plan: WritePlan, rows: DataFrame, staging: str, write_id: WriteId
    ) -> tuple[EventFile, ...]:
        spec = EventFileSpec.of_table(plan.table, staging, write_id, plan.insert_statement_id or 0)
        keys = [column.name for column in plan.table.partition_columns]
        order = [ROW_PARTITION] if ROW_PARTITION in rows.columns else keys
        if plan.table.storage.bucket_columns:
            schema = f"{_ddl(rows)}, {quote(BUCKET_COLUMN)} int"
            rows = rows.mapInArrow(BucketTask(spec), schema).repartition(BUCKET_COLUMN)
            # A task may have several buckets: rows of one partition still come together.
            order = [*order, BUCKET_COLUMN]
        if order:
            rows = rows.sortWithinPartitions(*order)
        return _collect(rows.mapInArrow(InsertTask(spec, self._resolver), _RESULT))


def _counted(files: Sequence[EventFile], planned: int | None, what: str) -> int:
    """Rows in the files. Raises DmlError if they are not as many as planned: Spark may run a query
    again when it lost what it kept, and then a query need not give the same rows.

    A query that is run once needs no plan: of each task one try counts, and Spark itself gives up
    where tries of tasks could see different answers of a shuffle (SPARK-25341)."""
    count = sum(file.row_count for file in files)
    if planned is not None and count != planned:
        raise _changed(f"{planned} rows were to be {what}, but {count} were written")
    return count


def _require_same_rows(deleted: Sequence[EventFile], inserted: Sequence[EventFile]) -> None:
    """An UPDATE writes again exactly the rows that it deletes. Raises DmlError."""
    sums = [sum(file.key_sum for file in files) % KEY_SUM_MODULUS for files in (deleted, inserted)]
    if sums[0] != sums[1]:
        raise _changed("other rows were to be deleted than written again")


def _changed(what: str) -> DmlError:
    return DmlError(
        f"{what}, so nothing is: Spark ran the query twice with different answers; write its rows "
        "to a table first, or leave out what changes from run to run (rand(), LIMIT without ORDER "
        "BY)"
    )


def _writer_of(bucket_property: Any) -> Any:
    """The writer's number in a bucket property (acid/bucket_codec.py), in Spark's words."""
    decoded = F.shiftright(bucket_property, 16).bitwiseAND(F.lit(0xFFF))
    is_version_1 = F.shiftright(bucket_property, 29) == 1
    return F.when(is_version_1, decoded).otherwise(bucket_property)


def _ddl(frame: DataFrame) -> str:
    return ", ".join(f"{quote(f.name)} {f.dataType.simpleString()}" for f in frame.schema.fields)


def _collect(frame: DataFrame) -> tuple[EventFile, ...]:
    return tuple(
        EventFile(
            partition=row.partition,
            path=row.path,
            bucket_id=row.bucket,
            row_count=row.row_count,
            size_bytes=row.size_bytes,
            key_sum=int(row.key_sum),  # Spark has no unsigned numbers
        )
        for row in frame.collect()
    )
