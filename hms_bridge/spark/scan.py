"""A snapshot of a full ACID table as a DataFrame: planned here, read by tasks over Arrow.

One way for Spark 3.5 and 4: no data source, so that nothing of Python runs on the driver's host
but the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from changemanager.location import Resolver
from hms_bridge.clock import SystemClock
from hms_bridge.dml.named import find_table
from hms_bridge.dml.spark_types import spark_type
from hms_bridge.errors import DmlError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Table
from hms_bridge.model.txn import TxnType
from hms_bridge.rows.scan import ScanSplit, plan_scan
from hms_bridge.session.locked_transaction import LockedTransaction, locked_transaction, read_lock
from hms_bridge.session.transaction import Client
from hms_bridge.spark.tasks import NO_COLUMN, ReadTask, pack_splits

ROW_ID_TYPE = "struct<writeid:bigint,bucketid:int,rowid:bigint>"


def snapshot_frame(
    spark: SparkSession,
    resolver: Resolver,
    transaction: LockedTransaction,
    table: Table,
    columns: Sequence[Column],
    *,
    has_row_ids: bool,
    lease: Broadcast[bool],
) -> DataFrame:
    """What a transaction sees of a table: ``columns`` in their order, then if asked for ``row__id``
    and ``row__partition``; with none of them a column of nulls, so that rows can be counted.

    The frame is to be read before the transaction ends; without its lease no task of it runs.
    """
    return splits_frame(
        spark,
        resolver,
        snapshot_splits(resolver, transaction, table),
        columns,
        has_row_ids=has_row_ids,
        lease=lease,
    )


@contextmanager
def frame_lease(spark: SparkSession) -> Iterator[Broadcast[bool]]:
    """Tasks that carry it fail after the block: Spark hands nobody a broadcast that is destroyed.
    Executors ask neither metastore nor driver for it."""
    lease = spark.sparkContext.broadcast(True)
    try:
        yield lease
    finally:
        with suppress(Py4JError):  # of a Spark that was stopped, which runs no task any more
            lease.destroy()


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
    lease: Broadcast[bool] | None = None,
) -> DataFrame:
    """One Spark task for each split: the numbers of a range, one in each partition of it."""
    task = ReadTask(
        resolver=resolver,
        splits=pack_splits(splits),
        columns=tuple(columns),
        has_row_ids=has_row_ids,
        is_exact=is_exact,
        lease=lease,
    )
    numbers = spark.range(0, len(splits), 1, max(1, len(splits)))
    return numbers.mapInArrow(task, frame_schema(columns, has_row_ids=has_row_ids))


def frame_schema(columns: Sequence[Column], *, has_row_ids: bool) -> str:
    """Spark's DDL text of the columns; one boolean where there are none."""
    fields = [f"`{column.name}` {spark_type(column.type)}" for column in columns]
    if has_row_ids:
        fields += [f"`row__id` {ROW_ID_TYPE}", "`row__partition` string"]
    return ", ".join(fields or [f"`{NO_COLUMN}` boolean"])


@contextmanager
def read_table(
    spark: SparkSession,
    metastore: Metastore,
    resolver: Resolver,
    table_name: str,
    *,
    client: Client,
    columns: Sequence[str] = (),
    has_row_ids: bool = False,
) -> Iterator[DataFrame]:
    """A table as a DataFrame, for Spark 3.5, which has no ``format("hive_acid")``, and later ones.

    The snapshot is protected until the end of the block: read within it. After it an action on the
    frame fails: "Attempted to use Broadcast after it was destroyed". ``table_name`` is
    ``database.table``; ``columns`` none: all. Raises NoSuchObjectError, DmlError.
    """
    with (
        open_table_snapshot(metastore, table_name, client, columns) as (transaction, table),
        frame_lease(spark) as lease,
    ):
        chosen = chosen_columns(table, columns)
        yield snapshot_frame(
            spark, resolver, transaction, table, chosen, has_row_ids=has_row_ids, lease=lease
        )


@contextmanager
def open_table_snapshot(
    metastore: Metastore, table_name: str, client: Client, columns: Sequence[str] = ()
) -> Iterator[tuple[LockedTransaction, Table]]:
    """A read-only transaction with its lock on ``database.table``, and the table as it is then.

    It lives until the end of the block, however that ends: a thread of this process keeps it alive.
    Raises NoSuchObjectError; DmlError for a table that is not full ACID or lacks a column.
    """
    database, _, name = table_name.lower().rpartition(".")

    def current_table() -> Table:
        table = find_table(metastore, database or "default", name)
        require_full_acid(table)
        chosen_columns(table, columns)
        return table

    with locked_transaction(
        metastore, client, SystemClock(), [read_lock(current_table())], kind=TxnType.READ_ONLY
    ) as transaction:
        # A definition may have changed while the lock was awaited.
        yield transaction, current_table()


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


def chosen_columns(table: Table, names: Sequence[str]) -> tuple[Column, ...]:
    """Columns in the order asked, all without names. Raises DmlError for an unknown one."""
    columns = {c.name: c for c in (*table.storage.columns, *table.partition_columns)}
    unknown = [name for name in names if name.lower() not in columns]
    if unknown:
        raise DmlError(
            f"{unknown[0]} is no column of {table.full_name}; it has {', '.join(columns)}"
        )
    return tuple(columns[name.lower()] for name in names or columns)
