"""Small compactions and their cleaning, ours: many tables of a few tiny deltas each."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from cleaner.daemon import make_cleaner
from hms_bridge.cli.worker import compaction_workers, make_worker
from hms_bridge.compaction.executor import CompactionExecutor, always
from hms_bridge.compaction.worker import Worker
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from hms_bridge.spark.request import SparkRequest
from tests.conformance import objects
from tests.support.table_write import TableWrite

DELTAS = 4
COLUMNS = (Column(name="id", type="int"), Column(name="v", type="string"))


@dataclass(frozen=True, kw_only=True)
class SmallWork:
    """What small tables took: ``entries`` of DELTAS directories each."""

    entries: int
    compacting_seconds: float
    cleaning_seconds: float

    @property
    def minors_a_minute(self) -> float:
        return self.entries * 60 / self.compacting_seconds

    @property
    def cleaning_ms_an_entry(self) -> float:
        return self.cleaning_seconds * 1000 / self.entries


def small_work(
    store: LocalStore,
    database: str,
    tables: int,
    executor: CompactionExecutor | None = None,
    *,
    workers: int = 1,
) -> SmallWork:
    """Make tables, compact them, clean them; everything must be done after it.

    Where the tasks run is the product's own choice, by bytes, unless an ``executor`` is given.
    """
    make_small_tables(store, database, [f"small{number}" for number in range(tables)])
    compacting_seconds = _compact(store, tables, executor, workers)
    # An entry may go when no id can come any more that was given before its commit.
    time.sleep(2 * store.settings.txn.open_timeout_ms / 1000)
    cleaner = make_cleaner(store)
    logging.getLogger("cleaner").setLevel(logging.ERROR)
    started = time.perf_counter()
    outcomes = cleaner.run_once()
    cleaning_seconds = time.perf_counter() - started
    assert len(outcomes) == tables, len(outcomes)
    assert all(outcome.victim_count == DELTAS for outcome in outcomes), outcomes[0]
    return SmallWork(
        entries=tables, compacting_seconds=compacting_seconds, cleaning_seconds=cleaning_seconds
    )


def _compact(
    store: LocalStore, tables: int, executor: CompactionExecutor | None, workers: int
) -> float:
    with compaction_workers(
        store.metastore, store.settings, SparkRequest(master="local[2]"), count=workers
    ) as chosen:
        given = [
            make_worker(store.metastore, always(executor), number=number) if executor else worker
            for number, worker in enumerate(chosen)
        ]
        started = time.perf_counter()
        with ThreadPoolExecutor(workers) as threads:
            compacted = sum(threads.map(_compact_all, given))
        seconds = time.perf_counter() - started
    assert compacted == tables
    return seconds


def _compact_all(worker: Worker) -> int:
    count = 0
    while (outcome := worker.run_once()) is not None:
        assert outcome.state == "compacted", outcome.message
        count += 1
    return count


def archived_files(store: LocalStore) -> int:
    """How many places archived files came from."""
    entries = store.manifest.entries(store.archive().cmroot.uri)
    return sum(len(entry.origins) for entry in entries.values())


def make_small_tables(store: LocalStore, database: str, names: Sequence[str]) -> None:
    """Tables of DELTAS single-row deltas, each asked to be compacted."""
    metastore = store.metastore
    for name in names:
        metastore.create_table(
            objects.acid_table(database, name, storage=objects.orc_storage(COLUMNS))
        )
        table = metastore.get_table(database, name)
        for number in range(DELTAS):
            (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="bench", host="here"))
            asked = AllocateWriteIdsRequest(
                database_name=database, table_name=name, txn_ids=(txn_id,)
            )
            (given,) = metastore.allocate_table_write_ids(asked)
            rows = pa.record_batch({"id": pa.array([number], pa.int32()), "v": pa.array([name])})
            TableWrite(metastore, store.resolver, table, txn_id, given.write_id).insert([rows])
            metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))
        metastore.compact(
            CompactionRequest(target=Target(database, name), type=CompactionType.MINOR)
        )
