from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import create_engine, insert, literal, select, text
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlalchemy.pool import QueuePool

from hms_bridge.backend import engine
from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.failures import translate
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.retry import RetrySettings, run_in_transaction
from hms_bridge.backend.schema.install import install
from hms_bridge.backend.schema.txn_tables import AUX_TABLE, TXN_COMPONENTS
from hms_bridge.errors import (
    BackendError,
    CommitUnknownError,
    ConfigError,
    DatabaseGoneError,
    InvalidObjectError,
    LockWaitError,
    MetaError,
    RetryableBackendError,
)
from tests.support.aux_rows import end_connection
from tests.support.databases import ON_A_SERVER, ON_POSTGRESQL, SERVER_URL
from tests.support.simulated_clock import SimulatedClock

sqlite_only = pytest.mark.skipif(SERVER_URL is not None, reason="about SQLite's own ways")


def _put(connection, number: int) -> None:
    connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=number))


def _count(database: Database) -> int:
    with database.transaction(write=False) as connection:
        return len(connection.execute(select(AUX_TABLE)).all())


def _quoted(connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "oracle://u:secret@h/d", "http://x", "sqlite", "://", "mysql"]
)
def test_what_is_no_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="write sqlite:///FILE") as caught:
        open_database(url)
    assert "secret" not in str(caught.value)


def test_how_long_a_silent_host_is_waited_for_may_stand_in_the_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    psycopg = pytest.importorskip("psycopg")
    given: list[dict[str, object]] = []

    def connect(*_words: object, **options: object) -> None:
        given.append(options)
        raise psycopg.OperationalError("nobody is there")

    monkeypatch.setattr(psycopg.Connection, "connect", connect)
    for words in ("", "?tcp_user_timeout=60000&keepalives_idle=20"):
        database = open_database(f"postgresql://u@h/d{words}")
        with pytest.raises(BackendError, match="nobody"), database.transaction(write=True):
            pass
    names = ("tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count")
    usual, own = ([int(str(options[name])) for name in names] for options in given)
    assert usual == [15_000, 5, 5, 3]
    assert own == [60_000, 20, 5, 3]


def test_a_parameter_that_the_driver_does_not_know() -> None:
    open_database("mysql+pymysql://u@h/x?ssl_ca=/ca.pem&connect_timeout=3&charset=utf8").close()
    with pytest.raises(ConfigError, match="PyMySQL knows no parameter nonsense; leave it out"):
        open_database("mysql+pymysql://u@h/x?nonsense=1")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder .* is missing; create it"):
        open_database(f"sqlite:///{tmp_path}/no/where.db")


def test_a_server_that_is_not_there() -> None:
    database = open_database("postgresql://u:secret@127.0.0.1:1/d")
    with (
        pytest.raises(BackendError) as caught,
        database.transaction(write=False) as connection,
    ):
        connection.execute(text("SELECT 1"))
    assert "127.0.0.1:1" in str(caught.value)
    assert "check that the server runs there" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_commit_that_fails_is_never_tried_again() -> None:
    """A server that shuts down may say so after it has committed (MariaDB: error 1053)."""
    answer = OperationalError(None, None, Exception(1053, "Server shutdown in progress"))
    assert type(translate(answer, "d", is_committing=True)) is CommitUnknownError
    assert type(translate(answer, "d", is_committing=False)) is DatabaseGoneError


def test_a_full_disk_is_told_as_such() -> None:
    """SQLite says so in the transaction or at its end, where it has done nothing either."""
    cause = sqlite3.OperationalError("database or disk is full")
    cause.sqlite_errorcode = sqlite3.SQLITE_FULL
    told = translate(OperationalError(None, None, cause), "d", is_committing=True)
    assert type(told) is BackendError
    assert "make room" in str(told)
    unsure = translate(
        OperationalError("x", None, Exception(1114, "full")), "d", is_committing=True
    )
    assert type(unsure) is CommitUnknownError, "MariaDB may have"


def test_a_connection_that_a_full_disk_refuses_is_no_outage() -> None:
    """PostgreSQL may need room to begin one; its driver knows no state of what was not made."""
    words = 'could not extend file "base/16384/16687": No space left on device'
    refusal = OperationalError(None, None, Exception(words))
    told = translate(refusal, "d", is_committing=False)
    assert type(told) is BackendError
    assert "make room" in str(told)
    assert type(translate(refusal, "d", is_committing=True)) is CommitUnknownError


