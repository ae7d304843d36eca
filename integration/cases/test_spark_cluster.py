"""Our SQL, DML and compaction on executors that have nothing but Spark, Python and our archive.

Tasks are held in the middle of their work (drivers/gates.py), so that what is killed, frozen or
copied is known, and is really at work.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from changemanager.hadoop import HadoopConfig
from changemanager.location import Resolver
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.spark.request import read_properties
from integration.drivers import gates
from integration.referees.errors import RefereeError
from integration.referees.hdfs import GROUP, HIVE_USER, Hdfs
from integration.referees.ours import OurProgram, OurServer, OurSession
from integration.referees.processes import Workplace
from integration.referees.spark import (
    SPARK_JAVA,
    HiddenStandalone,
    OurSparkDriver,
    is_alive,
    is_below,
    parent_of,
)

DRIVER = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SPARK_JAVA,
    "spark.executor.extraJavaOptions": SPARK_JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}
PATIENCE_SECONDS = 240.0
ROWS = 600
pytestmark = [pytest.mark.spark_hidden, pytest.mark.hdfs]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where databases of these cases lie: HDFS with permissions, as one of its users."""

    uri: str
    hadoop: HadoopConfig
    environment: dict[str, str]

    @property
    def resolver(self) -> Resolver:
        return file_systems(Settings(hadoop=self.hadoop))

    def names(self, path: str) -> list[str]:
        """What lies in a directory below, hidden or not."""
        location = self.resolver(f"{self.uri}/{path}")
        return sorted(status.name for status in location.volume.children(location.path))

    def check_nothing_is_left(self, path: str) -> None:
        assert not [name for name in self.names(path) if name.startswith("_tmp")]


@pytest.fixture(scope="module")
def place(hdfs: Hdfs) -> Place:
    hdfs.make_directory("/cluster", owner=HIVE_USER, group=GROUP, mode="775")
    return Place(uri=f"{hdfs.uri}/cluster", hadoop=hdfs.hadoop(), environment=hdfs.environment())


@pytest.fixture(scope="module")
def server(workplace: Workplace, place: Place) -> Iterator[OurServer]:
    folder = workplace.folder("cluster-metastore")
    started = OurServer(
        workplace,
        f"sqlite:///{folder}/metastore.db",
        warehouse=f"{place.uri}/warehouse",
        settings={"hive.repl.cmrootdir": f"{place.uri}/cmroot"},
        environment=place.environment,
    )
    yield started
    started.stop()


@pytest.fixture(scope="module")
def package(workplace: Workplace) -> Path:
    """What `hms-bridge spark package` writes."""
    folder = workplace.folder("for-spark")
    OurProgram(workplace, "").verb("spark", "package", "--output", str(folder),
                                           "--environment")  # fmt: skip
    return folder / "spark.properties"


