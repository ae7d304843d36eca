"""What is sent ahead is part of its transaction: done with the rest, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import BigInteger, bindparam, delete, func, select, text

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedSql, send_ahead
from hms_bridge.backend.pipeline import PipelinedConnection
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.errors import BackendError, CommitUnknownError, DatabaseGoneError, MetaError
from tests.support.aux_rows import FAULT, KEYS, PID, end_connection, keys, put
from tests.support.crowd import wait_until
from tests.support.databases import ON_POSTGRESQL, SERVER_URL

pytestmark = ON_POSTGRESQL
HOLD = FixedSql(select(func.pg_advisory_xact_lock(bindparam("number", type_=BigInteger))))
IS_HELD = FixedSql(
    text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7331 AND granted")
)


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
def is_held() -> Iterator[Callable[[], bool]]:
    """Whether somebody holds number 7331, asked on a connection of its own."""
    assert SERVER_URL is not None
    database = open_database(SERVER_URL)

    def ask() -> bool:
        with database.transaction(write=False) as connection:
            ((count,),) = IS_HELD.all(connection)
        return bool(count)

    yield ask
    database.close()


def test_the_server_begins_with_it(database: Database, is_held: Callable[[], bool]) -> None:
    with database.transaction(write=True) as connection:
        HOLD.later(connection, number=7331)
        assert not is_held()
        send_ahead(connection)
        wait_until(is_held)
        put(connection, 1)
    assert not is_held()
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
    database: Database, is_sent_before: bool
) -> None:
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        if is_sent_before:
            send_ahead(connection)
        end_connection(pid)
        threading.Event().wait(0.3)
        send_ahead(connection)
        put(connection, 2)
    assert keys(database) == []


def test_one_that_is_lost_before_a_refusal_is_not_used_again(database: Database) -> None:
    with (
        pytest.raises((MetaError, DatabaseGoneError)),
        database.transaction(write=True) as connection,
    ):
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        send_ahead(connection)
        end_connection(pid)
        threading.Event().wait(0.3)
        raise MetaError("no")
    with database.transaction(write=True) as connection:
        put(connection, 2)
    assert keys(database) == [2]


def test_one_that_is_lost_at_a_statement_that_was_sent_before_leaves_no_doubt(
    database: Database,
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
        ending = threading.Timer(0.5, end_connection, [pid])
        ending.start()
    holder.close()
    ending.join()
    assert keys(database) == []
