"""The database behind the metastore: one URL, one engine, transactions with the right options."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import (
    ArgumentError,
    InvalidatePoolError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import QueuePool

from changemanager.masking import masked_url
from hms_bridge.backend.connection_limits import connections_allowed
from hms_bridge.backend.driver_cursor import execute
from hms_bridge.backend.failures import has_stale_plan, translate
from hms_bridge.backend.frozen_server import ServerCheck
from hms_bridge.backend.kept_connections import KeptConnections
from hms_bridge.backend.number_columns import wrong_numbers
from hms_bridge.backend.patient_mysql import give_up_who_is_silent, log_in_limits
from hms_bridge.backend.sqlite_file import keep_for_owner
from hms_bridge.errors import BackendError, ConfigError
from hms_bridge.silent_hosts import patience

_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "sqlite": "pysqlite"}
_LOG = logging.getLogger(__name__)
_CONNECT_SECONDS = 10
_PATIENCE = patience()
POOL_SIZE = 16
"""Connections that are kept; in need, there are as many more."""
UNUSED_SECONDS_MAX = 10.0
"""How long a server's connection is kept that nobody uses. Who is refused one waits for longer."""
REFUSED_SECONDS = 15.0
"""How long who has no connection waits for one that the database refuses, as there are too many."""
_GIVEN_BACK_AT = "hms_bridge_given_back_at"
_TRUSTED_SECONDS = 0.5
"""How long an idle connection is taken to be alive unasked, as Hive's pool does (HikariCP). One
that is not fails its first statement, and the verb is tried again with another."""
IDLE_SECONDS_MAX = 300
"""How long a transaction may do nothing before the server undoes it. A process that stands still,
or whose host has gone without a word, would keep its rows otherwise, among them those that all who
write need: for hours, and for ever while the host is only held up."""
LOCK_SECONDS_MAX = 60
"""How long a statement waits for a lock, then its verb begins anew. An administrator's LOCK TABLE
would hold it for good otherwise."""
_POSTGRESQL_SETTINGS = """
    SELECT set_config(name, CASE name WHEN 'jit' THEN 'off' WHEN 'lock_timeout'
        THEN '{lock_seconds}s' ELSE '{idle_seconds}s' END, false)
    FROM pg_settings
    WHERE name = 'jit'
        OR name IN ('idle_in_transaction_session_timeout', 'lock_timeout') AND setting = '0'
"""
# A deferred transaction that turns to writing fails at once, busy_timeout or not. Not sent by a
# listener: while one is there, SQLAlchemy looks for more of them at each statement, which takes as
# long as a short one.
_SQLITE_WRITES, _SQLITE_READS = "BEGIN IMMEDIATE", "BEGIN"
_MYSQL_OF_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""Of the next transaction only. A level of the session would be set and set back in messages of
SQLAlchemy's whose failures it does not translate, and which leak a place of its pool."""
_MYSQL_SETTINGS = """
    SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO',
    SESSION lock_wait_timeout = LEAST(@@lock_wait_timeout, {lock_seconds})
    /*M!100300 , SESSION idle_transaction_timeout =
    IF(@@idle_transaction_timeout = 0, {idle_seconds}, @@idle_transaction_timeout) */
"""
"""What stands in the comment is MariaDB's; MySQL has no such limit. For a row a statement waits as
long as the server says (``innodb_lock_wait_timeout``, 50 s)."""


