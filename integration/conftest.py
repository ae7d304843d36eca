"""Fixtures: every real system, started by the first case that asks for it, stopped at the end of
the run.

A case belongs to the systems whose fixtures it names itself, and has their markers: `-m trino476`
runs Trino's cases.
"""

from __future__ import annotations

import inspect
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import py4j.java_gateway
import py4j.protocol
import pytest

from integration.referees import hive_texts as texts
from integration.referees import install, java_metastore, outside
from integration.referees.beside import Beside
from integration.referees.cluster import Cluster
from integration.referees.hdfs import Hdfs
from integration.referees.hive42 import Hive42
from integration.referees.hive_schema import HiveSchemas
from integration.referees.java_client import JavaClients
from integration.referees.java_iceberg import JavaIceberg
from integration.referees.java_metastore import JavaMetastore
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer, OurSession
from integration.referees.outside import OutsideClients
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from integration.referees.s3 import S3
from integration.referees.spark import (
    HiddenStandalone,
    OurSparkDriver,
    SparkDriver,
    SparkStandalone,
)
from integration.referees.trino import Trino
from integration.second_try import OPTION, SecondTry, add_option
from integration.systems import SYSTEMS

pytest.register_assert_rewrite("tests.support.world", "tests.support.repl_world")
LOGS = Path(__file__).parent / "logs"


class Stoppable(Protocol):
    def stop(self) -> None: ...


Referee = TypeVar("Referee", bound=Stoppable)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    if outcomes := config.getoption(OPTION):
        config.pluginmanager.register(SecondTry(config, Path(outcomes)))
    for system in SYSTEMS:
        config.addinivalue_line(
            "markers", f"{system.fixture}: cases of {system.name} {system.version}"
        )
    # A terminated run ends like an interrupted one, so that fixtures stop what they started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


FAMILIES = {
    "hive": {"hive42", "hive42_metastore", "hive42_metastore_alone", "hive2310", "hms401"},
    "cluster": {"cluster", "hdfs"},
    "databases": {"mariadb"},
    "beside": {"hive42_beside"},
}
"""Systems that many files share, by how long their cases take: the longest first, so that what is
short fills the end of the other process. What runs in one process starts each of them once."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    systems = {system.fixture for system in SYSTEMS}
    of_file: dict[Path, set[str]] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            for name in inspect.signature(item.function).parameters.keys() & systems:
                item.add_marker(name)
                of_file.setdefault(item.path, set()).add(name)
    families = {path: _family(path, of_file.get(path, set())) for path in {i.path for i in items}}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(families[item.path]))
    ranks = {name: rank for rank, name in enumerate(FAMILIES)}
    items.sort(key=lambda item: ranks.get(families[item.path], len(ranks)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without its groups xdist starts every system twice, which takes more memory than there is."""
    is_worker = hasattr(session.config, "workerinput")
    if is_worker and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("pytest-xdist does not group cases with this pytest; take < 9.2")


def _family(path: Path, systems: set[str]) -> str:
    """The name of the group of files that run in one process, one after the other."""
    return next((name for name, shared in FAMILIES.items() if shared & systems), path.stem)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = session.config.stash.get(LOG_FOLDER, None)
    if folder is not None and exitstatus == 0:
        shutil.rmtree(folder)


LOG_FOLDER = pytest.StashKey[Path]()


def _running(start: Callable[[], Referee]) -> Iterator[Referee]:
    referee = start()
    yield referee
    referee.stop()


@pytest.fixture(scope="session")
def workplace(pytestconfig: pytest.Config) -> Iterator[Workplace]:
    """Data folder, logs and processes of this run; the logs stay only if something failed."""
    folder = LOGS / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    pytestconfig.stash[LOG_FOLDER] = folder
    place = Workplace(folder)
    yield place
    place.close()


@pytest.fixture(scope="session")
def postgresql(workplace: Workplace) -> Iterator[PostgreSql]:
    yield from _running(lambda: PostgreSql(workplace))


@pytest.fixture(scope="session")
def mariadb(workplace: Workplace) -> Iterator[MariaDb]:
    yield from _running(lambda: MariaDb(workplace))