@pytest.mark.parametrize(
    ("word", "code", "advice"),
    [
        ("unable to open database file", sqlite3.SQLITE_CANTOPEN, "may open both"),
        ("attempt to write a readonly database", sqlite3.SQLITE_READONLY_DIRECTORY, "may write"),
        ("disk I/O error", sqlite3.SQLITE_IOERR_SHMSIZE, "has room"),
    ],
)
def test_a_file_that_sqlite_cannot_use_is_told_with_what_to_do(
    word: str, code: int, advice: str
) -> None:
    cause = sqlite3.OperationalError(word)
    cause.sqlite_errorcode = code
    told = str(translate(OperationalError("x", None, cause), "d", is_committing=False))
    assert told.startswith(f"d: {word}; ")
    assert advice in told
    assert told.endswith("then try again")


@sqlite_only
def test_a_full_file_takes_nothing_and_goes_on_later(database: Database) -> None:
    with database.transaction(write=True) as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(BackendError, match="make room"), database.transaction(write=True) as full:
        for key in range(100_000):
            _put(full, key)
    assert _count(database) == 0
    with database.transaction(write=True) as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        _put(connection, 1)
    assert _count(database) == 1


_VALUE = FixedSql(select(literal(1)))


@pytest.mark.parametrize(
    "ask",
    [lambda connection: connection.execute(select(1)), _VALUE.all],
    ids=["core", "fixed"],
)
def test_a_statement_after_the_one_that_found_the_connection_gone(database: Database, ask) -> None:
    """SQLAlchemy does not send it, and says so with an error that is not the driver's."""
    with (
        pytest.raises(DatabaseGoneError, match="connection lost") as caught,
        database.transaction(write=True) as connection,
    ):
        connection.invalidate()
        ask(connection)
    assert "SELECT" not in str(caught.value)


def test_a_commit_that_comes_after_the_connection_is_gone(database: Database) -> None:
    """PostgreSQL's has committed before: one that never did knows that nothing was sent."""
    with database.transaction(write=True) as connection:
        _put(connection, 1)
    with (
        pytest.raises(CommitUnknownError, match="connection lost"),
        database.transaction(write=True) as connection,
    ):
        connection.invalidate()


def test_commit_and_rollback(database: Database) -> None:
    with database.transaction(write=True) as connection:
        _put(connection, 1)
    with pytest.raises(MetaError), database.transaction(write=True) as connection:
        _put(connection, 2)
        raise MetaError("refused")
    assert _count(database) == 1


def test_memory_is_one_database_for_all_threads(database: Database) -> None:
    with database.transaction(write=True) as connection:
        _put(connection, 1)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(_count(database)))
    thread.start()
    thread.join()
    assert seen == [1]


def test_foreign_keys_are_enforced(database: Database) -> None:
    with pytest.raises(BackendError), database.transaction(write=True) as connection:
        row = {"TC_TXNID": 99, "TC_DATABASE": "d", "TC_OPERATION_TYPE": "i"}
        connection.execute(insert(TXN_COMPONENTS).values(row))


def test_a_name_that_is_no_text_is_told(database: Database) -> None:
    """As of a file whose name has bytes that are no UTF-8."""
    with (
        pytest.raises(BackendError, match="no UTF-8.*give it another one"),
        database.transaction(write=True) as connection,
    ):
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="q\udcff", MT_KEY2=1))
    assert _count(database) == 0


def test_texts_too_long_are_refused_by_servers(database: Database) -> None:
    if SERVER_URL is None:
        pytest.skip("SQLite keeps texts of any length")
    with (
        pytest.raises(InvalidObjectError, match="a text is longer than its column"),
        database.transaction(write=True) as connection,
    ):
        connection.execute(insert(AUX_TABLE).values(MT_KEY1="k" * 129, MT_KEY2=1))