class Database:
    """An open database; hands out connections inside transactions.

    One metastore verb is one transaction, opened by ``service`` only.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        busy_timeout_seconds: float,
        kept_max: int,
        open_max: int,
        processes: int,
    ) -> None:
        self.engine = engine
        self._kept = KeptConnections(
            engine,
            kept_max=kept_max,
            open_max=open_max,
            wait_seconds=busy_timeout_seconds,
            trusted_seconds=_TRUSTED_SECONDS,
            unused_seconds_max=None if engine.dialect.name == "sqlite" else UNUSED_SECONDS_MAX,
            refused_seconds=REFUSED_SECONDS,
            is_alive=partial(_is_alive, engine),
        )
        self._busy_timeout_seconds = busy_timeout_seconds
        self._writer = threading.Lock() if engine.dialect.name == "sqlite" else None
        self._is_mysql = engine.dialect.name in ("mysql", "mariadb")
        self._has_answered = False
        self._processes = processes
        event.listen(engine, "connect", self._answered)

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        return _shown(self.engine.url)

    @property
    def is_embedded(self) -> bool:
        """Whether it is a file of this machine, without a server."""
        return self._writer is not None

    @property
    def is_pipelined(self) -> bool:
        """Whether statements may go to it together (:mod:`hms_bridge.backend.pipeline`)."""
        return self.engine.dialect.driver == "psycopg"

    @contextmanager
    def transaction(
        self, *, write: bool, is_of_one_moment: bool = False, by_indexes: bool = False
    ) -> Iterator[Connection]:
        """A connection inside a transaction: committed at the end, rolled back on any error.

        ``write`` must be true for everything that changes or locks rows. On SQLite it takes the
        write lock at once; on PostgreSQL, without it, each statement stands for itself, as it does
        in READ COMMITTED anyway, and BEGIN and COMMIT are not sent. ``is_of_one_moment``, for what
        does not write: all statements see what was committed before the first. Not for what
        compares rows with the time, which goes on meanwhile. ``by_indexes``: of short statements
        about few rows (on PostgreSQL, see
        :meth:`~hms_bridge.backend.pipeline.PipelinedConnection.go_by_indexes`). Transactions do not
        nest.
        Raises BackendError for what the database refuses: RetryableBackendError where the whole
        transaction may be tried again, CommitUnknownError where it may have been committed; and
        InvalidObjectError for a text that no column takes.
        """
        is_committing = False
        pipelined: Any = None
        writer = self._writer if write else None
        if writer is not None:
            self._wait_for(writer)
        # One block in another, and no managers of contexts: those take longer than a statement.
        try:
            isolation = self._isolation(write=write, is_of_one_moment=is_of_one_moment)
            connection = self._kept.take(isolation)
            try:
                transaction = connection.begin()
                try:
                    if self.is_pipelined:
                        pipelined = connection.connection.dbapi_connection
                        pipelined.go_by_indexes(is_wanted=by_indexes)
                    if self._writer is not None:
                        execute(connection, _SQLITE_WRITES if write else _SQLITE_READS, None)
                    elif is_of_one_moment and self._is_mysql:
                        execute(connection, _MYSQL_OF_ONE_MOMENT, None)
                    yield connection
                    is_committing = True
                    transaction.commit()
                except BaseException:
                    transaction.close()
                    raise
            except BaseException as error:
                self._give_back_failed(connection, isolation, error)
                raise
            self._kept.give(connection, isolation)
        except SQLAlchemyError as error:
            raise translate(
                error,
                self.name,
                is_committing=is_committing and (pipelined is None or pipelined.is_in_doubt),
                has_answered=self._has_answered,
                connections=self._kept.count,
            ) from error
        except (TypeError, ValueError) as error:
            self._refuse_unfit(error)
            raise
        finally:
            if writer is not None:
                writer.release()

    def close(self) -> None:
        """Give back all connections."""
        self.give_back_kept()
        self.engine.dispose()

    def give_back_kept(self) -> None:
        """What is kept between transactions goes to the pool."""
        self._kept.close()

    def _answered(self, connection: object, _record: object) -> None:
        if not self._has_answered and self._processes > 1:
            self._divide_connections(connection)
        self._has_answered = True

    def _divide_connections(self, connection: object) -> None:
        """Of a few that the database allows, each process of the server has its part."""
        allowed = connections_allowed(self.engine.dialect.name, connection)
        if allowed is None:
            return
        if allowed < self._processes:
            _LOG.warning(
                "%s: its user may have %d connections, and this server's %d processes need one "
                "each: allow it more, or serve by fewer processes",
                self.name,
                allowed,
                self._processes,
            )
        self._kept.limit(allowed // self._processes)

    def _give_back_failed(
        self, connection: Connection, isolation: str | None, error: BaseException
    ) -> None:
        """A connection on which a failed transaction is undone is as good as before: to make
        another takes longer than most verbs. Not after an interrupt, which leaves anything."""
        if isinstance(error, Exception) and self._is_undone(connection):
            self._kept.give(connection, isolation)
        else:
            self._kept.drop(connection)

    def _is_undone(self, connection: Connection) -> bool:
        raw = None if connection.invalidated else connection.connection.dbapi_connection
        if raw is None:
            return False
        try:
            raw.rollback()
        except self.engine.dialect.loaded_dbapi.Error:
            return False
        return True

    def _refuse_unfit(self, error: Exception) -> None:
        """Raises BackendError for a text that no database holds, and for one that a SQLite file has
        where a number belongs."""
        if isinstance(error, UnicodeEncodeError):
            raise _no_text(self.name, error) from error
        if not self.is_embedded:
            return
        with self.transaction(write=False) as connection:
            wrong = next(wrong_numbers(connection), None)
        if wrong is not None:
            raise BackendError(
                f"{self.name}: {wrong.what}; {wrong.remedy}. 'hms-bridge schema validate' shows all"
            ) from error

    def _isolation(self, *, write: bool, is_of_one_moment: bool) -> str | None:
        # SQLite reads what there is at the first statement, always; MySQL is asked by a statement.
        if self.engine.dialect.name != "postgresql":
            return None
        if is_of_one_moment:
            return "REPEATABLE READ"
        return None if write else "AUTOCOMMIT"

    def _wait_for(self, writer: threading.Lock) -> None:
        """Threads of this process queue here, instead of polling SQLite's own lock."""
        if not writer.acquire(timeout=self._busy_timeout_seconds):
            raise BackendError(
                f"{self.name}: another write has held the database for more than "
                f"{self._busy_timeout_seconds:g} s; try again, or use a database server"
            )


