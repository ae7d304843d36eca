"""Of a table's files a write of ``hms-bridge sql`` opens only the columns that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.connect import LocalStore
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.session.transaction import Client
from tests.support.counted_reads import Reads
from tests.support.table_write import TableWrite

pytestmark = pytest.mark.spark

ROWS = 30_000
"""So many that each column is larger than what a reader reads through to save a seek."""
DELETED = 100
COLUMNS = {"id", "a", "b", "c"}
BUCKET_0 = 536870912

Ask = Callable[[str], Any]


@pytest.fixture
def reads(tmp_path: Path) -> Reads:
    return Reads(tmp_path / "reads")


@pytest.fixture
def ask(spark: Any, store: LocalStore, reads: Reads) -> Iterator[Ask]:
    """One statement over files whose reads are counted: its rows, or its message."""
    from hms_bridge.spark.sql_session import SqlSession

    session = SqlSession(
        store.metastore,
        open_spark=lambda: spark,
        resolver=reads.resolver(),
        client=Client(user="test", host="test"),
        clock=SystemClock(),
    )

    def run(text: str) -> Any:
        reads.forget()
        (result,) = (list(r.rows) if r.columns else r.message for r in session.run(text))
        return result

    with closing(session):
        yield run


@pytest.fixture
def file(ask: Ask, store: LocalStore, tmp_path: Path) -> Path:
    """Of a partitioned ACID table of which a transaction inserted rows, and the next deleted some;
    each value is as long as it is random."""
    ask("CREATE TABLE t (id BIGINT, a STRING, b STRING, c STRING) PARTITIONED BY (p STRING)")
    random = np.random.default_rng(7)
    rows = pa.record_batch(
        {
            "id": pa.array(random.integers(0, 2**62, ROWS)),
            **{
                name: pa.array([f"{n:016x}" for n in random.integers(0, 2**62, ROWS)])
                for name in "abc"
            },
        }
    )
    _write(store, lambda write: write.insert([rows], partition="p=x"))
    victims = [(1, BUCKET_0, number) for number in range(DELETED)]
    _write(store, lambda write: write.delete(victims, partition="p=x"))
    (file,) = (tmp_path / "warehouse/t/p=x/delta_0000001_0000001_0000").glob("bucket_*")
    return file


def _write(store: LocalStore, write: Callable[[TableWrite], None]) -> None:
    metastore = store.metastore
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="test", host="test"))
    (given,) = metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="default", table_name="t", txn_ids=(txn_id,))
    )
    table = metastore.get_table("default", "t")
    write(TableWrite(metastore, store.resolver, table, TxnId(txn_id), WriteId(given.write_id)))
    metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))


def test_only_used_columns_are_read(ask: Ask, reads: Reads, file: Path) -> None:
    left = ROWS - DELETED
    (deletes,) = file.parents[1].glob("delete_delta_*/bucket_*")
    ask("CREATE TABLE u (n BIGINT)")
    for text, used in (
        ("INSERT INTO u SELECT count(*) FROM t", set()),
        ("INSERT INTO u SELECT count(*) FROM t GROUP BY p", set()),
        ("INSERT INTO u SELECT count(*) FROM t WHERE ROW__ID.rowid >= 0", set()),
        ("INSERT INTO u SELECT sum(length(b)) DIV 16 FROM t", {"b"}),
        ("INSERT INTO u SELECT count(c) FROM t WHERE a <> ''", {"a", "c"}),
        ("INSERT INTO u SELECT count(*) FROM (SELECT * FROM t) AS s WHERE length(id) > 0", COLUMNS),
        ("DELETE FROM t WHERE id < 0", {"id"}),
    ):
        ask(text)
        assert reads.columns_of(file) == used, text
        # What is deleted is asked of every statement.
        assert reads.bytes_of(deletes), text
    assert ask("SELECT n FROM u") == [(left,)] * 6


def test_count_reads_a_small_part_of_a_file(ask: Ask, reads: Reads, file: Path) -> None:
    ask("CREATE TABLE u (n BIGINT)")
    ask("INSERT INTO u SELECT count(*) FROM t")
    of_count = reads.bytes_of(file)
    ask("INSERT INTO u SELECT length(id) + length(a) + length(b) + length(c) FROM t")
    assert reads.columns_of(file) == COLUMNS
    assert reads.bytes_of(file) >= file.stat().st_size > 10 * of_count > 0
