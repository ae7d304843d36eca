"""A connection that holds statements back does them all, in their order, or none."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import pytest
from psycopg import InternalError
from sqlalchemy import (
    BigInteger,
    Connection,
    bindparam,
    func,
    insert,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.fixed_sql import FixedSql, locking, send
from hms_bridge.backend.pipeline import PipelinedConnection
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.errors import (
    BackendError,
    CommitUnknownError,
    DatabaseGoneError,
    InvalidObjectError,
    MetaError,
    RetryableBackendError,
)
from tests.support.aux_rows import FAULT, KEYS, PID, PUT, end_connection, keys, put
from tests.support.databases import ON_POSTGRESQL, SERVER_URL

pytestmark = ON_POSTGRESQL
ONE = FixedSql(select(literal(1)))


def connections_of(database: Database) -> list[Any]:
    """Those of the driver that are idle."""
    database.give_back_kept()
    pooled = [database.engine.raw_connection() for _ in range(database.engine.pool.checkedin())]  # type: ignore[attr-defined]
    try:
        return [one.driver_connection for one in pooled]
    finally:
        for one in pooled:
            one.close()


class Watched:
    """How often a connection sends something and waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from hms_bridge.backend.pipeline import PipelinedConnection

        self.sent: list[int] = []
        really = PipelinedConnection._send_all

        def send_all(raw: Any, held: Any, *, is_begun: bool) -> Any:
            self.sent.append(len(held))
            return really(raw, held, is_begun=is_begun)

        monkeypatch.setattr(PipelinedConnection, "_send_all", send_all)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_what_nobody_waits_for_goes_with_what_somebody_waits_for(
    database: Database, watched: Watched
) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
        put(connection, 2, 3)
        assert watched.sent == []
        assert [key for (key,) in KEYS.all(connection)] == [1, 2, 3]
        put(connection, 4)
    assert watched.sent == [4, 2], "begin, two inserts, a question; an insert and the commit"
    assert keys(database) == [1, 2, 3, 4]


def test_a_transaction_without_statements_sends_none(database: Database, watched: Watched) -> None:
    with database.transaction(write=True):
        pass
    assert watched.sent == []


def test_reads_go_together_without_a_transaction(database: Database, watched: Watched) -> None:
    with database.transaction(write=False) as connection:
        first, second = ONE.read_later(connection), ONE.read_later(connection)
        assert watched.sent == []
        assert ([*second.rows], [*first.rows]) == ([(1,)], [(1,)])
        assert watched.sent == [2]


def test_a_read_that_nobody_looked_at_is_done_at_the_end(database: Database) -> None:
    with pytest.raises(BackendError), database.transaction(write=False) as connection:
        FAULT.read_later(connection, by=0)
    with database.transaction(write=False) as connection:
        assert [*ONE.all(connection)] == [(1,)]


def test_what_a_read_failed_with_is_heard_by_who_looks_at_it(database: Database) -> None:
    with pytest.raises(BackendError), database.transaction(write=False) as connection:
        FAULT.read_later(connection, by=0)
        assert ONE.read_later(connection).rows
    assert keys(database) == []


def test_a_cursor_comes_after_what_is_held_back(database: Database) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
        assert list(connection.scalars(select(AUX_TABLE.c.MT_KEY2))) == [1]
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=2))
        assert [key for (key,) in KEYS.all(connection)] == [1, 2]
    assert keys(database) == [1, 2]


def test_one_that_fails_behind_the_commit_undoes_all(database: Database) -> None:
    with pytest.raises(RetryableBackendError), database.transaction(write=True) as connection:
        put(connection, 1)
        ONE.all(connection)
        put(connection, 2)
        put(connection, 1)
        put(connection, 3)
    assert keys(database) == []
    with database.transaction(write=True) as connection:
        put(connection, 4)
    assert keys(database) == [4], "the connection is of use again"


def test_a_refusal_at_the_commit_is_no_doubt_about_it(database: Database) -> None:
    with pytest.raises(BackendError) as caught, database.transaction(write=True) as connection:
        put(connection, 1)
        FAULT.later(connection, by=0)
    assert not isinstance(caught.value, CommitUnknownError)
    assert keys(database) == []


@pytest.fixture
def slow_commits(database: Database) -> Iterator[None]:
    """Of who puts rows."""
    with database.transaction(write=True) as connection:
        connection.execute(
            text(
                "CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'"
            )
        )
        connection.execute(
            text(
                f'CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON "{AUX_TABLE.name}" '
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION be_slow()"
            )
        )
    yield
    with database.transaction(write=True) as connection:
        connection.execute(text("DROP FUNCTION be_slow() CASCADE"))


