"""SQLAlchemy's connections that stay open between two transactions, a few of each isolation level.

To take one out of the pool, to set its level, and to give it back reset takes longer than a short
statement. What is kept here is taken from the pool; the pool has room for more than that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sqlalchemy import Connection, Engine

_Isolation = str | None


_Idle = tuple[Connection, float]
"""A connection, and since when nobody uses it, in seconds: a plain tuple, as it is made for each
transaction."""


class KeptConnections:
    """Of one engine, for many threads. ``count_max``: how many of a level are kept. One that was
    idle for ``trusted_seconds`` is used once ``is_alive`` has said so."""

    def __init__(
        self,
        engine: Engine,
        *,
        count_max: int,
        trusted_seconds: float,
        is_alive: Callable[[Connection], bool],
    ) -> None:
        self._engine = engine
        self._count_max = count_max
        self._trusted_seconds = trusted_seconds
        self._is_alive = is_alive
        self._lock = threading.Lock()
        self._idle: dict[_Isolation, list[_Idle]] = {}

    def take(self, isolation: _Isolation) -> Connection:
        """Without a transaction, at an isolation level; None for that of the engine. Raises
        SQLAlchemyError."""
        with self._lock:
            idle = self._idle.get(isolation)
            kept = idle.pop() if idle else None
        if kept is not None:
            connection, since_seconds = kept
            is_trusted = time.monotonic() - since_seconds < self._trusted_seconds
            if is_trusted or self._is_alive(connection):
                return connection
            connection.invalidate()
            connection.close()
            self.close()
        connection = self._engine.connect()
        if isolation is None:
            return connection
        try:
            return connection.execution_options(isolation_level=isolation)
        except BaseException:
            connection.close()
            raise

    def give(self, connection: Connection, isolation: _Isolation) -> None:
        """Back after a transaction that has come to its end, at the level at which it was taken."""
        with self._lock:
            idle = self._idle.setdefault(isolation, [])
            if len(idle) < self._count_max:
                idle.append((connection, time.monotonic()))
                return
        connection.close()

    def drop(self, connection: Connection) -> None:
        """Give up one whose transaction has failed; with all others, if the database is gone."""
        is_gone = connection.invalidated
        connection.close()
        if is_gone:
            self.close()

    def close(self) -> None:
        """Give all back to the pool."""
        with self._lock:
            given_up = [idle for of_level in self._idle.values() for idle in of_level]
            self._idle.clear()
        for connection, _ in given_up:
            connection.close()