def _no_text(name: str, error: UnicodeEncodeError) -> BackendError:
    return BackendError(
        f"{name}: {error.object!r} has bytes that are no UTF-8, which no database holds; if it is "
        "the name of a file, give it another one, or move it away"
    )


def open_database(
    url: str,
    *,
    busy_timeout_seconds: float = 30.0,
    pool_size: int = POOL_SIZE,
    processes: int = 1,
) -> Database:
    """Open ``sqlite:///file``, ``sqlite://`` (memory), ``postgresql://…``, ``mysql://…`` or
    ``mariadb://…``. Nothing is connected yet, except that a SQLite file's folder must exist.
    ``processes``: how many of one server open it, and divide what connections it allows.

    Raises ConfigError for a URL that cannot be understood.
    """
    parsed = _parse(url)
    options: dict[str, Any] = {"poolclass": QueuePool, "pool_timeout": busy_timeout_seconds}
    if parsed.get_backend_name() == "sqlite":
        options |= _sqlite_options(parsed, busy_timeout_seconds, pool_size)
    else:
        options |= _server_options(parsed, pool_size)
    try:
        engine = create_engine(parsed, **options)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise ConfigError(
            f"database URL {_shown(parsed)}: {error}; "
            "install its driver: the wheel of hms-bridge with the extra postgresql or mysql, as "
            "docs/howto/install.md says"
        ) from error
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine, busy_timeout_seconds)
    else:
        _ask_idle_connections(engine)
    if engine.dialect.driver == "pymysql":
        _require_known_parameters(engine, parsed)
        give_up_who_is_silent(engine, _shown(parsed))
    if engine.dialect.driver == "psycopg":
        _pipeline(engine)
    # A second connection to a database in memory would be to another one; the pool has the first.
    kept_max, open_max = (0, 1) if is_in_memory(url) else (pool_size, 2 * pool_size)
    return Database(
        engine,
        busy_timeout_seconds=busy_timeout_seconds,
        kept_max=kept_max,
        open_max=open_max,
        processes=processes,
    )


def is_in_memory(url: str) -> bool:
    """Whether it names a SQLite database without a file. Raises ConfigError for no database URL."""
    parsed = _parse(url)
    name = parsed.database or ":memory:"
    is_named_so = ":memory:" in name or "mode=memory" in name
    is_asked_so = "memory" in parsed.normalized_query.get("mode", ())
    return parsed.get_backend_name() == "sqlite" and (is_named_so or is_asked_so)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise ConfigError(_bad_url(url)) from error
    # An @ in a host is one of a password that was not written %40: as a host it would be shown.
    if backend not in _DRIVERS or "@" in (parsed.host or ""):
        raise ConfigError(_bad_url(url))
    if "+" not in parsed.drivername:
        parsed = parsed.set(drivername=f"{backend}+{_DRIVERS[backend]}")
    return parsed


def _require_known_parameters(engine: Engine, url: URL) -> None:
    """PyMySQL would raise a TypeError, and only once it connects."""
    known = signature(engine.dialect.loaded_dbapi.connections.Connection.__init__).parameters
    for name in engine.dialect.create_connect_args(url)[1]:
        if name not in known:
            raise ConfigError(
                f"database URL {_shown(url)}: PyMySQL knows no parameter {name}; leave it out"
            )


def _shown(url: URL) -> str:
    return masked_url(url.render_as_string(hide_password=True))


def _bad_url(url: str) -> str:
    if url.startswith("jdbc:"):
        return (
            f"'{masked_url(url)}' is a URL for Java: leave it in the hive-site.xml of "
            "--config, or give it by --set javax.jdo.option.ConnectionURL=…; or write it as "
            "postgresql://USER:PASSWORD@HOST/DATABASE or mysql://USER:PASSWORD@HOST/DATABASE"
        )
    return (
        f"'{masked_url(url)}' is no database URL; write sqlite:///FILE, "
        "postgresql://USER:PASSWORD@HOST/DATABASE or mysql://USER:PASSWORD@HOST/DATABASE "
        "(in a password @ is written %40, : %3A, / %2F, % %25)"
    )


