"""Steps of one transaction, of which each can be undone by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from hms_bridge.backend.dialect import is_mysql, is_postgresql
from hms_bridge.backend.fixed_sql import send

_NAME = "hmsb_step"


class Steps:
    """Texts on the driver's cursor: SQLAlchemy's own savepoints cost as much as a short verb."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_begun = False

    def begin(self) -> None:
        """What came before stays, whatever is undone from now on."""
        # MySQL moves a savepoint of the same name; the others would put one into the other.
        if self._is_begun and not is_mysql(self._connection):
            self._begin_anew()
        else:
            send(self._connection, f"SAVEPOINT {_NAME}")
        self._is_begun = True

    def undo(self) -> None:
        """Everything is as it was at the last beginning."""
        send(self._connection, f"ROLLBACK TO SAVEPOINT {_NAME}")

    def _begin_anew(self) -> None:
        send(self._connection, f"RELEASE SAVEPOINT {_NAME}", f"SAVEPOINT {_NAME}")


@contextmanager
def impatient(connection: Connection, wait_ms: int) -> Iterator[None]:
    """A transaction that waits for a row of another one for this long at most (MySQL: in whole
    seconds); then its statement fails, with an error that can be tried again.

    SQLite's writers wait before they begin, and for no row.
    """
    if is_postgresql(connection):
        send(connection, f"SET LOCAL lock_timeout = {wait_ms:d}")
    if not is_mysql(connection):
        yield
        return
    send(connection, f"SET SESSION innodb_lock_wait_timeout = {max(1, wait_ms // 1000):d}")
    try:
        yield
    finally:
        # Where this fails, the connection is gone, and nobody will use it again.
        with suppress(SQLAlchemyError):
            send(connection, "SET SESSION innodb_lock_wait_timeout = DEFAULT")
