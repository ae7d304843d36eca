"""Clients commit to Iceberg tables in our metastore at once: each commit that says that it is done
is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from integration.referees.java_iceberg import JavaIceberg
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

COMMITTERS = 8
COMMITS = 2
QUICK = {
    "lock-check-min-wait-time": "0.05",
    "lock-check-max-wait-time": "0.2",
    "lock-check-retries": "300",
}
"""How PyIceberg waits for its lock; else each committer that waits doubles the time of the last."""


@pytest.fixture(scope="module", params=("postgresql", "mariadb", "sqlite"))
def ours(
    request: pytest.FixtureRequest,
    workplace: Workplace,
    postgresql: PostgreSql,
    mariadb: MariaDb,
) -> Iterator[OurServer]:
    folder = workplace.folder("iceberg-store")
    url = {
        "postgresql": lambda: postgresql.database("iceberg").sqlalchemy_url,
        "mariadb": lambda: mariadb.database("iceberg").sqlalchemy_url,
        "sqlite": lambda: f"sqlite:///{folder}/metastore.db",
    }[request.param]()
    server = OurServer(workplace, url)
    yield server
    server.stop()


def _at_once(commit: Callable[[str], bool]) -> set[str]:
    """The commits that say that they are done."""
    together = threading.Barrier(COMMITTERS)

    def commits(committer: int) -> set[str]:
        together.wait()
        names = [f"{committer}-{number}" for number in range(COMMITS)]
        return {name for name in names if commit(name)}

    with ThreadPoolExecutor(COMMITTERS) as threads:
        return set[str]().union(*threads.map(commits, range(COMMITTERS)))


def test_java_commits_without_locks(ours: OurServer, java_iceberg: JavaIceberg) -> None:
    catalog = java_iceberg.catalog(ours.uri, ours.warehouse)
    catalog.create("default.by_java")
    done = _at_once(lambda name: catalog.append("default.by_java", f"file:/nowhere/{name}.orc"))
    assert done
    assert catalog.files("default.by_java") == {f"file:/nowhere/{name}.orc" for name in done}


@pytest.mark.parametrize("ours", ["postgresql"], indirect=True)
def test_pyiceberg_commits_with_its_locks(
    ours: OurServer, pyiceberg_catalog: Callable[..., Any]
) -> None:
    """PyIceberg 0.12 takes a lock of the table for each commit, and expects no parameter."""

    def catalog() -> Any:
        return pyiceberg_catalog(ours.port, ours.warehouse, **QUICK)

    catalog().create_table(
        "default.by_python", Schema(NestedField(1, "name", LongType(), required=False))
    )
    mine = threading.local()

    def commit(name: str) -> bool:
        if not hasattr(mine, "catalog"):
            mine.catalog = catalog()
        committer, number = map(int, name.split("-"))
        rows = pa.table({"name": [committer * COMMITS + number]})
        try:
            mine.catalog.load_table("default.by_python").append(rows)
        except CommitFailedException:
            return False
        return True

    done = _at_once(commit)
    there = sorted(catalog().load_table("default.by_python").scan().to_arrow()["name"].to_pylist())
    assert done
    assert there == sorted(int(name[0]) * COMMITS + int(name[2:]) for name in done)
