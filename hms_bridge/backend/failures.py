"""Which failures of a database may be cured by trying the whole transaction again."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hms_bridge.backend.frozen_server import LOOK_THERE, has_timed_out
from hms_bridge.errors import (
    BackendError,
    CommitUnknownError,
    DatabaseAbsentError,
    DatabaseGoneError,
    HmsBridgeError,
    InvalidObjectError,
    LockWaitError,
    NoConnectionLeftError,
    RetryableBackendError,
    RowTakenError,
)

_UNIQUE_STATES = frozenset({"23505"})
_UNIQUE_CODES = frozenset({1062})
_UNIQUE_WORDS = ("UNIQUE constraint failed",)
_POSTGRESQL_STATES = frozenset({"40001", "40P01", "26000"})
"""The last one: a pooler or the driver has dropped a prepared text, which is prepared again."""
_STALE_PLAN = "RevalidateCachedQuery"
"""Where PostgreSQL fails, with the state of many other failures, for a prepared text whose columns
have got another type since."""
_LOCK_STATES = frozenset({"55P03"})
_LOCK_CODES = frozenset({1205})
_TROUBLES = frozenset({"08", "57", "58", "F0", "XX"})
_FULL_STATES = frozenset({"53100"})
_FULL_CODES = frozenset({1021, 1114})
_FULL_WORDS = ("database or disk is full", "No space left on device")
"""The second one also where PostgreSQL has no room to begin a connection."""
_SQLITE_ADVICE = {
    sqlite3.SQLITE_CANTOPEN: "see that file and folder are there, and that this user may open both",
    sqlite3.SQLITE_READONLY: "see that this user may write file and folder",
    sqlite3.SQLITE_IOERR: "see that the disk where the file lies has room and works",
}
"""By SQLite's primary code, which is the lower byte of what it says."""
_MYSQL_CODES = frozenset({1020, 1213})
_SQLITE_WORDS = ("database is locked", "database table is locked", "database schema has changed")
_SHORT_STATES = frozenset({"53300"})
_SHORT_CODES = frozenset({1040, 1203})
_SHORT_WORDS = (
    "too many connections for",
    "too many clients already",
    "remaining connection slots",
    "no more connections allowed",
    "'max_user_connections' resource",
)
"""PostgreSQL's driver knows no state of a connection that was not made. The fourth is PgBouncer's,
the last one MariaDB's, whose code (1226) is also that of other limits."""
_MYSQL_CLIENT_CODES = 2000
_STARTING_WORDS = ("is starting up", "not yet accepting connections", "in recovery mode")
_TOO_LONG_STATES = frozenset({"22001"})
_TOO_LONG_CODES = frozenset({1406})
_NO_TEXT_STATES = frozenset({"22021", "22P05"})
_NO_TEXT_CODES = frozenset({1366})
_NO_TEXT_WORDS = ("NUL (0x00)",)
_NOT_COMPARED_CODES = frozenset({1267, 1270})
_NOT_COMPARED_WITH_SEVERAL = 1271
_OF_A_VALUE = "COERCIBLE"
"""What MySQL calls a value of a statement where it says why it cannot compare it with a column; of
several values (1271) it says no more than that. Of two columns it would be a fault of ours."""
_NO_TEXT = "a text has a character that the metastore's database does not hold; leave it out"
_CUT_OFF = "8s2b"
"""SQLAlchemy's code for a statement of a transaction whose connection is gone."""


def translate(
    error: SQLAlchemyError,
    database: str,
    *,
    is_committing: bool,
    has_answered: bool = True,
    connections: int = 0,
) -> HmsBridgeError:
    """The error of ours for one of SQLAlchemy's; the text leaves out statement and parameters.

    A BackendError; InvalidObjectError for a text that no column takes: that is the caller's.
    A connection that is lost while committing is not retryable: the commit may have happened.
    ``has_answered``: the database was reached before, so that a refusal now is an outage and not
    a mistyped URL. ``connections``: how many of the database's this process has.
    """
    cause = error.orig if isinstance(error, StatementError) and error.orig else error
    reason = " ".join(str(cause).split())
    if isinstance(error, DBAPIError) and (why := _unfit(error)):
        return InvalidObjectError(f"{why}: {reason}")
    if isinstance(error, IntegrityError):
        return _broken_rule(error, f"{database}: {reason}")
    if isinstance(error, DBAPIError) and _is(error, _LOCK_STATES, _LOCK_CODES, ()):
        return LockWaitError(f"{database}: {reason}")
    if isinstance(error, DBAPIError) and _is(
        error, _POSTGRESQL_STATES, _MYSQL_CODES, _SQLITE_WORDS
    ):
        return RetryableBackendError(f"{database}: {reason}")
    if isinstance(error, PoolTimeoutError):
        return BackendError(
            f"{database}: no free connection ({reason}): all {connections} of this process are in "
            "use; look there what their statements wait for, or for whom, and try again"
        )
    if isinstance(error, OperationalError) and is_short_of_connections(error):
        return NoConnectionLeftError(f"{database}: {short_of_connections(error, connections)}")
    is_refused = isinstance(error, OperationalError) and _is_refused(error) and not is_committing
    missing = DatabaseGoneError if has_answered else _kind_of_first_failure(cause)
    if is_refused and has_timed_out(cause):
        return missing(
            f"{database}: {reason}: nobody answers there; check host and port, and the way to it; "
            f"if the server runs, {LOOK_THERE}"
        )
    if _is_lost(error, cause):
        gone = CommitUnknownError if is_committing else DatabaseGoneError
        return gone(
            f"{database}: connection lost: {reason}; check the database server and try again"
        )
    is_unknown = is_committing and not _is_refusal(cause)
    is_full = isinstance(error, DBAPIError) and _is(error, _FULL_STATES, _FULL_CODES, _FULL_WORDS)
    if is_full and not is_unknown:
        return BackendError(
            f"{database}: {reason}; nothing was changed: make room where the database lies, then "
            "try again"
        )
    if is_refused:
        return missing(
            f"{database}: {reason}; check that the server runs there, that it has this database, "
            "and user and password (in a URL @ is written %40, : %3A, / %2F, % %25)"
        )
    text = f"{database}: {reason}{_advice(cause)}"
    return (CommitUnknownError if is_unknown else BackendError)(text)