@pytest.mark.parametrize(
    ("sqlstate", "text", "told"),
    [
        ("22001", "value too long for type character varying(128)", "longer than its column"),
        (None, "PostgreSQL text fields cannot contain NUL (0x00) bytes", "a character that the"),
        ("22021", 'invalid byte sequence for encoding "UTF8": 0x00', "a character that the"),
    ],
)
def test_a_text_that_no_column_takes_is_the_callers(
    sqlstate: str | None, text: str, told: str
) -> None:
    """Who calls a metastore sees no SQL."""
    driver = type("Refusal", (Exception,), {"sqlstate": sqlstate})(text)
    for is_committing in (False, True):  # what was held back fails with the commit
        error = translate(DataError("INSERT", {}, driver), "db", is_committing=is_committing)
        assert isinstance(error, InvalidObjectError)
        assert told in str(error)
    number = type("Refusal", (Exception,), {"sqlstate": "22003"})("out of range")
    error = translate(DataError("INSERT", {}, number), "db", is_committing=False)
    assert type(error) is BackendError


def test_a_double_key_may_be_tried_again(database: Database) -> None:
    with database.transaction(write=True) as connection:
        _put(connection, 1)
    with (
        pytest.raises(RetryableBackendError) as caught,
        database.transaction(write=True) as connection,
    ):
        _put(connection, 1)
    assert isinstance(caught.value.__cause__, IntegrityError)


@sqlite_only
class TestSqliteFile:
    def _open(self, folder: Path, **more: float) -> Database:
        database = open_database(f"sqlite:///{folder}/hms.db", **more)
        install(database)
        return database

    def test_readers_go_on_while_another_writes(self, tmp_path: Path) -> None:
        database = self._open(tmp_path)
        with database.transaction(write=True) as connection:
            _put(connection, 1)
            assert _count(database) == 0
        assert _count(database) == 1
        database.close()

    def test_a_second_process_waits_and_then_may_try_again(self, tmp_path: Path) -> None:
        first = self._open(tmp_path)
        second = open_database(f"sqlite:///{tmp_path}/hms.db", busy_timeout_seconds=0.05)
        with (
            first.transaction(write=True),
            pytest.raises(RetryableBackendError, match="database is locked"),
            second.transaction(write=True),
        ):
            pytest.fail("both write")
        with second.transaction(write=True) as connection:
            _put(connection, 1)
        assert _count(first) == 1
        first.close()
        second.close()

    def test_writers_of_one_process_queue(self, tmp_path: Path) -> None:
        database = self._open(tmp_path)

        def work(number: int) -> None:
            for step in range(5):
                with database.transaction(write=True) as connection:
                    _put(connection, number * 10 + step)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _count(database) == 20
        database.close()

    def test_a_writer_in_a_writer_is_told_so(self, tmp_path: Path) -> None:
        database = self._open(tmp_path, busy_timeout_seconds=0.05)
        with (
            database.transaction(write=True),
            pytest.raises(BackendError, match="held the database"),
            database.transaction(write=True),
        ):
            pytest.fail("nested")
        database.close()

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "hms.db").write_text("this is a text, and long enough to be looked at" * 50)
        with pytest.raises(BackendError, match="not a database"):
            self._open(tmp_path)

    def test_settings_of_every_connection(self, tmp_path: Path) -> None:
        database = self._open(tmp_path)
        with database.transaction(write=False) as connection:
            wanted = {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2}
            for name, value in wanted.items():
                assert connection.execute(text(f"PRAGMA {name}")).scalar() == value
        database.close()