@pytest.fixture(scope="module")
def unpacked(workplace: Workplace, package: Path) -> dict[str, str]:
    """Settings for hosts that have the packages in one place: executors unpack nothing."""
    folder = workplace.folder("packages-of-hosts")
    with tarfile.open(package.parent / "environment.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # not in 3.11.2
        archive.extractall(folder)
    return {
        "spark.submit.pyFiles": read_properties(package)["spark.submit.pyFiles"],
        "spark.pyspark.python": f"{folder}/bin/python",
    }


@pytest.fixture(scope="module")
def open_driver(
    workplace: Workplace, spark_hidden: HiddenStandalone, unpacked: dict[str, str]
) -> Iterator[Callable[..., OurSparkDriver]]:
    """A driver on the cluster with one executor of each worker."""
    drivers: list[OurSparkDriver] = []

    def open_with(**settings: str) -> OurSparkDriver:
        own = {name.replace("__", "."): value for name, value in settings.items()}
        drivers.append(
            OurSparkDriver(
                workplace,
                master=spark_hidden.master,
                settings=DRIVER | unpacked | own,
            )
        )
        return drivers[-1]

    yield open_with
    for driver in drivers:
        driver.stop()


@pytest.fixture(scope="module")
def driver(open_driver: Callable[..., OurSparkDriver]) -> OurSparkDriver:
    """Soon takes a silent executor for lost."""
    return open_driver(
        spark__executor__heartbeatInterval="1s",
        spark__network__timeout="10s",
        spark__network__timeoutInterval="2s",
        spark__storage__blockManagerHeartbeatTimeoutMs="10s",
    )


class Gate:
    """Holds the first task that wants to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arm(self) -> None:
        (self.folder / gates.ARMED).touch()

    def held(self, statement: Future[Any]) -> dict[str, Any]:
        """Process and path of the task that is held."""
        path = self.folder / gates.HELD
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not path.exists():
            if statement.done():
                raise RefereeError(f"no task was held: {statement.result()}")
            if time.monotonic() > deadline:
                raise RefereeError("no task came to the gate")
            time.sleep(0.05)
        held: dict[str, Any] = json.loads(path.read_text())
        return held

    def release(self) -> None:
        (self.folder / gates.RELEASED).touch()


@pytest.fixture
def gate(workplace: Workplace) -> Iterator[Gate]:
    made = Gate(workplace.folder("gate"))
    yield made
    made.release()


@contextlib.contextmanager
def started(call: Callable[[], Any]) -> Iterator[Future[Any]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


def make_table(session: OurSession, place: Place, database: str) -> None:
    session.sql(f"create database {database} location '{place.uri}/{database}.db'")
    session.sql(f"create table {database}.t (id int, n int)")
    session.sql(f"insert into {database}.t select id, 0 from range({ROWS})")


def check_rows(session: OurSession, database: str, *, n: int) -> None:
    """Each row once, with an identifier of its own."""
    (found,) = session.sql(
        f"select count(*), count(distinct id), count(distinct row__id), min(n), max(n), sum(id) "
        f"from {database}.t"
    )
    assert found == (*(str(ROWS),) * 3, str(n), str(n), str(ROWS * (ROWS - 1) // 2))


def told_to_spark(cluster: HiddenStandalone, settings: Mapping[str, str]) -> list[str]:
    """What a verb is told to work on the cluster."""
    told = [word for key, value in settings.items() for word in ("--spark", f"{key}={value}")]
    return ["--master", cluster.master, *told]


def executor_of(held: dict[str, Any], cluster: HiddenStandalone) -> int:
    """The Java process that runs a held Python worker: below a daemon of Python's, below it."""
    executor = parent_of(parent_of(int(held["pid"])))
    assert any(is_below(executor, worker) for worker in cluster.workers)
    return executor


def test_from_package_to_compaction_by_the_program(
    workplace: Workplace,
    spark_hidden: HiddenStandalone,
    server: OurServer,
    package: Path,
    unpacked: dict[str, str],
    driver: OurSparkDriver,
    place: Place,
) -> None:
    program = OurProgram(workplace, server.uri, environment=place.environment)
    packed = [*told_to_spark(spark_hidden, DRIVER), "--spark-properties", str(package)]
    checked = program.verb("spark", "check", *packed, "--location", place.uri, "--format", "json")
    assert {one["host"] for one in json.loads(checked)}
    assert all(not one["lacks"] for one in json.loads(checked))
    said = program.run(
        "sql", *packed, "--format", "jsonl", "-e",
        f"CREATE DATABASE cli LOCATION '{place.uri}/cli.db'; CREATE TABLE cli.t (id INT, v STRING);"
        "INSERT INTO cli.t VALUES (1, 'a'), (2, 'b'), (3, 'c'); DELETE FROM cli.t WHERE id = 3;"
        "UPDATE cli.t SET v = upper(v) WHERE id = 1; SELECT * FROM cli.t ORDER BY id;"
        "CREATE TABLE cli.u (id INT); INSERT INTO cli.u VALUES (1), (2), (3);"
        "DELETE FROM cli.u WHERE id = 2; SELECT count(*) AS n FROM cli.u",
    )  # fmt: skip
    assert [json.loads(line) for line in said.splitlines()] == [
        {"id": 1, "v": "A"}, {"id": 2, "v": "b"}, {"n": 2},
    ]  # fmt: skip
    session = OurSession(driver, server.uri, place.hadoop)
    rows = session.sql("select row__id, id, v from cli.t order by id")
    program.run("compact", "cli.t", "minor")  # taken by the next one, before its own
    shared = told_to_spark(spark_hidden, DRIVER | unpacked)
    on_spark = ("--set", "hms.bridge.compactor.local.bytes=0")
    compacted = program.run(
        "compact",
        "cli.u",
        "major",
        "--run",
        "--default-pool",
        *shared,
        *on_spark,
        "--format",
        "json",
    )
    assert json.loads(compacted)["state"] == "ready for cleaning"
    assert any(name.startswith("base_0000002_v") for name in place.names("cli.db/u"))
    assert any(name.startswith("delta_0000001_0000003_v") for name in place.names("cli.db/t"))
    assert [row[1:] for row in rows] == [("1", "A"), ("2", "b")]
    assert session.sql("select row__id, id, v from cli.t order by id") == rows
    assert session.sql("select id from cli.u order by id") == [("1",), ("3",)]


def test_executors_without_our_packages_are_named(
    workplace: Workplace, spark_hidden: HiddenStandalone
) -> None:
    """The check comes before anything that needs a metastore's answer."""
    folder = workplace.folder("unpackaged")
    url = f"sqlite:///{folder}/metastore.db"
    program = OurProgram(workplace, url)
    program.verb("schema", "init", "--database", url)
    told = told_to_spark(spark_hidden, DRIVER | {"spark.cores.max": "1"})
    with pytest.raises(RefereeError, match=r"Cannot run program .*no-such-python"):
        program.run("sql", *told, "--spark", "spark.pyspark.python=/no-such-python", "-e",
                    "SELECT 1")  # fmt: skip
    bare = Path(os.path.realpath("/proc/self/exe"))  # the Python below our environment
    with pytest.raises(RefereeError, match=r"cannot run tasks: .*no package hms_bridge"):
        program.run("sql", *told, "--spark", f"spark.pyspark.python={bare}", "-e", "SELECT 1")


def test_an_executor_killed_in_a_compaction(
    driver: OurSparkDriver,
    spark_hidden: HiddenStandalone,
    server: OurServer,
    place: Place,
    gate: Gate,
) -> None:
    session = OurSession(driver, server.uri, place.hadoop, gate=gate.folder)
    make_table(session, place, "killed")
    session.sql("update killed.t set n = 1")
    session.sql("alter table killed.t compact 'major'")
    gate.arm()
    with started(session.work) as work:
        held = gate.held(work)
        os.kill(executor_of(held, spark_hidden), signal.SIGKILL)
        said = work.result(PATIENCE_SECONDS)
    assert "became base_0000002_v" in said
    assert f"with {ROWS} events" in said
    check_rows(session, "killed", n=1)
    place.check_nothing_is_left("killed.db/t")


def test_a_frozen_executor_that_comes_back(
    driver: OurSparkDriver,
    spark_hidden: HiddenStandalone,
    server: OurServer,
    place: Place,
    gate: Gate,
) -> None:
    """All of Spark stands still on one host, as if that were suspended. The executor is given up
    for lost, the task is done elsewhere, and then its Python goes on writing."""
    session = OurSession(driver, server.uri, place.hadoop, gate=gate.folder)
    make_table(session, place, "frozen")
    gate.arm()
    with started(lambda: session.sql("update frozen.t set n = 1")) as update:
        held = gate.held(update)
        executor = executor_of(held, spark_hidden)
        worker = int(held["pid"])
        # The host's own worker first: it would end the executor, as it is told to.
        frozen = [parent_of(executor), worker, parent_of(worker), executor]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            update.result(PATIENCE_SECONDS)
            check_rows(session, "frozen", n=1)
            before = place.names("frozen.db/t")
            assert not [name for name in before if name.startswith("_tmp")]
            gate.release()
            os.kill(worker, signal.SIGCONT)  # the others would end it before it has written
            until(lambda: place.names("frozen.db/t") != before)
        finally:
            gate.release()
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    left = [name for name in place.names("frozen.db/t") if name not in before]
    assert [name[: len("_tmp_write_v")] for name in left] == ["_tmp_write_v"]
    check_rows(session, "frozen", n=1)
    until(lambda: not is_alive(worker))
    session.sql("delete from frozen.t where id < 0 or id = 5")
    place.check_nothing_is_left("frozen.db/t")


def test_a_copy_overtakes_a_slow_task(
    workplace: Workplace,
    open_driver: Callable[..., OurSparkDriver],
    server: OurServer,
    place: Place,
    gate: Gate,
) -> None:
    events = workplace.folder("events")
    driver = open_driver(
        spark__speculation="true", spark__speculation__interval="200ms",
        spark__speculation__task__duration__threshold="2s", spark__speculation__quantile="0.5",
        spark__eventLog__enabled="true", spark__eventLog__dir=f"file:{events}",
        spark__eventLog__compress="false", spark__eventLog__rolling__enabled="false",
    )  # fmt: skip
    session = OurSession(driver, server.uri, place.hadoop, gate=gate.folder)
    make_table(session, place, "copied")
    session.sql("update copied.t set n = 1")
    session.sql("alter table copied.t compact 'major'")
    gate.arm()
    with started(session.work) as work:
        held = gate.held(work)
        held_ms = time.time() * 1000
        said = work.result(PATIENCE_SECONDS)
    assert f"with {ROWS} events" in said
    until(lambda: not is_alive(held["pid"]))  # Spark ends the try that lost, in some seconds
    check_rows(session, "copied", n=1)
    place.check_nothing_is_left("copied.db/t")
    driver.stop()
    ended = [
        (event["Stage ID"], event["Task Info"]["Index"], event["Task Info"])
        for path in events.iterdir()
        for event in map(json.loads, path.read_text().splitlines())
        if event["Event"] == "SparkListenerTaskEnd"
    ]
    # Others may be overtaken on a busy machine too: this one ran when it was seen at the gate.
    ((stage, index, beaten),) = [
        (stage, index, task)
        for stage, index, task in ended
        if task["Killed"] and task["Launch Time"] <= held_ms <= task["Finish Time"]
    ]
    tries = [task for *place_of, task in ended if place_of == [stage, index] and task != beaten]
    (winner,) = [task for task in tries if not task["Killed"]]
    assert not winner["Failed"]
    assert winner["Host"] != beaten["Host"]
    assert winner["Speculative"] != beaten["Speculative"]


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RefereeError("it did not come about in time")
        time.sleep(0.05)
