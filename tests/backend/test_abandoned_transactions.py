"""A transaction whose process stands still, or whose host has gone, holds up nobody for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Connection, insert, select, text, update

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from tests.support.databases import ON_A_SERVER, ON_POSTGRESQL, SERVER_URL, fresh_database
from tests.support.simulated_clock import SimulatedClock

pytestmark = ON_A_SERVER
KEY = AUX_TABLE.c.MT_KEY1 == "k"


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, Database]]:
    """On one database, with a row that both need."""
    assert SERVER_URL is not None
    monkeypatch.setattr(engine, "IDLE_SECONDS_MAX", 1)
    with ExitStack() as stack:
        installed = stack.enter_context(fresh_database())
        with installed.transaction(write=True) as connection:
            connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=0))
        both = open_database(SERVER_URL), open_database(SERVER_URL)
        for database in both:
            stack.callback(database.close)
        yield both


def add_one(connection: Connection) -> int:
    if connection.dialect.name == "postgresql":  # MariaDB has a limit of its own
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
    row = select(AUX_TABLE.c.MT_KEY2).where(KEY).with_for_update()
    number = int(connection.scalar(row) or 0) + 1
    connection.execute(update(AUX_TABLE).where(KEY).values(MT_KEY2=number))
    return number


def test_others_go_on_and_it_is_done_again(two: tuple[Database, Database]) -> None:
    still, other = two
    seen: list[int] = []

    def stands_still(connection: Connection) -> None:
        seen.append(add_one(connection))
        if len(seen) == 1:
            seen.append(run_in_transaction(other, add_one, write=True, clock=SimulatedClock(1)))
            add_one(connection)  # it wakes up

    run_in_transaction(still, stands_still, write=True, clock=SimulatedClock(1))
    assert seen == [1, 1, 2]
    assert run_in_transaction(other, add_one, write=True, clock=SimulatedClock(1)) == 3


@ON_POSTGRESQL
def test_a_limit_of_the_server_stays(
    two: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = text("SHOW idle_in_transaction_session_timeout")
    with two[0].transaction(write=True) as connection:
        assert connection.scalar(show) == "1s"
    assert SERVER_URL is not None
    monkeypatch.setenv("PGOPTIONS", "-c idle_in_transaction_session_timeout=7s")
    limited = open_database(SERVER_URL)
    with limited.transaction(write=True) as connection:
        assert connection.scalar(show) == "7s"
    limited.close()


@pytest.mark.skipif("mysql" not in (SERVER_URL or ""), reason="of MariaDB")
def test_so_does_one_of_mariadb(two: tuple[Database, Database]) -> None:
    show = text("SELECT @@idle_transaction_timeout")
    with two[0].transaction(write=True) as connection:
        assert connection.scalar(show) == 1
    assert SERVER_URL is not None
    with two[0].transaction(write=True) as connection:
        connection.execute(text("SET GLOBAL idle_transaction_timeout = 7"))
    limited = open_database(SERVER_URL)
    try:
        with limited.transaction(write=True) as connection:
            assert connection.scalar(show) == 7
    finally:
        limited.close()
        with two[0].transaction(write=True) as connection:
            connection.execute(text("SET GLOBAL idle_transaction_timeout = 0"))
