"""Histories of many clients, as `tests/service/test_histories.py` checks them, on each database.

HMS_BRIDGE_HISTORY_OPERATIONS (1000) says how many calls; `make histories` has 100000.
"""

from __future__ import annotations

import os
import sys

import pytest

from integration.referees.mariadb import MariaDb
from integration.referees.ours import CHECKOUT, OurServer, environment_of_ours
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

OPERATIONS = os.environ.get("HMS_BRIDGE_HISTORY_OPERATIONS", "1000")
SECONDS = 300 + int(OPERATIONS) // 20
FILE = "tests/service/test_histories.py"


def _run(workplace: Workplace, name: str, url: str, chosen: str, *, server: str = "") -> None:
    output = workplace.run(
        f"histories-{name}",
        [sys.executable, "-m", "pytest", "-q", "-s", "-n", "0", "-p", "no:cacheprovider",
         "--timeout=0", "-k", chosen, FILE],
        env={
            **environment_of_ours(),
            "HMS_BRIDGE_HISTORY_OPERATIONS": OPERATIONS,
            "HMS_BRIDGE_TEST_DATABASES": url,
            "HMS_BRIDGE_TEST_METASTORES": server,
        },
        cwd=CHECKOUT,
        timeout_seconds=SECONDS,
    )  # fmt: skip
    assert " calls in " in output
    print(name, output)


@pytest.mark.timeout(SECONDS + 60)
def test_on_sqlite(workplace: Workplace) -> None:
    _run(workplace, "sqlite", "", "sqlite")


@pytest.mark.timeout(SECONDS + 60)
def test_on_postgresql(workplace: Workplace, postgresql: PostgreSql) -> None:
    _run(workplace, "postgresql", postgresql.database("histories").sqlalchemy_url, "postgresql")


@pytest.mark.timeout(SECONDS + 60)
def test_by_two_processes_on_postgresql(workplace: Workplace, postgresql: PostgreSql) -> None:
    """Of one server, whose clients are spread over them."""
    database = postgresql.database("histories_of_processes")
    server = OurServer(
        workplace, database.sqlalchemy_url, settings={"hms.bridge.server.processes": "2"}
    )
    _run(workplace, "processes", "", "thrift", server=server.uri)
    server.stop()


@pytest.mark.timeout(SECONDS + 60)
def test_on_mariadb(workplace: Workplace, mariadb: MariaDb) -> None:
    _run(workplace, "mariadb", mariadb.database("histories").sqlalchemy_url, "mysql")
