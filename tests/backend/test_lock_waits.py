"""A lock that somebody holds for good, as an administrator's LOCK TABLE: who waits hears of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, create_engine, func, select, text

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.clock import SystemClock
from hms_bridge.errors import BackendError
from tests.support.databases import ON_A_SERVER, ON_POSTGRESQL, SERVER_URL, fresh_database

pytestmark = ON_A_SERVER
IS_POSTGRESQL = (SERVER_URL or "").startswith("postgresql")
SECONDS_MAX = 60
"""On a busy machine."""


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    assert SERVER_URL is not None
    with fresh_database():
        pass
    monkeypatch.setattr(engine, "LOCK_SECONDS_MAX", 1)
    database = open_database(SERVER_URL)
    yield database
    database.close()


@contextmanager
def locked() -> Iterator[int]:
    """The number by which the server knows the one who holds the table."""
    assert SERVER_URL is not None
    statement = 'LOCK TABLE "AUX_TABLE"' if IS_POSTGRESQL else "LOCK TABLES `AUX_TABLE` WRITE"
    number = "SELECT pg_backend_pid()" if IS_POSTGRESQL else "SELECT connection_id()"
    admin = create_engine(SERVER_URL)
    with admin.connect() as connection:
        holder = int(connection.scalar(text(number)) or 0)
        connection.execute(text(statement))
        yield holder
        if not IS_POSTGRESQL:
            connection.execute(text("UNLOCK TABLES"))
    admin.dispose()


def count(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(AUX_TABLE)) or 0


def submit(
    threads: ThreadPoolExecutor, database: Database, *, write: bool, seconds: float
) -> Future[int]:
    rule = RetrySettings(lock_seconds_max=seconds)
    return threads.submit(
        run_in_transaction, database, count, write=write, clock=SystemClock(), settings=rule
    )


@pytest.mark.parametrize("write", [False, True])
def test_who_waits_in_vain_hears_for_whom(
    database: Database, write: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(1) as threads, locked() as holder:
        waiting = submit(threads, database, write=write, seconds=1)
        error = waiting.exception(SECONDS_MAX)
    assert isinstance(error, BackendError)
    said = [str(error), *(record.getMessage() for record in caplog.records)]
    assert len(said) > 1, "the log says so before anybody gives up"
    for line in said:
        assert f"process {holder} of " in line


def test_who_waits_goes_on_once_it_may(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(1) as threads, caplog.at_level(logging.WARNING):
        with locked():
            waiting = submit(threads, database, write=True, seconds=SECONDS_MAX)
            while not caplog.records:
                assert not waiting.done()
        assert waiting.result(SECONDS_MAX) == 0


@ON_POSTGRESQL
def test_an_administrators_own_limit_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SERVER_URL is not None
    monkeypatch.setenv("PGOPTIONS", "-c lock_timeout=7s")
    limited = open_database(SERVER_URL)
    with limited.transaction(write=True) as connection:
        assert connection.scalar(text("SHOW lock_timeout")) == "7s"
    limited.close()
