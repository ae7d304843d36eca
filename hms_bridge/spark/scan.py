"""What a transaction sees of a full ACID table as a DataFrame: planned here, read by tasks over
Arrow.

One way for Spark 3.5 and 4: no data source, so that nothing of Python runs on the driver's host
but the driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from changemanager.location import Resolver
from hms_bridge.dml.spark_types import spark_type
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Table
from hms_bridge.rows.scan import ScanSplit, plan_scan
from hms_bridge.session.locked_transaction import LockedTransaction
from hms_bridge.spark.tasks import NO_COLUMN, ReadTask, pack_splits

ROW_ID_TYPE = "struct<writeid:bigint,bucketid:int,rowid:bigint>"


def snapshot_splits(
    resolver: Resolver, transaction: LockedTransaction, table: Table
) -> tuple[ScanSplit, ...]:
    """What tasks are to read of a table, as a transaction sees it."""
    return plan_scan(
        transaction.metastore,
        resolver,
        table,
        txns=transaction.txns,
        write_ids=transaction.write_ids(table.full_name),
    )


def splits_frame(
    spark: SparkSession,
    resolver: Resolver,
    splits: Sequence[ScanSplit],
    columns: Sequence[Column],
    *,
    has_row_ids: bool,
    is_exact: bool = False,
) -> DataFrame:
    """``columns`` in their order, then if asked for ``row__id`` and ``row__partition``; with none
    of them a column of nulls, so that rows can be counted.

    One Spark task for each split: the numbers of a range, one in each partition of it. The frame is
    to be read before the transaction of the splits ends.
    """
    task = ReadTask(
        resolver=resolver,
        splits=pack_splits(splits),
        columns=tuple(columns),
        has_row_ids=has_row_ids,
        is_exact=is_exact,
    )
    numbers = spark.range(0, len(splits), 1, max(1, len(splits)))
    return numbers.mapInArrow(task, frame_schema(columns, has_row_ids=has_row_ids))


def frame_schema(columns: Sequence[Column], *, has_row_ids: bool) -> str:
    """Spark's DDL text of the columns; one boolean where there are none."""
    fields = [f"`{column.name}` {spark_type(column.type)}" for column in columns]
    if has_row_ids:
        fields += [f"`row__id` {ROW_ID_TYPE}", "`row__partition` string"]
    return ", ".join(fields or [f"`{NO_COLUMN}` boolean"])


def require_full_acid(table: Table) -> None:
    """Raises DmlError for a table that is not full ACID, with what reads it instead."""
    if table.is_full_acid:
        return
    if table.is_transactional:  # its files hold rows of aborted writes, and compacted rows twice
        raise DmlError(
            f"{table.full_name} is insert-only: its files alone show rows that are not in it; "
            "read it with Hive or Trino, which know which files count"
        )
    raise DmlError(
        f"{table.full_name} is no ACID table; read it with Spark's Hive client "
        "(enableHiveSupport), or with Hive"
    )
