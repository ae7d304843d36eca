"""Which failures of a database may be cured by trying the whole transaction again."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hms_bridge.errors import BackendError, RetryableBackendError

_POSTGRESQL_STATES = frozenset({"40001", "40P01", "55P03"})
_MYSQL_CODES = frozenset({1020, 1205, 1213})
_SQLITE_WORDS = ("database is locked", "database table is locked", "database schema has changed")


def translate(error: SQLAlchemyError, database: str, *, is_committing: bool) -> BackendError:
    """The error of ours for one of SQLAlchemy's; the text leaves out statement and parameters.

    A connection that is lost while committing is not retryable: the commit may have happened.
    """
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    reason = " ".join(text.split())
    if isinstance(error, DBAPIError) and _is_retryable(error, is_committing=is_committing):
        return RetryableBackendError(f"{database}: {reason}")
    if isinstance(error, PoolTimeoutError):
        return BackendError(
            f"{database}: no free connection; close transactions sooner or raise the pool size"
        )
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return BackendError(
            f"{database}: connection lost: {reason}; check the database server and try again"
        )
    return BackendError(f"{database}: {reason}")


def _is_retryable(error: DBAPIError, *, is_committing: bool) -> bool:
    if error.connection_invalidated:
        return not is_committing
    if isinstance(error, IntegrityError):
        # Two verbs made the same first row; the second finds it when it comes again.
        return True
    original = error.orig
    if getattr(original, "sqlstate", None) in _POSTGRESQL_STATES:
        return True
    arguments = getattr(original, "args", ())
    if arguments and arguments[0] in _MYSQL_CODES:
        return True
    return any(word in str(original) for word in _SQLITE_WORDS)