class TestRetry:
    def test_the_whole_transaction_is_tried_again(self, database: Database) -> None:
        clock = SimulatedClock()
        tries: list[int] = []

        def work(connection) -> str:
            _put(connection, len(tries))
            tries.append(1)
            if len(tries) < 3:
                raise RetryableBackendError("deadlock")
            return "done"

        assert run_in_transaction(database, work, write=True, clock=clock) == "done"
        assert _count(database) == 1
        first, second = clock.slept_seconds
        assert 0.02 <= first < 0.04 <= second < 0.08

    def test_it_gives_up(self, database: Database) -> None:
        clock = SimulatedClock()

        def work(connection) -> None:
            raise RetryableBackendError("deadlock")

        rule = RetrySettings(attempts_max=4, wait_seconds_max=0.03)
        with pytest.raises(BackendError, match=r"deadlock \(gave up after 4 attempts") as caught:
            run_in_transaction(database, work, write=True, clock=clock, settings=rule)
        assert not isinstance(caught.value, RetryableBackendError)
        assert len(clock.slept_seconds) == 3
        assert max(clock.slept_seconds) < 0.06

    def test_an_outage_is_waited_for_however_many_attempts_it_takes(
        self, database: Database
    ) -> None:
        clock = SimulatedClock()

        def work(connection) -> str:
            if clock.steady_ms() < 29_000:
                raise DatabaseGoneError("refused")
            return "done"

        rule = RetrySettings(attempts_max=2)
        assert run_in_transaction(database, work, write=True, clock=clock, settings=rule) == "done"
        assert max(clock.slept_seconds) <= 4

    def test_a_lock_is_not_waited_for_longer(
        self, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = SimulatedClock()
        tries: list[int] = []

        def work(connection) -> None:
            tries.append(1)
            clock.advance_ms(60_000)
            raise LockWaitError("timed out")

        rule = RetrySettings(attempts_max=100, lock_seconds_max=200)
        with pytest.raises(BackendError, match="waiting for a lock; .*then try again") as caught:
            run_in_transaction(database, work, write=True, clock=clock, settings=rule)
        assert not isinstance(caught.value, RetryableBackendError)
        assert 4 <= len(tries) <= 5
        assert caplog.text.count("still waits for a lock") == len(tries)

    def test_an_outage_is_not_waited_for_longer(self, database: Database) -> None:
        clock = SimulatedClock()

        def work(connection) -> str:
            raise DatabaseGoneError("refused")

        with pytest.raises(BackendError, match=r"refused \(it was gone for 30 s\)") as caught:
            run_in_transaction(database, work, write=True, clock=clock)
        assert not isinstance(caught.value, RetryableBackendError)
        assert 29.9 < sum(clock.slept_seconds) < 30.1

    def test_a_deadlock_after_an_outage_is_tried_again(self, database: Database) -> None:
        """All come back at once when a database is there again, so then above all."""
        clock = SimulatedClock()
        deadlocks: list[int] = []

        def work(connection) -> str:
            if clock.steady_ms() < 20_000:
                raise DatabaseGoneError("refused")
            if not deadlocks:
                deadlocks.append(1)
                raise RetryableBackendError("deadlock")
            return "done"

        rule = RetrySettings(attempts_max=2)
        assert run_in_transaction(database, work, write=True, clock=clock, settings=rule) == "done"

    def test_each_outage_is_waited_for_by_itself(self, database: Database) -> None:
        clock = SimulatedClock()
        came_back: list[int] = []

        def work(connection) -> str:
            since_ms = came_back[0] if came_back else 0
            if clock.steady_ms() < since_ms + 20_000:
                raise DatabaseGoneError("refused")
            if not came_back:
                came_back.append(clock.steady_ms())
                raise RetryableBackendError("deadlock")
            return "done"

        assert run_in_transaction(database, work, write=True, clock=clock) == "done"
        assert clock.steady_ms() > 40_000

    def test_a_taken_key_is_tried_again_but_not_for_ever(self, database: Database) -> None:
        clock = SimulatedClock()

        def work(connection) -> None:
            _put(connection, 1)
            _put(connection, 1)

        with pytest.raises(BackendError, match="such a row is there already") as caught:
            run_in_transaction(database, work, write=True, clock=clock)
        assert not isinstance(caught.value, RetryableBackendError)
        assert len(clock.slept_seconds) == 2

    def test_a_row_that_is_referred_to_is_an_error_at_once(self, database: Database) -> None:
        clock = SimulatedClock()

        def work(connection) -> None:
            wanted = {"TC_TXNID": 0, "TC_DATABASE": "d", "TC_OPERATION_TYPE": "i"}
            connection.execute(insert(TXN_COMPONENTS).values(**wanted))
            connection.execute(text(f"DELETE FROM {_quoted(connection, 'TXNS')}"))

        with pytest.raises(BackendError, match="(?i)foreign key.*nothing was changed"):
            run_in_transaction(database, work, write=True, clock=clock)
        assert clock.slept_seconds == []

    def test_other_errors_pass_at_once(self, database: Database) -> None:
        clock = SimulatedClock()

        def work(connection) -> None:
            raise MetaError("no")

        with pytest.raises(MetaError):
            run_in_transaction(database, work, write=True, clock=clock)
        assert clock.slept_seconds == []

    def test_two_first_rows(self, database: Database) -> None:
        """The second finds the first's row when it comes again."""
        tries: list[bool] = []

        def work(connection) -> None:
            found = connection.execute(select(AUX_TABLE)).first()
            tries.append(found is not None)
            if len(tries) == 1:
                _put(connection, 7)
            if found is None:
                _put(connection, 7)

        run_in_transaction(database, work, write=True, clock=SimulatedClock())
        assert tries == [False, False]


@pytest.mark.parametrize(("idle_seconds", "asked"), [(0.4, 0), (0.6, 1)])
@pytest.mark.parametrize("is_alive", [True, False])
def test_an_idle_connection_is_asked_whether_it_lives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, idle_seconds: float, asked: int, is_alive: bool
) -> None:
    """Not before every verb: that is a round trip. One that died meanwhile fails its statement."""
    opened = create_engine(f"sqlite:///{tmp_path}/db", poolclass=QueuePool)
    engine._ask_idle_connections(opened)
    times = [100.0]
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: times[0]))
    pings = []

    def ping(connection: object) -> bool:
        pings.append(connection)
        if not is_alive:
            raise sqlite3.OperationalError("gone")
        return True

    monkeypatch.setattr(opened.dialect, "do_ping", ping)

    def driver_connection() -> object:
        with opened.connect() as connection:
            return connection.connection.driver_connection

    first = driver_connection()
    assert pings == []
    times[0] += idle_seconds
    second = driver_connection()
    assert len(pings) == asked
    assert (second is first) is (is_alive or not asked)
    opened.dispose()


