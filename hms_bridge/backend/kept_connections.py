"""SQLAlchemy's connections that stay open between two transactions, each at its isolation level.

To take one out of the pool, to set its level, and to give it back reset takes longer than a short
statement. So all that are idle are kept here, as many as the pool may have; and as the pool cannot
know of them, who may have one more is decided here, too.

A database may let its user have fewer than that. Then an idle connection of another level is used
before anybody is refused, and who finds none waits for the first that is given back. What nobody
has used for a while is closed: other processes of the same user may wait for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hms_bridge.backend.failures import is_short_of_connections, short_of_connections

_LOG = logging.getLogger(__name__)
_ASK_AGAIN_SECONDS = 0.25
_SAY_AGAIN_SECONDS = 60.0

_Isolation = str | None


_Idle = tuple[Connection, float]
"""A connection, and since when nobody uses it, in seconds: a plain tuple, as it is made for each
transaction."""


class KeptConnections:
    """Of one engine, for many threads. ``kept_max``: how many are kept while nobody uses them,
    ``open_max``: how many may be open at all. Who finds all in use waits for ``wait_seconds``. One
    that was idle for ``trusted_seconds`` is used once ``is_alive`` has said so; one that nobody has
    used for ``unused_seconds_max`` is closed, None for never. For ``refused_seconds`` a refusal of
    the database holds: who has none asks again so long, who has some asks for no more.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        kept_max: int,
        open_max: int,
        wait_seconds: float,
        trusted_seconds: float,
        unused_seconds_max: float | None,
        refused_seconds: float,
        is_alive: Callable[[Connection], bool],
    ) -> None:
        self._engine = engine
        self._kept_max = kept_max
        self._open_max = open_max
        self._wait_seconds = wait_seconds
        self._trusted_seconds = trusted_seconds
        self._unused_seconds_max = unused_seconds_max
        self._refused_seconds = refused_seconds
        self._is_alive = is_alive
        self._changed = threading.Condition(threading.Lock())
        self._idle: dict[_Isolation, list[_Idle]] = {}
        self._idle_count = 0
        self._used_count = 0
        self._asked_count = 0
        """Of those in use, how many the database has not given yet."""
        self._granted: tuple[int, float] | None = None
        """How many the database let us have when it refused one more, and until when that holds."""
        self._said_at: float | None = None
        self._sweep: threading.Timer | None = None

    @property
    def count(self) -> int:
        """How many the database has given, in use or not."""
        return self._used_count - self._asked_count + self._idle_count

    def take(self, isolation: _Isolation) -> Connection:
        """Without a transaction, at an isolation level; None for that of the engine. Raises
        SQLAlchemyError."""
        with self._changed:
            idle = self._idle.get(isolation)
            kept = idle.pop() if idle else None
            if kept is not None:
                self._idle_count -= 1
                self._used_count += 1
        if kept is not None:
            connection, since_seconds = kept
            is_trusted = time.monotonic() - since_seconds < self._trusted_seconds
            if is_trusted or self._is_alive(connection):
                return connection
            connection.invalidate()
            connection.close()
            self._release()
            self.close()
        connection = self._open()
        if isolation is None:
            return connection
        try:
            return connection.execution_options(isolation_level=isolation)
        except BaseException:
            connection.close()
            self._release()
            raise

    def give(self, connection: Connection, isolation: _Isolation) -> None:
        """Back after a transaction that has come to its end, at the level at which it was taken."""
        with self._changed:
            is_kept = self._idle_count < self._kept_max
            if is_kept:
                self._used_count -= 1
                self._idle_count += 1
                self._idle.setdefault(isolation, []).append((connection, time.monotonic()))
                self._changed.notify()
                if self._sweep is None:
                    self._sweep_later()
        if not is_kept:
            self._end(connection)
            self._release()

    def drop(self, connection: Connection) -> None:
        """Give up one whose transaction has failed; with all others, if the database is gone."""
        is_gone = connection.invalidated
        self._end(connection)
        self._release()
        if is_gone:
            self.close()

    def limit(self, open_max: int) -> None:
        """From now on there may be no more than so many, and one at least."""
        self._open_max = min(self._open_max, max(1, open_max))

    def close(self) -> None:
        """Give all that are idle back to the pool."""
        with self._changed:
            given_up = [idle for of_level in self._idle.values() for idle in of_level]
            self._idle.clear()
            self._idle_count = 0
            self._changed.notify_all()
            if self._sweep is not None:
                self._sweep.cancel()
                self._sweep = None
        for connection, _ in given_up:
            connection.close()

    def _open(self) -> Connection:
        """A connection more, or one that is idle at another level, by way of the pool."""
        deadline = time.monotonic() + self._wait_seconds
        refusal: OperationalError | None = None
        while True:
            self._reserve(deadline, refusal)
            try:
                connection = self._engine.connect()
            except OperationalError as error:
                has_others = self._refused(error)
                is_first = refusal is None
                if is_first:
                    deadline = min(deadline, time.monotonic() + self._refused_seconds)
                refusal = error
                if not (has_others and is_first) and time.monotonic() >= deadline:
                    raise
                if not has_others:
                    time.sleep(_ASK_AGAIN_SECONDS)
            except BaseException:
                self._release(is_asked=True)
                raise
            else:
                with self._changed:
                    self._asked_count -= 1
                return connection

    def _reserve(self, deadline: float, refusal: OperationalError | None) -> None:
        """Wait for room for one more that is in use. Raises the refusal, or PoolTimeoutError."""
        spare: Connection | None = None
        with self._changed:
            while self._used_count + self._idle_count >= self._most():
                if self._idle_count:
                    oldest = min(filter(None, self._idle.values()), key=lambda idle: idle[0][1])
                    spare, _ = oldest.pop(0)
                    self._idle_count -= 1
                    break
                now = time.monotonic()
                if now >= deadline:
                    raise refusal or PoolTimeoutError(f"none was free for {self._wait_seconds:g} s")
                until = deadline if self._granted is None else min(deadline, self._granted[1])
                self._changed.wait(until - now)
            self._used_count += 1
            self._asked_count += 1
        if spare is not None:
            spare.close()

    def _most(self) -> int:
        """How many may be open now; the caller holds the lock."""
        if self._granted is not None and time.monotonic() >= self._granted[1]:
            self._granted = None
        return self._open_max if self._granted is None else self._granted[0]

    def _refused(self, error: OperationalError) -> bool:
        """No connection was made; whether one of ours will do instead. Raises the error if the
        database is gone: it may word a limit in any language, but then none is idle for long."""
        with self._changed:
            self._used_count -= 1
            self._asked_count -= 1
            self._changed.notify()
            is_short = is_short_of_connections(error)
            if is_short:
                self._say(error)
            if not is_short and not self._idle_count:
                raise error
            self._granted = max(1, self.count), time.monotonic() + self._refused_seconds
            return self._used_count + self._idle_count > 0

    def _say(self, error: OperationalError) -> None:
        now = time.monotonic()
        if self._said_at is None or now - self._said_at >= _SAY_AGAIN_SECONDS:
            self._said_at = now
            name = self._engine.url.render_as_string(hide_password=True)
            _LOG.warning("%s: %s", name, short_of_connections(error, self.count))

    def _release(self, *, is_asked: bool = False) -> None:
        with self._changed:
            self._used_count -= 1
            self._asked_count -= is_asked
            self._changed.notify()

    def _end(self, connection: Connection) -> None:
        """Close it; where connections are scarce it does not lie idle in the pool, either."""
        if self._unused_seconds_max is not None and not connection.invalidated:
            connection.detach()
        connection.close()

    def _sweep_later(self) -> None:
        """The caller holds the lock."""
        if self._unused_seconds_max is None:
            return
        self._sweep = threading.Timer(self._unused_seconds_max, self._close_unused)
        self._sweep.name, self._sweep.daemon = "unused-connections", True
        try:
            self._sweep.start()
        except RuntimeError:  # no more threads: the next one that is given back asks again
            self._sweep = None

    def _close_unused(self) -> None:
        assert self._unused_seconds_max is not None
        until = time.monotonic() - self._unused_seconds_max
        unused: list[Connection] = []
        with self._changed:
            for idle in self._idle.values():
                while idle and idle[0][1] <= until:
                    unused.append(idle.pop(0)[0])
            self._idle_count -= len(unused)
            self._sweep = None
            if self._idle_count:
                self._sweep_later()
        for connection in unused:
            with suppress(SQLAlchemyError):
                self._end(connection)
