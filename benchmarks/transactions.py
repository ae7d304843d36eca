"""Transactions a second, against what SQLite itself does with as many commits."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.report import Ratio
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import open_local, open_metastore
from hms_bridge.metastore import Metastore
from hms_bridge.model.txn import CommitTxnRequest, OpenTxnsRequest
from hms_bridge.server.serve import MetastoreServer

SECONDS = 4.0


def transaction_ratios(folder: Path) -> Iterator[Ratio]:
    """Open and commit through the library, and through the server."""
    settings = Settings(
        warehouse=str(folder / "warehouse"), archive=ArchiveSettings(root=str(folder / "cmroot"))
    )
    store = open_local(f"sqlite:///{folder / 'metastore.db'}", settings)
    limit = _rate(_raw_commits(folder / "raw.db"))
    embedded = _rate(_open_and_commit(store.metastore))
    server = MetastoreServer(0, store.metastore)
    server.start()
    client = open_metastore(f"thrift://127.0.0.1:{server.port}")
    remote = _rate(_open_and_commit(client))
    client.close()
    server.stop()
    store.metastore.close()
    for name, ours, target in (("embedded", embedded, 0.4), ("over thrift", remote, 0.1)):
        yield Ratio(
            what=f"open+commit, SQLite, {name}, vs two bare SQLite commits",
            ours=f"{ours:.0f}/s",
            theirs=f"{limit:.0f}/s",
            ratio=ours / limit,
            target=target,
        )


def _rate(work: Callable[[], None]) -> float:
    work()
    count, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < SECONDS:
        work()
        count += 1
    return count / passed


def _open_and_commit(metastore: Metastore) -> Callable[[], None]:
    def once() -> None:
        (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
        metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))

    return once


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
