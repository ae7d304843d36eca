"""Spark reads for a long time what others change, compact and clean all the while.

How long: HMS_BRIDGE_READER_SECONDS (40; the half hour of a release: 1800).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from changemanager.location import FsspecResolver
from hms_bridge.connect import connected
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Database
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from integration.drivers.slow_readers import IN_DRIVER, IN_TASKS
from integration.referees.acid_writes import write
from integration.referees.ours import OurProgram, OurServer
from integration.referees.processes import Workplace
from integration.referees.spark import SparkDriver
from integration.story.sides import wait_until
from tests.conformance import objects
from tests.support.table_write import TableWrite

SECONDS = float(os.environ.get("HMS_BRIDGE_READER_SECONDS", "40"))
CALL = "integration.drivers.slow_readers:read_slowly"
COLUMNS = (Column(name="id", type="int"),)
FILES, ROWS_EACH = 45, 8
ROWS = FILES * ROWS_EACH
FIRST_BUCKET = 1 << 29
ROUND_SECONDS = max(3.0, SECONDS / 300)
TABLE = "slow.orders"
SETTINGS = {
    "spark.sql.files.maxPartitionBytes": "100k",  # a task for each file
    "spark.scheduler.mode": "FAIR",
}


@pytest.fixture
def server(workplace: Workplace) -> Iterator[OurServer]:
    """With worker and cleaner at their own defaults."""
    database = f"sqlite:///{workplace.folder('slow')}/metastore.db"
    started = OurServer(workplace, database, arguments=("--worker", "--cleaner"))
    yield started
    started.stop()


@pytest.mark.timeout(SECONDS * 2 + 600)
def test_rows_are_those_of_the_snapshot(workplace: Workplace, server: OurServer) -> None:
    folder = server.warehouse / "slow.db" / "orders"
    driver = SparkDriver(workplace, settings=SETTINGS, catalog={"metastore": server.uri})
    with connected(server.uri) as port, ThreadPoolExecutor(1) as thread:
        try:
            _make(port, folder)
            before = _files(folder)
            shown = _shown(driver)
            program = OurProgram(workplace, server.uri)
            reading = thread.submit(
                driver.call, CALL, table=f"acid.{TABLE}", rows=ROWS, seconds=SECONDS
            )
            wait_until(lambda: _reads(program) == shown, "two transactions of readers")

            def check() -> None:
                seen, left = _reads(program), before & _files(folder)
                assert reading.done() or (seen, left) == (shown, before)

            changes = _change_until_read(port, reading, check)
            assert reading.result() == [list(range(ROWS))] * 2
            wait_until(lambda: _reads(program) == [], "the end of both", timeout_seconds=150)
            _compact(port, CompactionType.MAJOR)
            wait_until(lambda: not before & _files(folder), "the cleaning", timeout_seconds=150)
            assert driver.sql(f"select count(*), min(id) from acid.{TABLE}") == [[ROWS, changes]]
        finally:
            driver.stop()
    print(f"{changes} changes while {ROWS} rows were read")


def _make(port: Metastore, folder: Path) -> None:
    port.create_database(Database(name="slow", location=f"file:{folder.parent}"))
    storage = objects.orc_storage(COLUMNS, location=f"file:{folder}")
    port.create_table(objects.acid_table("slow", "orders", storage=storage))
    files = [[_batch(range(at, at + ROWS_EACH))] for at in range(0, ROWS, ROWS_EACH)]
    write(port, FsspecResolver(), TABLE, lambda one: one.insert(*files))


def _batch(ids: range) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int32())], names=["id"])


def _change_until_read(
    port: Metastore, reading: Future[list[list[int]]], check: Callable[[], None]
) -> int:
    """In each round the first row that is left goes and one comes, and a compaction is queued. How
    many rounds there were."""
    changes = 0
    while not reading.done():
        _change(port, changes)
        changes += 1
        _compact(port, CompactionType.MINOR if changes % 3 else CompactionType.MAJOR)
        if changes % 5 == 1:
            check()
        time.sleep(ROUND_SECONDS)
    return changes


def _change(port: Metastore, number: int) -> None:
    victim = (1, FIRST_BUCKET + (number // ROWS_EACH << 16), number % ROWS_EACH)

    def change(one: TableWrite) -> None:
        one.insert([_batch(range(ROWS + number, ROWS + number + 1))])
        one.delete([victim], statement_id=1)

    write(port, FsspecResolver(), TABLE, change)


def _compact(port: Metastore, kind: CompactionType) -> None:
    port.compact(CompactionRequest(target=Target(database="slow", table="orders"), type=kind))


def _files(folder: Path) -> set[Path]:
    return set(folder.glob("delta_0000001_*/bucket_*"))


def _shown(driver: SparkDriver) -> list[str]:
    application = driver.call("integration.drivers.catalog_rows:application")
    return sorted(f"spark {application}: {text}" for text in (IN_TASKS, IN_DRIVER))


def _reads(program: OurProgram) -> list[str]:
    """What `hms-bridge txns` says of readers."""
    lines = program.run("txns", "--format", "jsonl").splitlines()
    txns = [json.loads(line) for line in lines]
    return sorted(
        txn["agent_info"] for txn in txns if (txn["agent_info"] or "").startswith("spark ")
    )