def _sqlite_options(url: URL, busy_timeout_seconds: float, pool_size: int) -> dict[str, Any]:
    connect = {"timeout": busy_timeout_seconds, "check_same_thread": False}
    if not url.database or url.database == ":memory:":
        # A second connection would see an empty database of its own.
        return {"connect_args": connect, "pool_size": 1, "max_overflow": 0}
    folder = Path(url.database).absolute().parent
    if not url.database.startswith("file:") and not folder.is_dir():
        raise ConfigError(f"cannot open {url.database}: folder {folder} is missing; create it")
    return {"connect_args": connect, "pool_size": pool_size, "max_overflow": pool_size}


def _server_options(url: URL, pool_size: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        "isolation_level": "READ COMMITTED",
        "pool_size": pool_size,
        "max_overflow": pool_size,
    }
    if url.get_backend_name() == "postgresql":
        # Else a host that swallows packets holds a verb for minutes; PyMySQL waits as long.
        waits = {"connect_timeout": _CONNECT_SECONDS}
        waits |= {parameter: value for parameter, _, value in _PATIENCE}
        options["connect_args"] = {
            name: value for name, value in waits.items() if name not in url.query
        }
    else:
        # The seed transaction's id is 0, which MySQL takes as "generate one" otherwise.
        options["connect_args"] = {
            "init_command": _MYSQL_SETTINGS.format(
                idle_seconds=IDLE_SECONDS_MAX, lock_seconds=LOCK_SECONDS_MAX
            )
        }
        options["connect_args"] |= log_in_limits(url, _CONNECT_SECONDS)
    return options


def _ask_idle_connections(engine: Engine) -> None:
    """Ask a connection that was idle for a while whether it lives, before it is used; one that does
    not takes all older ones with it."""

    @event.listens_for(engine, "checkin")
    def given_back(_connection: Any, record: Any) -> None:
        record.info[_GIVEN_BACK_AT] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        idle_since = record.info.get(_GIVEN_BACK_AT)
        if idle_since is None or time.monotonic() - idle_since < _TRUSTED_SECONDS:
            return
        if not _answers(engine, connection):
            raise InvalidatePoolError


def _is_alive(engine: Engine, connection: Connection) -> bool:
    """A file is there; a server is asked."""
    raw = connection.connection.dbapi_connection
    if raw is None or engine.dialect.name == "sqlite":
        return raw is not None
    return _answers(engine, raw)


def _answers(engine: Engine, raw: Any) -> bool:
    """Whether a server answers on a connection of the driver."""
    try:
        return engine.dialect.do_ping(raw)
    except engine.dialect.loaded_dbapi.Error:
        return False


def _pipeline(engine: Engine) -> None:
    # The driver need not be there for another database.
    from hms_bridge.backend.pipeline import PipelinedConnection

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        connection = PipelinedConnection.connect(*arguments, **options)
        # Before it has statistics, PostgreSQL takes a verb's few rows for millions, and compiles
        # the statement for half a second, each time it runs. Not as an option of the connection:
        # poolers refuse those. Servers before 11 do not know the setting.
        settings = _POSTGRESQL_SETTINGS.format(
            idle_seconds=IDLE_SECONDS_MAX, lock_seconds=LOCK_SECONDS_MAX
        )
        # Of several hosts of a URL another one would answer for that which stands still.
        server = options | connection.server_address
        log_in = partial(engine.dialect.connect, *arguments, **server)
        connection.server_check = ServerCheck(_shown(engine.url), log_in)
        connection.set_at_once(settings)
        return connection

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        # As one that is lost it takes all others with it.
        if has_stale_plan(context.original_exception):
            context.is_disconnect = True


def _prepare_sqlite(engine: Engine, busy_timeout_seconds: float) -> None:
    keep_for_owner(engine)

    @event.listens_for(engine, "connect")
    def connected(dbapi_connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: it would begin deferred ones.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(busy_timeout_seconds * 1000)}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        # SQLAlchemy drops the connection when Ctrl-C comes in. SQLite keeps the transaction of a
        # dropped connection, and its write lock, while a cursor of it lives: in the traceback.
        if not isinstance(context.original_exception, Exception):
            context.is_disconnect = False

    @event.listens_for(engine, "checkin")
    def given_back(dbapi_connection: Any, _record: Any) -> None:
        # SQLAlchemy does not roll back a transaction whose commit was cut off.
        if dbapi_connection is not None and dbapi_connection.in_transaction:
            dbapi_connection.rollback()
