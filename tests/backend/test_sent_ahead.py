"""What is sent ahead is part of its transaction: done with the rest, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import BigInteger, Connection, bindparam, delete, func, literal, select, text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql, send_ahead
from hms_bridge.backend.pipeline import PipelinedConnection
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.errors import BackendError, CommitUnknownError, DatabaseGoneError, MetaError
from tests.support.crowd import wait_until
from tests.support.databases import ON_POSTGRESQL, SERVER_URL

pytestmark = ON_POSTGRESQL
PUT = FixedInsert(AUX_TABLE)
KEYS = FixedSql(select(AUX_TABLE.c.MT_KEY2).order_by(AUX_TABLE.c.MT_KEY2))
FAULT = FixedSql(select(func.mod(literal(1), bindparam("by", type_=BigInteger), type_=BigInteger)))
PID = FixedSql(text("SELECT pg_backend_pid()"))
HOLD = FixedSql(select(func.pg_advisory_xact_lock(bindparam("number", type_=BigInteger))))
IS_HELD = FixedSql(
    text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7331 AND granted")
)


def put(connection: Connection, key: int) -> None:
    PUT.put(connection, [{"MT_KEY1": "k", "MT_KEY2": key}])


def keys(database: Database) -> list[int]:
    with database.transaction(write=False) as connection:
        return [key for (key,) in KEYS.all(connection)]


@pytest.fixture(autouse=True)
def _known_texts(database: Database) -> None:
    """One connection knows the texts, without which nothing is sent ahead."""
    with database.transaction(write=True) as connection:
        put(connection, 0)
        FAULT.later(connection, by=1)
        HOLD.later(connection, number=1)
        KEYS.later(connection)
        PID.all(connection)
        connection.execute(delete(AUX_TABLE))


@pytest.fixture
def other() -> Callable[[FixedSql], int]:
    """Asks on a connection of its own."""
    assert SERVER_URL is not None
    database = open_database(SERVER_URL)

    def ask(question: FixedSql) -> int:
        with database.transaction(write=False) as connection:
            ((number,),) = question.all(connection)
        return int(number)

    return ask


def test_the_server_begins_with_it(database: Database, other: Callable[[FixedSql], int]) -> None:
    with database.transaction(write=True) as connection:
        HOLD.later(connection, number=7331)
        assert other(IS_HELD) == 0
        send_ahead(connection)
        wait_until(lambda: other(IS_HELD) == 1)
        put(connection, 1)
    assert other(IS_HELD) == 0
    assert keys(database) == [1]


def test_its_answers_are_there_like_any_other(database: Database) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
        first = KEYS.later(connection)
        send_ahead(connection)
        assert first.rows == [(1,)], "and nothing is held back"
        put(connection, 2)
        second = KEYS.later(connection)
        send_ahead(connection)
        put(connection, 3)
        third = KEYS.later(connection)
        send_ahead(connection)
        fourth = KEYS.later(connection)
        assert fourth.rows == [(1,), (2,), (3,)]
        assert (len(second.rows), len(third.rows)) == (2, 3)
    assert keys(database) == [1, 2, 3]


def test_it_is_committed_where_nothing_follows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.transaction(write=True) as connection:
        pid = PID.later(connection)
        put(connection, 1)
        send_ahead(connection)
    monkeypatch.setattr(PipelinedConnection, "read", lambda *_: pytest.fail("it is another's"))
    assert len(pid.rows) == 1
    monkeypatch.undo()
    assert keys(database) == [1]


def test_a_refusal_undoes_it(database: Database) -> None:
    with pytest.raises(MetaError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        send_ahead(connection)
        raise MetaError("no")
    with database.transaction(write=True) as connection:
        assert PID.all(connection) == [(pid,)], "the connection is of use again"
        put(connection, 2)
    assert keys(database) == [2]


def test_what_fails_in_it_is_no_doubt_about_the_commit(database: Database) -> None:
    with pytest.raises(BackendError) as caught, database.transaction(write=True) as connection:
        put(connection, 1)
        FAULT.later(connection, by=0)
        send_ahead(connection)
        put(connection, 2)
    assert not isinstance(caught.value, CommitUnknownError)
    assert keys(database) == []


@pytest.mark.parametrize("by", [0, 1])
def test_a_text_that_is_new_behind_it_is_prepared_first(database: Database, by: int) -> None:
    """Which cannot be done in between: what is under way is heard before, and may have failed."""
    new = FixedSql(text("SELECT 5"))
    try:
        with database.transaction(write=True) as connection:
            put(connection, 1)
            FAULT.later(connection, by=by)
            send_ahead(connection)
            put(connection, 2)
            five = new.later(connection)
            assert five.rows == [(5,)]
    except BackendError as error:
        assert by == 0
        assert "zero" in str(error)
    assert keys(database) == [1, 2][: 2 * by]


def test_what_is_not_prepared_yet_waits_for_the_rest(database: Database) -> None:
    new = FixedSql(text("SELECT 6"))
    with database.transaction(write=True) as connection:
        put(connection, 1)
        six = new.later(connection)
        send_ahead(connection)
        put(connection, 2)
    assert six.rows == [(6,)]
    assert keys(database) == [1, 2]


def test_a_cursor_comes_after_it(database: Database) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
        send_ahead(connection)
        assert list(connection.scalars(select(AUX_TABLE.c.MT_KEY2))) == [1]
    assert keys(database) == [1]


@pytest.mark.parametrize("is_sent_before", [False, True])
def test_a_connection_that_is_lost_meanwhile_leaves_no_doubt(
    database: Database, other: Callable[[FixedSql], int], is_sent_before: bool
) -> None:
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        if is_sent_before:
            send_ahead(connection)
        end = FixedSql(text(f"SELECT pg_terminate_backend({pid})::int"))
        assert other(end) == 1
        threading.Event().wait(0.3)
        send_ahead(connection)
        put(connection, 2)
    assert keys(database) == []


def test_one_that_is_lost_before_a_refusal_is_not_used_again(
    database: Database, other: Callable[[FixedSql], int]
) -> None:
    with (
        pytest.raises((MetaError, DatabaseGoneError)),
        database.transaction(write=True) as connection,
    ):
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        send_ahead(connection)
        assert other(FixedSql(text(f"SELECT pg_terminate_backend({pid})::int"))) == 1
        threading.Event().wait(0.3)
        raise MetaError("no")
    with database.transaction(write=True) as connection:
        put(connection, 2)
    assert keys(database) == [2]


def test_one_that_is_lost_at_a_statement_that_was_sent_before_leaves_no_doubt(
    database: Database, other: Callable[[FixedSql], int]
) -> None:
    """Though the commit goes to the server, it gave up on what came before it."""
    assert SERVER_URL is not None
    holder = open_database(SERVER_URL)
    with (
        holder.transaction(write=True) as held_by,
        pytest.raises(DatabaseGoneError),
        database.transaction(write=True) as connection,
    ):
        HOLD.all(held_by, number=7332)
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        HOLD.later(connection, number=7332)
        put(connection, 2)
        send_ahead(connection)
        end = FixedSql(text(f"SELECT pg_terminate_backend({pid})::int"))
        ending = threading.Timer(0.5, lambda: other(end))
        ending.start()
    holder.close()
    ending.join()
    assert keys(database) == []