def _advice(cause: BaseException) -> str:
    """What to look at in a file that SQLite cannot use; empty for any other cause."""
    code = getattr(cause, "sqlite_errorcode", None)
    advice = None if code is None else _SQLITE_ADVICE.get(code & 0xFF)
    return "" if advice is None else f"; {advice}, then try again"


def is_short_of_connections(error: OperationalError) -> bool:
    """Whether a connection was not made because there are as many as the database allows."""
    return _is_refused(error) and _is(error, _SHORT_STATES, _SHORT_CODES, _SHORT_WORDS)


def short_of_connections(error: OperationalError, connections: int) -> str:
    """What to say of that: ``connections``, how many this process has."""
    reason = " ".join(str(error.orig).split())
    return (
        f"the database gives no connection more ({reason}); this process has {connections}; allow "
        "its user more (PostgreSQL: CONNECTION LIMIT of the role and of the database, "
        "max_connections; MariaDB, MySQL: max_user_connections, max_connections), or end programs "
        "that have the others"
    )


def has_stale_plan(cause: BaseException) -> bool:
    """Whether a text was prepared before a table was altered, as by an upgrade of Hive's schema. It
    fails for as long as its connection lives, and so do those of all others."""
    return getattr(getattr(cause, "diag", None), "source_function", None) == _STALE_PLAN


def _unfit(error: DBAPIError) -> str:
    """What is wrong with a text that a column does not take, or that cannot be looked for in one;
    empty for what is no text."""
    if _is_not_compared(error):
        return _NO_TEXT
    if not isinstance(error, DataError):
        return ""
    if _is(error, _TOO_LONG_STATES, _TOO_LONG_CODES, ()):
        return "a text is longer than its column in the metastore's database; send a shorter one"
    if _is(error, _NO_TEXT_STATES, _NO_TEXT_CODES, _NO_TEXT_WORDS):
        return _NO_TEXT
    return ""


def _is_not_compared(error: DBAPIError) -> bool:
    """Whether MySQL refuses to look for a text in a column that cannot hold it: it is not there."""
    number, *said = getattr(error.orig, "args", ()) or (None,)
    if number == _NOT_COMPARED_WITH_SEVERAL:
        return True
    return number in _NOT_COMPARED_CODES and _OF_A_VALUE in str(said)


def _is_refusal(cause: BaseException) -> bool:
    """Whether PostgreSQL says that it has not done a statement, as one that was held back until
    the commit; not of a server that stops, or whose disk fails. SQLite has no room for a commit
    before it is done: what it does with the disk afterwards fails without a word."""
    if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return True
    state = getattr(cause, "sqlstate", None) or ""
    return bool(state) and state[:2] not in _TROUBLES


def _is_lost(error: SQLAlchemyError, cause: BaseException) -> bool:
    """Whether the connection is gone; only the first statement that finds it so hears it from the
    driver, a later one of the same transaction from SQLAlchemy."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    return isinstance(cause, PendingRollbackError) and cause.code == _CUT_OFF


def _is_refused(error: OperationalError) -> bool:
    """Whether no connection was made: no statement was tried. So it looks for a COMMIT, too, which
    is no statement to SQLAlchemy. SQLite has no server to look at."""
    return error.statement is None and not isinstance(error.orig, sqlite3.Error)


def _kind_of_first_failure(cause: BaseException) -> type[BackendError]:
    """Whether no server refused a connection, or one that is still starting. MySQL's drivers count
    their own failures from 2000; PostgreSQL begins each refusal with its severity."""
    number, text = (getattr(cause, "args", ()) or (None,))[0], str(cause)
    if isinstance(number, int):
        is_nobody_there = number >= _MYSQL_CLIENT_CODES
    else:
        is_starting = any(word in text for word in _STARTING_WORDS)
        is_nobody_there = "FATAL:" not in text or is_starting
    return DatabaseAbsentError if is_nobody_there else BackendError


def _broken_rule(error: IntegrityError, text: str) -> BackendError:
    """Two verbs may make the same first row: the second finds it when it comes again. Any other
    rule stays broken however often it is tried."""
    if _is(error, _UNIQUE_STATES, _UNIQUE_CODES, _UNIQUE_WORDS):
        return RowTakenError(text)
    return BackendError(
        f"{text}; nothing was changed. A row that another program keeps stands against it: look at "
        "the table that the message names"
    )


def _is(
    error: DBAPIError, states: frozenset[str], codes: frozenset[int], words: tuple[str, ...]
) -> bool:
    original = error.orig
    if getattr(original, "sqlstate", None) in states:
        return True
    arguments = getattr(original, "args", ())
    if arguments and arguments[0] in codes:
        return True
    return any(word in str(original) for word in words)
