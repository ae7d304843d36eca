"""The suites of the metastore, which `make test` runs on SQLite, on the databases of clusters."""

from __future__ import annotations

import sys

import pytest

from integration.referees.errors import RefereeError
from integration.referees.mariadb import MariaDb
from integration.referees.ours import CHECKOUT, ENVIRONMENT
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

# One process each, so that a failure says where; all together take a few minutes a store.
SUITES = {
    "transactions": ("tests/txn", "tests/backend"),
    # Crashes in the middle of a verb are played on SQLite alone: a test that dies cannot close.
    "behaviour": (
        "tests/conformance",
        "tests/service",
        "tests/archive",
        "tests/notification",
        "--ignore=tests/service/test_warehouse_files.py",
    ),
    "workers": ("tests/compaction/test_worker.py", "tests/rows/test_transaction.py"),
}


def _run(workplace: Workplace, suite: str, url: str, shared_url: str) -> None:
    environment = {
        **ENVIRONMENT,
        "HMS_BRIDGE_TEST_DATABASE": url,
        "HMS_BRIDGE_TEST_DATABASES": shared_url,
    }
    try:
        workplace.run(
            f"suite-{suite}",
            [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
             "--durations=12",
             "-k", "not sqlite", *SUITES[suite]],
            env=environment,
            cwd=CHECKOUT,
            timeout_seconds=600,
        )  # fmt: skip
    except RefereeError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize("suite", SUITES)
def test_suites_hold_on_postgresql(
    postgresql: PostgreSql, workplace: Workplace, suite: str
) -> None:
    url, shared = (postgresql.database("suites").sqlalchemy_url for _ in range(2))
    _run(workplace, suite, url, shared)


@pytest.mark.parametrize("suite", SUITES)
def test_suites_hold_on_mariadb(mariadb: MariaDb, workplace: Workplace, suite: str) -> None:
    url, shared = (mariadb.database("suites").sqlalchemy_url for _ in range(2))
    _run(workplace, suite, url, shared)
