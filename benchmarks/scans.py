"""``hms-bridge sql`` reading: what a statement costs by the columns that it uses, and one large
file that several tasks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compaction import COLUMNS, some_rows
from benchmarks.report import Ratio, beside
from hms_bridge.clock import SystemClock
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import Table
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest, TxnType
from hms_bridge.rows.scan import ScanSplit
from hms_bridge.session.locked_transaction import locked_transaction, read_lock
from hms_bridge.session.transaction import Client
from hms_bridge.spark.scan import snapshot_splits, splits_frame
from hms_bridge.spark.sql_session import SqlSession
from tests.conformance import objects
from tests.support.table_write import TableWrite

WRITERS, ROWS_A_WRITER = 4, 250_000
LARGE_BATCHES = 4
NARROW = "count"
"""A column of small numbers."""
CLIENT = Client(user="bench", host="here")
READS = (
    ("count(*)", "count(*)"),
    ("sum of one column", f"sum(`{NARROW}`)"),
    ("count of each of all columns", ", ".join(f"count(`{column.name}`)" for column in COLUMNS)),
)
_PLAIN_TARGETS = (0.1, 0.1, 0.3)


def scan_ratios(
    store: LocalStore,
    spark: Any,
    plain: Path,
    ask_hive: Callable[[str], Sequence[tuple[str, ...]]] | None = None,
) -> Iterator[Ratio]:
    """Statements on ``ours.source`` beside a Hive, if there is one, and Spark on the same rows in
    ORC of its own: of an ACID file it reads every column, and cannot count rows."""
    with _snapshot(store, "source") as (table, splits):
        columns = table.storage.columns
        frame = splits_frame(spark, store.resolver, splits, columns, has_row_ids=False)
        frame.write.orc(str(plain))
    session = sql_session(store, spark)
    for (what, text), plain_target in zip(READS, _PLAIN_TARGETS, strict=True):
        statement = f"SELECT {text} FROM ours.source"

        def ours(statement: str = statement) -> tuple[object, ...]:
            (result,) = session.run(statement)
            (row,) = result.rows
            return row

        def by_spark(text: str = text) -> tuple[object, ...]:
            frame = spark.read.orc(str(plain))
            return tuple(frame.selectExpr(*text.split(", ")).collect()[0])

        def by_hive(statement: str = statement) -> tuple[str, ...]:
            assert ask_hive is not None
            return ask_hive(statement)[0]

        assert ours() == by_spark()
        label = f"{what} of {WRITERS * ROWS_A_WRITER:,} rows by hms-bridge sql"
        yield beside(f"{label}, vs Spark on its own ORC", ours, by_spark, plain_target)
        if ask_hive is not None:
            assert [str(value) for value in ours()] == list(by_hive())
            yield beside(f"{label}, Hive 4.2 beside", ours, by_hive, 1)


def split_ratio(store: LocalStore, spark: Any) -> Ratio:
    """``ours.large``, a file of many stripes, which tasks share; against one task for it."""
    _make_table(store, "large", [[1_000_000] * LARGE_BATCHES])
    with _snapshot(store, "large") as (table, shared):
        assert len(shared) > 1
        assert len({split.split.files for split in shared}) == 1
        whole = (replace(shared[0], split=replace(shared[0].split, start=0, end=None)),)

        def read(splits: Sequence[Any]) -> int:
            frame = splits_frame(
                spark, store.resolver, splits, table.storage.columns, has_row_ids=False
            )
            return int(frame.selectExpr(READS[-1][1].split(", ")[0]).collect()[0][0])

        assert read(shared) == read(whole) == LARGE_BATCHES * 1_000_000
        return beside(
            f"reading a file of {shared[0].split.files[0].size_bytes / 1e6:.0f} MB, "
            f"{len(shared)} splits by stripes, vs one split",
            lambda: read(shared),
            lambda: read(whole),
            1.2,
        )


@contextmanager
def _snapshot(store: LocalStore, name: str) -> Iterator[tuple[Table, tuple[ScanSplit, ...]]]:
    """A table of ``ours``, and what tasks are to read of it."""
    table = store.metastore.get_table("ours", name)
    with locked_transaction(
        store.metastore, CLIENT, SystemClock(), [read_lock(table)], kind=TxnType.READ_ONLY
    ) as transaction:
        yield table, snapshot_splits(store.resolver, transaction, table)


def sql_session(store: LocalStore, spark: Any) -> SqlSession:
    """As ``hms-bridge sql`` has it, warm."""
    return SqlSession(
        store.metastore,
        open_spark=lambda: spark,
        resolver=store.resolver,
        client=CLIENT,
        clock=SystemClock(),
    )


def make_source(store: LocalStore) -> None:
    """``ours.source``: one delta of a file for each writer."""
    _make_table(store, "source", [[ROWS_A_WRITER]] * WRITERS)


def _make_table(store: LocalStore, name: str, writers: Sequence[Sequence[int]]) -> None:
    """A file for each writer, of batches of so many rows."""
    metastore = store.metastore
    metastore.create_table(objects.acid_table("ours", name, storage=objects.orc_storage(COLUMNS)))
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
    asked = AllocateWriteIdsRequest(database_name="ours", table_name=name, txn_ids=(txn_id,))
    (given,) = metastore.allocate_table_write_ids(asked)
    random = np.random.default_rng(7)
    table = metastore.get_table("ours", name)
    write = TableWrite(metastore, store.resolver, table, txn_id, given.write_id)
    write.insert(
        *(
            [some_rows(random, number, rows) for number, rows in enumerate(batches)]
            for batches in writers
        )
    )
    metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))