@ON_POSTGRESQL
def test_a_read_needs_no_transaction_and_the_next_write_has_one(database: Database) -> None:
    for _ in range(2):
        with database.transaction(write=False) as connection:
            assert connection.connection.driver_connection.autocommit  # type: ignore[union-attr]
        with pytest.raises(BackendError), database.transaction(write=True) as connection:
            assert not connection.connection.driver_connection.autocommit  # type: ignore[union-attr]
            connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=1))
            raise BackendError("lost")
    with database.transaction(write=False) as connection:
        assert connection.execute(select(AUX_TABLE)).all() == []


@ON_A_SERVER
@pytest.mark.parametrize("is_of_one_moment", [False, True])
def test_a_read_whose_connection_is_cut_off_meanwhile_is_made_again(
    database: Database, is_of_one_moment: bool
) -> None:
    """Whatever level it reads at, and whether that is set by a message of its own."""
    with database.transaction(write=True) as connection:
        _put(connection, 1)
    database.give_back_kept()
    with database.engine.connect() as connection:
        name = "pg_backend_pid" if connection.dialect.name == "postgresql" else "connection_id"
        pid = connection.scalar(text(f"SELECT {name}()"))
    end_connection(pid)
    found = run_in_transaction(
        database,
        lambda connection: connection.scalar(select(AUX_TABLE.c.MT_KEY2)),
        write=False,
        is_of_one_moment=is_of_one_moment,
        clock=SimulatedClock(),
    )
    assert found == 1


@ON_A_SERVER
def test_only_a_transaction_of_one_moment_sees_one_moment(database: Database) -> None:
    keys = iter(range(100))

    def sees_a_write_meanwhile(*, is_of_one_moment: bool) -> bool:
        with database.transaction(write=False, is_of_one_moment=is_of_one_moment) as connection:
            before = connection.execute(select(AUX_TABLE)).all()
            with database.transaction(write=True) as other:
                _put(other, next(keys))
            return connection.execute(select(AUX_TABLE)).all() != before

    seen = [sees_a_write_meanwhile(is_of_one_moment=moment) for moment in (False, True) * 3]
    assert seen == [True, False] * 3


def test_a_rollback_that_finds_the_database_gone_gives_up_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(f"sqlite:///{tmp_path}/metastore.db")
    with database.transaction(write=False), database.transaction(write=False):
        pass

    def gone(*_: object) -> None:
        raise sqlite3.OperationalError("the file is gone")

    with monkeypatch.context() as patched:
        patched.setattr(database.engine.dialect, "do_rollback", gone)
        patched.setattr(database.engine.dialect, "is_disconnect", lambda *_: True)
        with pytest.raises(BackendError), database.transaction(write=False):
            raise ValueError("the verb has failed")
    assert not any(database._kept._idle.values())
    database.close()