def when_it_waits(pid: int) -> threading.Thread:
    """End the connection once the server is asleep for it."""

    def end() -> None:
        assert SERVER_URL is not None
        other = open_database(SERVER_URL)
        waits = text("SELECT wait_event FROM pg_stat_activity WHERE pid = :pid")
        with other.transaction(write=False) as connection:
            while connection.scalar(waits, {"pid": pid}) != "PgSleep":
                sleep(0.01)
        other.close()
        end_connection(pid)

    thread = threading.Thread(target=end)
    thread.start()
    return thread


@pytest.mark.usefixtures("slow_commits")
def test_a_connection_that_is_lost_while_committing_leaves_a_doubt(database: Database) -> None:
    with pytest.raises(CommitUnknownError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        ending = when_it_waits(pid)
    ending.join()
    assert keys(database) == [], "and the next transaction has another connection"


def test_one_that_is_lost_at_a_statement_before_the_commit_leaves_none(database: Database) -> None:
    slow = FixedSql(text("SELECT pg_sleep(60)"))
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        slow.later(connection)
        put(connection, 2)
        ending = when_it_waits(pid)
    ending.join()
    assert keys(database) == []


def test_one_that_is_lost_before_the_commit_is_sent_leaves_none(database: Database) -> None:
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
        end_connection(pid)
        threading.Event().wait(0.3)
    assert keys(database) == []


def test_one_that_was_lost_between_two_transactions_can_be_tried_again(database: Database) -> None:
    """Which it is not asked, as it has been idle for a moment only."""
    with database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        put(connection, 1)
    end_connection(pid)
    threading.Event().wait(0.3)
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        put(connection, 2)
    with database.transaction(write=True) as connection:
        put(connection, 3)
    assert keys(database) == [1, 3]


def test_nothing_is_sent_to_a_server_that_has_gone_without_a_word(database: Database) -> None:
    """As one that crashed, or was cut off: what it might do then, nobody would hear of."""
    with database.transaction(write=True) as connection:
        raw: Any = connection.connection.driver_connection
        put(connection, 1)
    with socket.socket(fileno=os.dup(raw.fileno())) as other_end:
        other_end.shutdown(socket.SHUT_RD)
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        put(connection, 2)
    assert keys(database) == [1]


def test_news_of_the_server_are_no_end_of_a_connection(database: Database) -> None:
    """It also sends what nobody has asked for just now."""
    with database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        send(connection, "LISTEN news")
    assert SERVER_URL is not None
    other = open_database(SERVER_URL)
    with other.transaction(write=True) as connection:
        send(connection, "NOTIFY news")
    other.close()
    threading.Event().wait(0.3)
    with database.transaction(write=True) as connection:
        put(connection, 1)
    with database.transaction(write=True) as connection:
        assert PID.all(connection) == [(pid,)]
    assert keys(database) == [1]


def test_a_statement_that_took_too_long_leaves_no_doubt_about_the_commit(
    database: Database,
) -> None:
    slow = FixedSql(text("SELECT pg_sleep(60)"))
    with pytest.raises(BackendError) as caught, database.transaction(write=True) as connection:
        send(connection, "SET LOCAL statement_timeout = 100")
        put(connection, 1)
        slow.later(connection)
    assert not isinstance(caught.value, CommitUnknownError)
    assert keys(database) == []


def test_a_connection_that_is_lost_before_can_be_tried_again(database: Database) -> None:
    with pytest.raises(DatabaseGoneError), database.transaction(write=True) as connection:
        ((pid,),) = PID.all(connection)
        end_connection(pid)
        threading.Event().wait(0.3)
        put(connection, 1)
        ONE.all(connection)
    assert keys(database) == []


def test_what_came_with_the_commit_is_read_before_others_have_the_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.transaction(write=True) as connection:
        one = ONE.later(connection)
        put(connection, 1)
    monkeypatch.setattr(PipelinedConnection, "read", lambda *_: pytest.fail("it is another's"))
    assert one.rows == [(1,)]


def test_an_answer_that_was_undone_is_none(database: Database) -> None:
    with pytest.raises(MetaError), database.transaction(write=True) as connection:
        answer = ONE.later(connection)
        raise MetaError("no")
    with pytest.raises(InternalError, match="undone"):
        _ = answer._answer.rows  # type: ignore[attr-defined]


def test_an_error_of_a_statement_is_heard_by_who_asks_for_a_later_one(database: Database) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
        send(connection, "SAVEPOINT here")
        put(connection, 1)
        with pytest.raises(IntegrityError):
            ONE.all(connection)
        send(connection, "ROLLBACK TO SAVEPOINT here")
        put(connection, 2)
    assert keys(database) == [1, 2]


def test_texts_that_the_server_has_forgotten_are_prepared_again(database: Database) -> None:
    with database.transaction(write=True) as connection:
        put(connection, 1)
    for raw in connections_of(database):
        raw.execute("DEALLOCATE ALL")
        raw.execute("COMMIT")
    with pytest.raises(RetryableBackendError), database.transaction(write=True) as connection:
        put(connection, 2)
    with database.transaction(write=True) as connection:
        put(connection, 3)
    assert keys(database) == [1, 3]


@pytest.fixture
def widened(database: Database) -> Iterator[Callable[[], None]]:
    """What gives a column another type, as an upgrade of Hive's schema does."""

    def change(length: int) -> None:
        with database.transaction(write=True) as connection:
            column = AUX_TABLE.c.MT_COMMENT.name
            kind = f'ALTER TABLE "{AUX_TABLE.name}" ALTER COLUMN "{column}" TYPE varchar({length})'
            connection.execute(text(kind))

    yield lambda: change(300)
    database.close()
    change(255)


def test_texts_whose_columns_have_another_type_are_prepared_again(
    database: Database, widened: Callable[[], None]
) -> None:
    """On all connections: each would fail for as long as the server runs."""
    comments = FixedSql(select(AUX_TABLE.c.MT_COMMENT))
    with (
        database.transaction(write=False) as first,
        database.transaction(write=False) as second,
    ):
        assert [*comments.all(first), *comments.all(second)] == []
    widened()
    with pytest.raises(RetryableBackendError), database.transaction(write=False) as connection:
        comments.all(connection)
    with (
        database.transaction(write=False) as first,
        database.transaction(write=False) as second,
    ):
        assert [*comments.all(first), *comments.all(second)] == []


def test_so_are_those_of_the_driver(database: Database, widened: Callable[[], None]) -> None:
    def look() -> None:
        with database.transaction(write=False) as connection:
            connection.execute(select(AUX_TABLE.c.MT_COMMENT)).all()

    for _ in range(8):
        look()
    widened()
    with pytest.raises(RetryableBackendError):
        look()
    look()


def test_rollbacks_of_the_driver_forget_no_text(database: Database) -> None:
    """psycopg drops all prepared statements of a connection after a ROLLBACK, if it has some."""
    often = select(AUX_TABLE.c.MT_KEY2)
    for key in range(3):
        with database.transaction(write=True) as connection:
            for _ in range(7):
                connection.execute(often)
            put(connection, key)
            savepoint = connection.begin_nested()
            put(connection, 100 + key)
            savepoint.rollback()
            assert ONE.all(connection)
    assert keys(database) == [0, 1, 2]


def test_texts_need_not_be_prepared(watched: Watched) -> None:
    """As behind a pooler that gives each transaction another connection of the server's."""
    assert SERVER_URL is not None
    database = open_database(SERVER_URL)
    with database.transaction(write=True) as connection:
        raw: Any = connection.connection.driver_connection
        raw.prepare_threshold = None
        connection.execute(text('DELETE FROM "AUX_TABLE"'))
        put(connection, 1)
        put(connection, 2)
        assert [key for (key,) in KEYS.all(connection)] == [1, 2]
        count = "SELECT count(*) FROM pg_prepared_statements"
        assert connection.scalar(text(count)) == 0
    database.close()


@pytest.mark.parametrize("value", ["a\x00b", "\ud800"])
def test_a_text_that_the_database_cannot_keep_is_refused_whole(
    database: Database, value: str
) -> None:
    """A C library ends a text at a zero."""
    refused = pytest.raises((BackendError, InvalidObjectError))
    with refused, database.transaction(write=True) as connection:
        PUT.put(connection, [{"MT_KEY1": value, "MT_KEY2": 1}])
    assert keys(database) == []


def test_much_goes_through_in_one_message(database: Database) -> None:
    """More than both ends keep for a socket: who sends must read meanwhile."""
    long = "x" * 4_000_000
    echo = FixedSql(select(bindparam("text", type_=AUX_TABLE.c.MT_COMMENT.type)))
    with database.transaction(write=True) as connection:
        answers = [echo.later(connection, text=f"{number}{long}") for number in range(6)]
        assert [answer.rows[0][0][:1] for answer in answers] == [*"012345"]


def test_the_server_compiles_no_statement(database: Database) -> None:
    setting = FixedSql(select(func.current_setting("jit")))
    for write in (False, True):
        with database.transaction(write=write) as connection:
            assert list(setting.all(connection)) == [("off",)]


def test_another_thread_runs_while_one_waits_for_the_server(database: Database) -> None:
    slow = FixedSql(text("SELECT pg_sleep(1)"))
    is_over = threading.Event()

    def wait(how_many: int) -> None:
        with database.transaction(write=True) as connection:
            answers = [slow.later(connection) for _ in range(how_many)]
            assert answers[-1].rows
        is_over.set()

    for how_many in (1, 2):
        is_over.clear()
        thread = threading.Thread(target=wait, args=(how_many,))
        thread.start()
        turns = 0
        while not is_over.wait(0.01):
            turns += 1
        thread.join()
        assert turns > 5


def test_a_plan_made_while_a_table_was_empty_goes_through_no_row_later(database: Database) -> None:
    read = text(
        f"SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = '{AUX_TABLE.name}'"
    )
    one = FixedSql(
        select(AUX_TABLE.c.MT_KEY2).where(
            AUX_TABLE.c.MT_KEY1 == "k", bindparam("key", type_=BigInteger) == AUX_TABLE.c.MT_KEY2
        )
    )
    for raw in connections_of(database):
        raw.autocommit = True
        raw.execute(f'VACUUM (ANALYZE) "{AUX_TABLE.name}"')
        raw.autocommit = False
    for _ in range(10):
        with database.transaction(write=True, by_indexes=True) as connection:
            assert one.first(connection, key=7) is None
    with database.transaction(write=True) as connection:
        put(connection, *range(500))
    with database.transaction(write=True, by_indexes=True) as connection:
        assert one.first(connection, key=7) == (7,)
        assert connection.execute(read).scalar_one() == 0


def test_only_transactions_that_ask_for_it_go_by_indexes_alone_and_keep_each_plan(
    database: Database,
) -> None:
    show = FixedSql(text("SHOW enable_seqscan"))
    kept = FixedSql(text("SHOW plan_cache_mode"))

    def is_seen(*, write: bool = True, by_indexes: bool = False) -> list[object]:
        with database.transaction(write=write, by_indexes=by_indexes) as connection:
            seen = [row[0] for row in show.all(connection)]
            return [*seen, connection.execute(text("SHOW enable_seqscan")).scalar_one()]

    def undone(*, by_indexes: bool) -> None:
        with database.transaction(write=True, by_indexes=by_indexes) as connection:
            put(connection, 1)
            raise MetaError("undone")

    assert is_seen(by_indexes=True) == ["off", "off"]
    assert is_seen(write=False) == ["on", "on"]
    for by_indexes in (True, False):
        with pytest.raises(MetaError):
            undone(by_indexes=by_indexes)
        assert is_seen(by_indexes=True) == ["off", "off"]
        with pytest.raises(MetaError):
            undone(by_indexes=by_indexes)
        assert is_seen() == ["on", "on"]
    with database.transaction(write=True, by_indexes=True) as connection:
        assert connection.execute(text("SHOW enable_seqscan")).scalar_one() == "off"
        assert kept.first(connection) == ("force_generic_plan",)
    with database.transaction(write=False) as connection:
        assert connection.execute(text("SHOW enable_seqscan")).scalar_one() == "on"
        assert kept.first(connection) == ("auto",)


def test_keys_are_locked_in_their_order_and_seen_as_the_last_holder_left_them(
    database: Database,
) -> None:
    locked = locking(AUX_TABLE.c.MT_KEY2, select(AUX_TABLE.c.MT_KEY2, AUX_TABLE.c.MT_COMMENT).where)
    with database.transaction(write=True) as connection:
        put(connection, 1, 2, 3, 4)
    found: list[tuple[Any, ...]] = []

    def look() -> None:
        with database.transaction(write=True) as connection:
            found.extend(locked.all(connection, [4, 2, 9, 1]))

    other = threading.Thread(target=look)
    with database.transaction(write=True) as connection:
        connection.execute(
            update(AUX_TABLE).where(AUX_TABLE.c.MT_KEY2 == 2).values(MT_COMMENT="changed")
        )
        other.start()
        wait_until_waiting(connection)
    other.join(10)
    assert found == [(1, None), (2, "changed"), (4, None)]


def wait_until_waiting(connection: Connection) -> None:
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    for _ in range(1000):
        if connection.execute(waiting).scalar_one():
            return
        sleep(0.01)
    pytest.fail("nobody waits for a row")
