"""The suites of the metastore, which `make test` runs on SQLite, on the databases of clusters.

Here is whatever asks `tests.support.databases` for a database. On SQLite alone stay

- crashes (`test_killed_cleaner`, `tests/simulation`, `test_abandoned_compactions`): a test that
  dies cannot close its connections, and the next one waits for its locks;
- `test_warehouse_files`: it opens its database again, which a server's is emptied for;
- the port over a socket, the command line, `tests/repl`, the initiator and DML: they hold no SQL.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from integration.referees.errors import RefereeError
from integration.referees.mariadb import MariaDb
from integration.referees.ours import CHECKOUT, environment_of_ours
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace

# One process each, so that a failure says where.
SUITES = {
    "transactions": ("tests/txn", "tests/backend"),
    "catalog": (
        "tests/conformance/test_metastore_service.py",
        "tests/catalog",
        "tests/service/test_partition_conditions.py",
    ),
    "service": (
        "tests/service/test_blanks_at_ends_of_names.py",
        "tests/service/test_crowds_of_writers.py",
        "tests/service/test_deadlocks.py",
        "tests/service/test_drops.py",
        "tests/service/test_external_warehouse.py",
        "tests/service/test_file_statistics.py",
        "tests/service/test_histories.py",
        "tests/service/test_hook_positions.py",
        "tests/service/test_hooks.py",
        "tests/service/test_hooks_at_least_once.py",
        "tests/service/test_inner_hooks.py",
        "tests/service/test_many_at_once.py",
        "tests/service/test_objects_of_one_moment.py",
        "tests/service/test_shared_writes.py",
        "tests/service/test_as_expected.py",
        "tests/service/test_expected_histories.py",
        "tests/service/test_truncations.py",
        "tests/service/test_writers_of_dropped_tables.py",
        "tests/server/test_constraints.py",
        "tests/archive",
        "tests/policies",
    ),
    "calls": (
        "tests/server/test_catalogs.py",
        "tests/server/test_connectors.py",
        "tests/server/test_databases.py",
        "tests/server/test_expected_parameters.py",
        "tests/server/test_golden_replay.py",
        "tests/server/test_odd_texts.py",
        "tests/server/test_privileges.py",
        "tests/server/test_procedures.py",
        "tests/server/test_reports.py",
        "tests/server/test_resource_plans.py",
        "tests/server/test_roles.py",
        "tests/server/test_schedules.py",
        "tests/server/test_tokens.py",
    ),
    "workers": ("tests/compaction/test_worker.py", "tests/session/test_transaction.py"),
    "cleaner": (
        "tests/cleaner/test_aborted_writes.py",
        "tests/cleaner/test_cleaner.py",
        "tests/cleaner/test_cleaning_trouble.py",
        "tests/cleaner/test_dropped_directories.py",
        "tests/cleaner/test_entries_together.py",
        "tests/cleaner/test_waiting_for_readers.py",
    ),
}
# Files that are synced cost nothing in memory, and say nothing about a database.
MEMORY = Path("/dev/shm")
FILES = {"TMPDIR": str(MEMORY)} if os.access(MEMORY, os.W_OK) else {}
# Else PyMySQL reads the machine's certificates for each connection, as long as a test takes; no
# server here asks for them.
PLAIN = "?ssl_disabled=true"
# Far more than each takes on a machine of its own.
TIMEOUT_SECONDS = 800


def _run(workplace: Workplace, suite: str, url: str, shared_url: str) -> None:
    environment = {
        **environment_of_ours(),
        **FILES,
        "HMS_BRIDGE_TEST_DATABASE": url,
        "HMS_BRIDGE_TEST_DATABASES": shared_url,
    }
    try:
        output = workplace.run(
            f"suite-{suite}",
            [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
             "--durations=12",
             "-k", "not sqlite", *SUITES[suite]],
            env=environment,
            cwd=CHECKOUT,
            timeout_seconds=TIMEOUT_SECONDS,
        )  # fmt: skip
    except RefereeError as error:
        pytest.fail(str(error))
    print(output)


@pytest.mark.parametrize("suite", SUITES)
def test_suites_hold_on_postgresql(
    postgresql: PostgreSql, workplace: Workplace, suite: str
) -> None:
    url, shared = (postgresql.database("suites").sqlalchemy_url for _ in range(2))
    _run(workplace, suite, url, shared)


@pytest.mark.parametrize("suite", SUITES)
def test_suites_hold_on_mariadb(mariadb: MariaDb, workplace: Workplace, suite: str) -> None:
    url, shared = (f"{mariadb.database('suites').sqlalchemy_url}{PLAIN}" for _ in range(2))
    _run(workplace, suite, url, shared)
