"""Spark's catalog on executors that have nothing but Spark: an ACID table with deletes over HDFS.

Rows of the slow query take their time in executors, so that one can be ended, or stopped, in the
middle of its scan, or of a write of what it reads.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected
from hms_bridge.model.catalog import Column, Database
from hms_bridge.spark.request import read_properties
from integration.referees import install
from integration.referees.acid_writes import write
from integration.referees.errors import RefereeError, StatementError
from integration.referees.hdfs import GROUP, HIVE_USER, Hdfs
from integration.referees.ours import OurPlans, OurProgram, OurServer
from integration.referees.processes import Workplace
from integration.referees.spark import (
    HIDDEN_HOSTS,
    SPARK_JAVA,
    HiddenStandalone,
    SparkDriver,
    is_below,
)
from tests.conformance import objects

CALLS = "integration.drivers.catalog_rows"
COLUMNS = (Column(name="id", type="int"),)
HALF = 200
LEFT = [number for number in range(2 * HALF) if number % 10]
ORDERS = "acid.far.orders"
SLOWLY = f"select id from {ORDERS} where reflect('java.lang.Thread', 'sleep', 15L) is not null"
PATIENCE_SECONDS = 120.0
DRIVER = {
    "spark.driver.extraJavaOptions": SPARK_JAVA,
    "spark.driver.memory": "700m",
    "spark.executor.extraJavaOptions": SPARK_JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    "spark.sql.files.maxPartitionBytes": "100k",  # a task for each file
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
}
pytestmark = [pytest.mark.spark_hidden, pytest.mark.hdfs]


@dataclass(frozen=True, kw_only=True)
class Far:
    """A metastore whose only table lies on HDFS."""

    metastore: str
    environment: Mapping[str, str]


@pytest.fixture(scope="module")
def far(workplace: Workplace, hdfs: Hdfs) -> Iterator[Far]:
    hdfs.make_directory("/far", owner=HIVE_USER, group=GROUP, mode="770")
    server = OurServer(
        workplace,
        f"sqlite:///{workplace.folder('far')}/metastore.db",
        warehouse=f"{hdfs.uri}/far",
        settings={"hive.repl.cmrootdir": f"{hdfs.uri}/far/cmroot"},
        environment=hdfs.environment(),
    )
    resolver = file_systems(Settings(hadoop=hdfs.hadoop()))
    ids = [
        pa.record_batch([pa.array(range(at, at + HALF), pa.int32())], names=["id"])
        for at in (0, HALF)
    ]
    victims = [
        (1, 536870912 + (writer << 16), row) for writer in (0, 1) for row in range(0, HALF, 10)
    ]
    with connected(server.uri) as port:
        port.create_database(Database(name="far", location=f"{hdfs.uri}/far/far.db"))
        storage = objects.orc_storage(COLUMNS, location=f"{hdfs.uri}/far/far.db/orders")
        port.create_table(objects.acid_table("far", "orders", storage=storage))
        write(port, resolver, "far.orders", lambda one: one.insert(*([batch] for batch in ids)))
        write(port, resolver, "far.orders", lambda one: one.delete(victims))
    yield Far(metastore=server.uri, environment=hdfs.environment())
    server.stop()


@pytest.fixture(scope="module")
def jar(workplace: Workplace) -> str:
    """That of `hms-bridge spark package`."""
    folder = workplace.folder("jar-for-spark")
    OurProgram(workplace, "").verb("spark", "package", "--output", str(folder))
    return read_properties(folder / "spark.properties")["spark.jars"]


@pytest.fixture(scope="module")
def driver(
    workplace: Workplace, spark_hidden: HiddenStandalone, far: Far, jar: str
) -> Iterator[SparkDriver]:
    started = SparkDriver(
        workplace,
        master=spark_hidden.master,
        settings=DRIVER | SPECULATION | {"spark.jars": jar},
        catalog={"metastore": far.metastore},
        environment=far.environment,
    )
    yield started
    started.stop()


def test_a_table_with_deletes_over_hdfs(driver: SparkDriver) -> None:
    assert _ids(driver, f"select id from {ORDERS}") == LEFT
    assert driver.sql(f"select count(*) from {ORDERS}") == [[len(LEFT)]]


def test_an_executor_killed_in_a_scan(driver: SparkDriver, spark_hidden: HiddenStandalone) -> None:
    with Scan(driver, spark_hidden) as scan:
        os.kill(scan.executor, signal.SIGKILL)
        assert scan.ids() == LEFT


def test_a_copy_of_a_task_whose_executor_stands_still(
    driver: SparkDriver, spark_hidden: HiddenStandalone
) -> None:
    with Scan(driver, spark_hidden) as scan:
        os.kill(scan.executor, signal.SIGSTOP)
        assert scan.ids() == LEFT  # long before Spark gives the executor up for lost
    assert _ids(driver, f"select id from {ORDERS}") == LEFT


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_an_append_whose_executor_ends_or_stands_still(
    driver: SparkDriver, spark_hidden: HiddenStandalone, far: Far, end: signal.Signals
) -> None:
    """Of each task one try is seen."""
    name = f"copy_{end.name.lower()}"
    with connected(far.metastore) as port:
        place = f"{port.get_database('far').location}/{name}"
        storage = objects.orc_storage(COLUMNS, location=place)
        port.create_table(objects.acid_table("far", name, storage=storage))
    statement = f"insert into acid.far.{name} {SLOWLY}"
    with Scan(driver, spark_hidden, statement) as scan:
        os.kill(scan.executor, end)
        assert scan.ids() == []
        assert _ids(driver, f"select id from acid.far.{name}") == LEFT


@pytest.fixture(scope="module")
def plans(workplace: Workplace, far: Far, jar: str) -> Iterator[dict[str, str]]:
    """What a program without Python is given, with the jar that was packed."""
    started = OurPlans(workplace, far.metastore, environment=far.environment)
    yield DRIVER | started.settings | {"spark.cores.max": "1", "spark.jars": jar}
    started.stop()


def test_executors_without_the_jar(
    workplace: Workplace, spark_hidden: HiddenStandalone, far: Far, plans: dict[str, str]
) -> None:
    """As docs/spark.md has it in its table of errors."""
    only_here = {"spark.driver.extraClassPath": plans["spark.jars"], "spark.jars": ""}
    settings = plans | only_here | {"spark.task.maxFailures": "1"}
    lacking = SparkDriver(
        workplace, master=spark_hidden.master, settings=settings, environment=far.environment
    )
    try:
        with pytest.raises(StatementError, match=r"ClassNotFoundException: hmsbridge\.spark"):
            lacking.sql(f"select id from {ORDERS}")
    finally:
        lacking.stop()


def test_spark_35(workplace: Workplace, far: Far, plans: dict[str, str]) -> None:
    python = install.spark_35()
    cluster = HiddenStandalone(workplace, python)
    older = SparkDriver(
        workplace, master=cluster.master, settings=plans, python=python, environment=far.environment
    )
    try:
        assert older.version.startswith("3.5.")
        assert _ids(older, f"select id from {ORDERS}") == LEFT
    finally:
        older.stop()
        cluster.stop()


class Scan:
    """A slow statement, an executor being in the middle of it; what stood still goes on at last."""

    def __init__(
        self, driver: SparkDriver, cluster: HiddenStandalone, statement: str = SLOWLY
    ) -> None:
        self._statement = statement
        self._driver = driver
        self._cluster = cluster
        self._application = driver.call(f"{CALLS}:application")
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> Scan:
        _until(lambda: self._driver.call(f"{CALLS}:executors") == len(HIDDEN_HOSTS))
        before = self._tasks()
        self._rows = self._thread.submit(_ids, self._driver, self._statement)
        _until(lambda: self._tasks() >= before + 2)
        time.sleep(0.5)  # some of the rows of each task
        assert not self._rows.done()
        self.executor = self._executor()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.executor, signal.SIGCONT)
        self._thread.shutdown()

    def ids(self) -> list[int]:
        return self._rows.result(PATIENCE_SECONDS)

    def _tasks(self) -> int:
        """How many were started, by what executors write."""
        logs = (log for folder in self._cluster.work_folders
                for log in folder.glob(f"{self._application}/*/stderr"))  # fmt: skip
        return sum(log.read_text(errors="replace").count("Running task ") for log in logs)

    def _executor(self) -> int:
        for words in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                text, pid = words.read_bytes().decode(errors="replace"), int(words.parent.name)
                is_one = "CoarseGrainedExecutorBackend" in text and self._application in text
                if is_one and is_below(pid, self._cluster.workers[0]):
                    return pid
        raise RefereeError("the first worker has no executor of this application")


def _ids(driver: SparkDriver, statement: str) -> list[int]:
    rows: list[list[Any]] = driver.sql(statement)
    return sorted(row[0] for row in rows)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RefereeError("it did not come about in time")
        time.sleep(0.05)
