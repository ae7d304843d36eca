"""A database that lets its user have a few connections only: all kinds of transactions get one."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.connect import install_schema
from hms_bridge.errors import BackendError
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from tests.conformance.objects import DS, commit, new_database, new_table, write
from tests.support.databases import ON_A_SERVER, SERVER_URL
from tests.support.few_connections import few_connections
from tests.support.program import Program, serving
from tests.support.simulated_clock import SimulatedClock

pytestmark = ON_A_SERVER
KINDS = (
    {"write": True},
    {"write": False},
    {"write": False, "is_of_one_moment": True},
)


@pytest.fixture
def url() -> Iterator[str]:
    with few_connections(2) as url:
        yield url


@pytest.fixture
def few(url: str) -> Iterator[Database]:
    database = open_database(url)
    yield database
    database.close()


def ask(database: Database, kind: dict[str, bool], seconds: float = 0) -> None:
    with database.transaction(**kind) as connection:
        assert connection.scalar(text("SELECT 1")) == 1
        time.sleep(seconds)


def at_once(*works: Callable[[], object]) -> None:
    with ThreadPoolExecutor(len(works)) as threads:
        for done in [threads.submit(work) for work in works]:
            done.result()


def test_one_of_another_kind_is_used_before_a_transaction_is_refused(few: Database) -> None:
    for _ in range(2):
        for kind in KINDS:
            at_once(lambda kind=kind: ask(few, kind, 0.05), lambda kind=kind: ask(few, kind, 0.05))


def test_who_comes_while_all_are_in_use_waits_for_the_first_that_is_not(few: Database) -> None:
    works = [lambda kind=kind: ask(few, kind, 0.02) for kind in KINDS for _ in range(8)]
    at_once(*works)


def test_the_log_says_what_is_short_and_how_much_of_it_is_ours(
    few: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "hms_bridge.backend"):
        works = [lambda kind=kind: ask(few, kind, 0.02) for kind in KINDS for _ in range(4)]
        at_once(*works)
    (line,) = [record.getMessage() for record in caplog.records]
    # The first may be refused before the others have got theirs.
    assert re.search("this process has [012];", line)
    assert "CONNECTION LIMIT" in line or "max_user_connections" in line


def test_what_another_process_leaves_idle_is_free_after_a_while(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "UNUSED_SECONDS_MAX", 0.2)
    first, second = open_database(url), open_database(url)
    try:
        at_once(lambda: ask(first, KINDS[0], 0.05), lambda: ask(first, KINDS[0], 0.05))

        def work(connection: object) -> str:
            return "done"

        assert run_in_transaction(second, work, write=False, clock=SystemClock()) == "done"
    finally:
        first.close()
        second.close()


def test_a_refusal_says_why_and_what_to_set(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the first answer that a process has from its database."""
    monkeypatch.setattr(engine, "REFUSED_SECONDS", 0)
    first, second = open_database(url), open_database(url)
    is_over = threading.Event()
    began = threading.Barrier(3)

    def hold() -> None:
        with first.transaction(write=False) as connection:
            connection.execute(text("SELECT 1"))
            began.wait(10)
            is_over.wait(30)

    with ThreadPoolExecutor(2) as threads:
        holding = [threads.submit(hold) for _ in range(2)]
        try:
            began.wait(10)
            with pytest.raises(BackendError) as refused:
                run_in_transaction(second, lambda _: 1, write=True, clock=SimulatedClock())
        finally:
            is_over.set()
    assert all(done.exception() is None for done in holding)
    said = str(refused.value)
    assert "this process has 0" in said
    assert "CONNECTION LIMIT" in said or "max_user_connections" in said
    first.close()
    second.close()


@pytest.mark.process
@pytest.mark.parametrize("processes", [1, 2])
def test_a_server_answers_whatever_it_is_asked(tmp_path: Path, processes: int) -> None:
    """One connection for each process, of which one has no clients."""
    with few_connections(1 if processes == 1 else 3) as url:
        assert SERVER_URL is not None
        install_schema(SERVER_URL, Settings())  # the default catalog
        words = ("--metastore", url, "--port", "0", "--processes", str(processes))
        with serving(Program(tmp_path), *words) as server:
            address = server.wait_until_ready()
            at_once(*(partial(_work, address, number) for number in range(8)))
            assert server.stop() == 0, server.lines


def _work(address: str, _number: int) -> None:
    with closing(ThriftMetastoreClient(address, CallSettings(user="u", attempts=1))) as client:
        name = new_database(client)
        new_table(client, name, partition_columns=DS)
        for _ in range(10):
            txn_id, _ = write(client, name)
            assert client.get_table(name, "t").name == "t"
            assert client.get_valid_write_ids([f"{name}.t"])
            commit(client, txn_id)
            assert len(client.get_partitions(name, "t")) == 0
            assert client.get_next_notification(NotificationRequest(last_event_id=EventId(0)))
