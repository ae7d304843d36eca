"""A database server that is restarted under load: whoever is answered was right, and nothing of
what fails is done twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import BackendError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.service.open import open_local_metastore
from integration.referees.mariadb import MariaDb
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.conformance.objects import (
    acid_table,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
    write_id,
)

THREADS = 6
OUTAGES = 2


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, workplace: Workplace) -> Iterator[PostgreSql | MariaDb]:
    """One of its own, whose commits outlive it."""
    own = (
        PostgreSql(workplace, is_durable=True)
        if request.param == "postgresql"
        else MariaDb(workplace)
    )
    yield own
    own.stop()


@pytest.fixture
def metastore(server: PostgreSql | MariaDb, tmp_path: Path) -> Iterator[LocalMetastore]:
    url = server.database("outages").sqlalchemy_url
    service = open_local_metastore(url, warehouse=str(tmp_path / "warehouse"))
    yield service
    service.close()


class Load:
    """What each client was answered: names of tables, transactions; and which calls failed."""

    def __init__(self, metastore: LocalMetastore, database: str) -> None:
        self._metastore = metastore
        self._database = database
        self.is_over = threading.Event()
        self.made: list[str] = []
        self.opened: list[int] = []
        self.given: list[int] = []
        self.committed: list[int] = []
        self.failed: Counter[str] = Counter()

    def work(self, number: int) -> None:
        turn = 0
        while not self.is_over.is_set():
            turn += 1
            self._step("open_txn", self._write)
            self._step("create_table", lambda name=f"t_{number}_{turn}": self._make(name))

    def _step(self, verb: str, step: Any) -> None:
        try:
            step()
        except BackendError:
            self.failed[verb] += 1

    def _write(self) -> None:
        txn = open_txn(self._metastore)
        self.opened.append(txn)
        self.given.append(write_id(self._metastore, txn, self._database))
        commit(self._metastore, txn)
        self.committed.append(txn)

    def _make(self, name: str) -> None:
        self._metastore.create_table(acid_table(self._database, name))
        self.made.append(name)


def test_nothing_is_lost_or_done_twice_while_the_database_is_restarted(
    server: PostgreSql | MariaDb, metastore: LocalMetastore
) -> None:
    database = new_database(metastore)
    new_table(metastore, database)
    first = metastore.get_current_event_id()
    load = Load(metastore, database)
    with ThreadPoolExecutor(THREADS) as pool:
        workers = [pool.submit(load.work, number) for number in range(THREADS)]
        try:
            for _ in range(OUTAGES):
                time.sleep(2)
                server.drop_clients()
                time.sleep(1)
                server.start_again()
            time.sleep(2)
        finally:
            load.is_over.set()
        for worker in workers:
            worker.result(120)
    assert_as_answered(metastore, database, load, first)


def test_a_commit_whose_answer_is_lost_is_told_and_not_made_again(
    metastore: LocalMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = metastore._transactions.database.engine.dialect  # type: ignore[attr-defined]
    commit_really = dialect.do_commit

    def lose_the_answer(connection: Any) -> None:
        commit_really(connection)
        connection.driver_connection.close()
        commit_really(connection)

    last = metastore.get_current_event_id()
    with monkeypatch.context() as patched, pytest.raises(BackendError, match="connection lost"):
        patched.setattr(dialect, "do_commit", lose_the_answer)
        open_txn(metastore)
    assert [event.type for event in events_after(metastore, last)] == ["OPEN_TXN"]


def assert_as_answered(metastore: LocalMetastore, database: str, load: Load, first: int) -> None:
    events = []
    while page := events_after(metastore, events[-1].id if events else first):
        events += page
    assert [event.id for event in events] == list(
        range(first + 1, metastore.get_current_event_id() + 1)
    )
    failures = sum(load.failed.values())
    made = Counter(event.table_name for event in events if event.type == "CREATE_TABLE")
    there = set(metastore.get_tables(database)) - {"t"}
    assert made == Counter(there)
    assert set(load.made) <= there
    assert len(there) - len(load.made) <= load.failed["create_table"]
    kinds = Counter(event.type for event in events)
    assert len(set(load.opened)) == len(load.opened)
    assert len(set(load.given)) == len(load.given)
    highest = metastore.get_max_allocated_write_id(database, "t")
    assert kinds["ALLOC_WRITE_ID_EVENT"] == highest
    # An opening that took too long is aborted and tried again.
    assert 0 <= kinds["OPEN_TXN"] - kinds["ABORT_TXN"] - len(load.opened) <= failures
    assert 0 <= highest - len(load.given) <= failures
    assert 0 <= kinds["COMMIT_TXN"] - len(load.committed) <= failures
    left = {txn.id for txn in metastore.get_open_txns().txns}
    assert load.committed
    assert not left & set(load.committed)
    print(dict(kinds), "failed:", dict(load.failed))
