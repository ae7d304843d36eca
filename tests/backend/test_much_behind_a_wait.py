"""Much that is to be sent behind a statement that waits does not look like a host that has gone."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from psycopg.errors import DivisionByZero
from sqlalchemy import Text, bindparam, func, insert, select, text

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.pipeline import PipelinedConnection
from hms_bridge.backend.prepared_text import PreparedText
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.errors import BackendError, DatabaseGoneError
from tests.support.aux_rows import FAULT
from tests.support.databases import ON_POSTGRESQL, SERVER_URL, fresh_database

pytestmark = ON_POSTGRESQL

WAITS_SECONDS = 4.0
MUCH = "x" * 20_000_000
ROW = AUX_TABLE.c.MT_KEY1 == "k"
LOCK = FixedSql(select(AUX_TABLE.c.MT_KEY2).where(ROW).with_for_update())
LENGTH = FixedSql(select(func.length(bindparam("text", type_=Text()))))
SLOW = FixedSql(text("SELECT pg_sleep(60)"))


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """One whose host is given up after a second."""
    patience = [
        (libpq, name, 1000 if libpq == "tcp_user_timeout" else value)
        for libpq, name, value in engine._PATIENCE
    ]
    monkeypatch.setattr(engine, "_PATIENCE", patience)
    assert SERVER_URL is not None
    with ExitStack() as stack:
        installed = stack.enter_context(fresh_database())
        with installed.transaction(write=True) as connection:
            connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=7))
        opened = open_database(SERVER_URL)
        stack.callback(opened.close)
        with opened.transaction(write=True) as connection:  # texts are prepared
            assert LOCK.later(connection).rows
            assert LENGTH.later(connection, text="x").rows == [(1,)]
        yield opened


@pytest.fixture
def held(database: Database) -> Iterator[None]:
    """The row is locked by another for a while."""
    is_locked = threading.Event()

    def hold() -> None:
        assert SERVER_URL is not None
        other = open_database(SERVER_URL)
        with other.transaction(write=True) as connection:
            assert LOCK.later(connection).rows
            is_locked.set()
            time.sleep(WAITS_SECONDS)
        other.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_locked.wait(30)
    yield
    thread.join()


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_server_that_waits_for_a_lock_has_not_gone(database: Database, is_ahead: bool) -> None:
    """It reads nothing meanwhile."""
    with database.transaction(write=True) as connection:
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, PipelinedConnection)
        locked = LOCK.later(connection)
        if is_ahead:
            raw.send_ahead()
        lengths = [LENGTH.later(connection, text=sent) for sent in (MUCH, "xx", MUCH)]
        if is_ahead:
            raw.send_ahead()
    assert locked.rows == [(7,)]
    assert [answer.rows for answer in lengths] == [[(len(MUCH),)], [(2,)], [(len(MUCH),)]]


def _cut(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as way:
        way.shutdown(socket.SHUT_RDWR)


def test_a_commit_that_was_not_sent_yet_is_in_no_doubt(database: Database) -> None:
    with (
        pytest.raises(DatabaseGoneError),
        database.transaction(write=True) as connection,
    ):
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, PipelinedConnection)
        SLOW.later(connection)
        LENGTH.later(connection, text=MUCH)
        cut = threading.Timer(1, _cut, [raw.pgconn.socket])
        cut.start()
    cut.join()


def test_nothing_is_done_after_what_failed_without_a_transaction(database: Database) -> None:
    put = PreparedText('INSERT INTO "AUX_TABLE" ("MT_KEY1", "MT_KEY2") SELECT \'l\', length($1)')
    with database.transaction(write=False) as connection:
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, PipelinedConnection)
        raw.ask(PreparedText("SELECT 1 / $1::bigint"), [0], is_looked_at=True)
        answer = raw.ask(put, [MUCH], is_looked_at=True)
        with pytest.raises(DivisionByZero):
            _ = answer.count
    with database.transaction(write=False) as connection:
        assert list(connection.scalars(select(AUX_TABLE.c.MT_KEY1))) == ["k"]


def test_what_fails_before_much_undoes_all(database: Database) -> None:
    with (
        pytest.raises(BackendError, match="division by zero"),
        database.transaction(write=True) as connection,
    ):
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="gone", MT_KEY2=1))
        FAULT.later(connection, by=0)
        LENGTH.later(connection, text=MUCH)
    with database.transaction(write=True) as connection:
        keys = connection.scalars(select(AUX_TABLE.c.MT_KEY1)).all()
        assert list(keys) == ["k"]
        assert LENGTH.later(connection, text="xx").rows == [(2,)]
