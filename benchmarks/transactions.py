"""Transactions a second, against what SQLite itself does with as many commits.

A machine has good and bad minutes: so all are measured in short turns, one after the other, and a
ratio is the median of those of each turn, beside the medians of the rates.
"""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Ratio
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import open_local, open_metastore
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import CommitTxnRequest, OpenTxnsRequest
from hms_bridge.server.serve import MetastoreServer

TURNS, SECONDS = 9, 0.5


def transaction_ratios(folder: Path) -> Iterator[Ratio]:
    """Open and commit through the library, and through the server."""
    settings = Settings(
        warehouse=str(folder / "warehouse"), archive=ArchiveSettings(root=str(folder / "cmroot"))
    )
    store = open_local(f"sqlite:///{folder / 'metastore.db'}", settings)
    server = MetastoreServer(0, store.metastore)
    server.start()
    client = open_metastore(f"thrift://127.0.0.1:{server.port}")
    works = (
        _raw_commits(folder / "raw.db"),
        _open_and_commit(store.metastore),
        _open_and_commit(client),
    )
    turns = [[_rate(work) for work in works] for _ in range(TURNS)]
    client.close()
    server.stop()
    store.metastore.close()
    for name, place, target in (("embedded", 1, 0.4), ("over thrift", 2, 0.1)):
        yield Ratio(
            what=f"open+commit, SQLite, {name}, vs two bare SQLite commits",
            ours=f"{statistics.median(turn[place] for turn in turns):.0f}/s",
            theirs=f"{statistics.median(turn[0] for turn in turns):.0f}/s",
            ratio=statistics.median(turn[place] / turn[0] for turn in turns),
            target=target,
        )


def _rate(work: Callable[[], None]) -> float:
    work()
    count, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < SECONDS:
        work()
        count += 1
    return count / passed


def open_one(metastore: Metastore) -> TxnId:
    """A transaction."""
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
    return txn_id


def commit(metastore: Metastore, txn_id: TxnId) -> None:
    """The end of one, whatever it did."""
    metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))


def _open_and_commit(metastore: Metastore) -> Callable[[], None]:
    return lambda: commit(metastore, open_one(metastore))


def _raw_commits(path: Path) -> Callable[[], None]:
    """Two transactions of five rows each, as an open and a commit write them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT, b INT)")

    def once() -> None:
        for _ in range(2):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO t (a, b) VALUES (?, ?)", [("x" * 100, 1)] * 5)
            connection.execute("COMMIT")

    return once