@pytest.fixture(scope="session")
def hdfs(workplace: Workplace) -> Iterator[Hdfs]:
    yield from _running(lambda: Hdfs(workplace))


@pytest.fixture(scope="session")
def s3(workplace: Workplace) -> Iterator[S3]:
    yield from _running(lambda: S3(workplace))


@pytest.fixture(scope="session")
def hive_schemas(postgresql: PostgreSql) -> HiveSchemas:
    """Databases with Hive's own schema, by version."""
    return HiveSchemas(postgresql)


@pytest.fixture(scope="session")
def hive42(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[Hive42]:
    """Hive 4.2.0's SQL, with the metastore inside the same process; `session_at(uri)` uses another
    metastore.
    """
    yield from _running(lambda: Hive42(workplace, hive_schemas.database("4.2.0", "hive42")))


@pytest.fixture(scope="session")
def hive42_metastore(workplace: Workplace, hive42: Hive42) -> Iterator[JavaMetastore]:
    """Hive 4.2.0's metastore server, on the database and the warehouse of `hive42`."""
    yield from _running(
        lambda: JavaMetastore(
            workplace,
            java_metastore.flavour_42(),
            database=hive42.database,
            warehouse=hive42.warehouse,
            external_warehouse=hive42.external_warehouse,
        )
    )


@pytest.fixture(scope="session")
def hive42_metastore_alone(
    workplace: Workplace, hive_schemas: HiveSchemas
) -> Iterator[JavaMetastore]:
    """The same on a database of its own: for cases that leave transactions open, which in a shared
    one would stop every cleaner and REPL DUMP.
    """
    yield from _running(
        lambda: JavaMetastore(
            workplace,
            java_metastore.flavour_42(),
            database=hive_schemas.database("4.2.0", "hive42_alone"),
        )
    )


@pytest.fixture(scope="session")
def hms401(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[JavaMetastore]:
    yield from _running(
        lambda: JavaMetastore(
            workplace,
            java_metastore.flavour_401(),
            database=hive_schemas.database("4.0.1", "hms401"),
        )
    )


@pytest.fixture(autouse=True)
def errors_of_java() -> None:
    """A session of PySpark in this process reads errors of every Java process as Spark's own, and
    fails at those of a process without Spark."""
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value


@pytest.fixture(scope="session")
def java_clients(workplace: Workplace) -> Iterator[JavaClients]:
    """Hive 4.0.1's own client: java_clients.at(metastore_uri)."""
    yield from _running(lambda: JavaClients(workplace))


@pytest.fixture(scope="session", params=texts.VERSIONS)
def hive_texts(workplace: Workplace, request: pytest.FixtureRequest) -> Iterator[texts.HiveTexts]:
    """Hive's own writers and readers of texts, of each release."""
    yield from _running(lambda: texts.HiveTexts(workplace, request.param))


@pytest.fixture(scope="session")
def java_iceberg(workplace: Workplace) -> Iterator[JavaIceberg]:
    """Iceberg's Java library: java_iceberg.catalog(metastore_uri, warehouse)."""
    yield from _running(lambda: JavaIceberg(workplace))


@pytest.fixture(scope="session")
def hms313(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[JavaMetastore]:
    yield from _running(
        lambda: JavaMetastore(
            workplace,
            java_metastore.flavour_313(),
            database=hive_schemas.database("3.1.3", "hms313"),
        )
    )


@pytest.fixture(scope="session")
def hive2310(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[JavaMetastore]:
    """The metastore inside PySpark's jars."""
    yield from _running(
        lambda: JavaMetastore(
            workplace,
            java_metastore.flavour_2310(),
            database=hive_schemas.database("2.3.10", "hive2310"),
        )
    )


@pytest.fixture(scope="session")
def spark_local2(workplace: Workplace) -> Iterator[SparkDriver]:
    yield from _running(lambda: SparkDriver(workplace))


@pytest.fixture(scope="session")
def spark_standalone(workplace: Workplace) -> Iterator[SparkStandalone]:
    yield from _running(lambda: SparkStandalone(workplace))


@pytest.fixture(scope="session")
def spark_hidden(workplace: Workplace) -> Iterator[HiddenStandalone]:
    """A cluster whose workers see nothing of ours."""
    yield from _running(lambda: HiddenStandalone(workplace))


@pytest.fixture(scope="session")
def spark_35(workplace: Workplace) -> Iterator[OurSparkDriver]:
    """Spark 3.5 in an interpreter of its own, opened as hms-bridge opens it."""
    yield from _running(lambda: OurSparkDriver(workplace, python=install.spark_35()))


@pytest.fixture
def spark_hive(workplace: Workplace) -> Iterator[Callable[[str], SparkDriver]]:
    """Open a Spark session whose built-in Hive client uses the metastore at a URI."""
    drivers: list[SparkDriver] = []

    def open_at(metastore_uri: str) -> SparkDriver:
        drivers.append(SparkDriver(workplace, metastore_uri=metastore_uri))
        return drivers[-1]

    yield open_at
    for driver in drivers:
        driver.stop()


@pytest.fixture(scope="session")
def outside_clients(workplace: Workplace) -> Iterator[OutsideClients]:
    yield from _running(lambda: OutsideClients(workplace))


@pytest.fixture(scope="session")
def pymetastore(outside_clients: OutsideClients) -> Callable[..., Any]:
    """pymetastore(port, method, *arguments)."""
    return outside_clients.pymetastore


@pytest.fixture(scope="session")
def hmsclient() -> Callable[..., Any]:
    """hmsclient(port) is a context with the client."""
    return outside.hms_client


@pytest.fixture(scope="session")
def pyiceberg_catalog() -> Callable[..., Any]:
    """pyiceberg_catalog(port, warehouse) is PyIceberg's Hive catalog there."""
    return outside.iceberg_catalog


@pytest.fixture(scope="session")
def trino476(
    workplace: Workplace, outside_clients: OutsideClients, hive42_metastore: JavaMetastore
) -> Iterator[Trino]:
    """Trino, whose catalog `hive` has the tables of `hive42`."""

    def start() -> Trino:
        trino = Trino(workplace, outside_clients)
        trino.add_catalog("hive", hive42_metastore.uri)
        return trino

    yield from _running(start)


@pytest.fixture(scope="session")
def ours(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[OurServer]:
    """`hms-bridge serve` on a PostgreSQL database with the schema of Hive 4.2.0."""
    store = hive_schemas.database("4.2.0", "ours")
    yield from _running(lambda: OurServer(workplace, store.sqlalchemy_url, store=store))


@pytest.fixture(scope="session")
def hive42_on_ours(workplace: Workplace, ours: OurServer) -> Iterator[Hive42]:
    """Hive 4.2.0's SQL with our server as its metastore.

    ALTER TABLE … COMPACT, Initiator and Cleaner go past the server to the database, so Hive knows
    that one too.
    """
    yield from _running(
        lambda: Hive42(
            workplace,
            ours.store,
            name="hive-4.2.0-on-ours",
            warehouse=ours.warehouse,
            settings={"hive.metastore.uris": ours.uri},
        )
    )


@pytest.fixture(scope="session")
def cluster(workplace: Workplace, hdfs: Hdfs, hive_schemas: HiveSchemas) -> Iterator[Cluster]:
    """HDFS with permissions, PostgreSQL, Hive 4.2 with and without our server, each started by the
    first case that asks for it.
    """
    yield from _running(lambda: Cluster(workplace, hdfs, hive_schemas))


@pytest.fixture(scope="session")
def hive42_beside(workplace: Workplace, hive_schemas: HiveSchemas) -> Iterator[Beside]:
    """A Hive 4.2.0 with its own metastore, at its own defaults, and hms-bridge on its database."""
    yield from _running(lambda: Beside(workplace, hive_schemas.database("4.2.0", "beside")))


@pytest.fixture(scope="session")
def our_session(spark_local2: SparkDriver) -> Callable[[str], OurSession]:
    """our_session(metastore): hms-bridge's SQL and worker on any metastore, without a new Spark
    each time.
    """
    return lambda metastore: OurSession(spark_local2, metastore)
