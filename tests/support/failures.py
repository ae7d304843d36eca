"""File systems and databases that fail at a call, or from it on, while their process lives on."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.engines import CONNECTION_KINDS
from tests.support.faults import FaultPlan, FaultyVolume
from tests.support.installation import Installation
from tests.support.passing import Passing

_ERRORS = (errno.EIO, errno.EACCES, errno.ETIMEDOUT)
_FULL = "database or disk is full", sqlite3.SQLITE_FULL
_BROKEN = "disk I/O error", sqlite3.SQLITE_IOERR
_LOCKED = "database is locked", sqlite3.SQLITE_BUSY
_NEVER_REFUSED = {"without_links", "real_path", "is_link"}
DEADLOCK = "deadlock"
"""A way to fail: once, and such that the database says to try again."""


class Failures(FaultPlan):
    """Counts calls while it is watching; the n-th fails, or all from the n-th on.

    A call has a point before it (it is refused), and one after it if it changes something (it is
    done, and reported as failed).
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_watching = False
        self.way = ""
        self.first: int | None = None

    @contextmanager
    def failing(
        self,
        first: int | None = None,
        *,
        at: str | None = None,
        since: str = "",
        way: str = "once",
    ) -> Iterator[None]:
        """Fail at the ``first`` point of a block, or at the first one whose label ends as ``at``
        from one on that has ``since`` in its label. ``way``: once, lasting or DEADLOCK."""
        self.begin()
        self.first, self.crash_label, self.way, self.is_watching = first, at, way, True
        self._since: str | None = since
        try:
            yield
        finally:
            self.is_watching = False

    def point(self, label: str) -> None:
        with self._lock:
            if not self.is_watching:
                return
            self.count += 1
            self.labels.append(label)
            if self._since is not None and self._since in label:
                self._since = None
            is_there = self._since is None and self.crash_label is not None
            if self.first is None and is_there and label.endswith(self.crash_label or ""):
                self.first = self.count
            if self.first is None or self.count < self.first:
                return
            if self.count > self.first and self.way != "lasting":
                return
        raise self.error(label)

    def error(self, label: str) -> Exception:
        """What the call says."""
        raise NotImplementedError

    @property
    def is_met(self) -> bool:
        """Whether a call has failed."""
        return self.first is not None and self.count >= self.first

    @property
    def met(self) -> str:
        """The first call that failed."""
        return self.labels[(self.first or 1) - 1]


class StorageFailures(Failures):
    """No right, no answer, a broken disk, or a full one, in turn."""

    def error(self, label: str) -> Exception:
        when, _, call = label.partition(" ")
        number = _ERRORS[self.count % len(_ERRORS)]
        if call.startswith(("write", "make", "close")) and when == "before":
            number = errno.ENOSPC
        return OSError(number, os.strerror(number), call.rpartition(" ")[2])


class DatabaseFailures(Failures):
    """A full disk, a broken one, or a deadlock; a commit may be done all the same.
    ``is_commit_in_doubt``: one that is not done does not say so; in turn, if None."""

    is_commit_in_doubt: bool | None = None

    def error(self, label: str) -> Exception:
        text, code = _FULL if self.count % 2 else _BROKEN
        if self.way == DEADLOCK:
            text, code = _LOCKED
        if label == "before commit" and self.is_commit_in_doubt is not None:
            text, code = _BROKEN if self.is_commit_in_doubt else _FULL
        if label == "after commit":
            text, code = _BROKEN
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        return error


class FailingVolume(FaultyVolume):
    """Each call is a point, those that only look, and those of streams, too; not those that no
    file system refuses (`_NEVER_REFUSED`)."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not callable(found) or name in _NEVER_REFUSED:
            return found

        def call(path: str, *rest: Any, **given: Any) -> Any:
            self._faults.point(f"before {name} {path}")
            answer = found(path, *rest, **given)
            is_stream = name in {"open_input", "open_output"}
            return FailingStream(answer, path, self._faults) if is_stream else answer

        return call

    def _do(self, label: str, *args: Any, **given: Any) -> Any:
        method = getattr(self.inner, label)
        self._faults.point(f"before {label} {args[0]}")
        answer = method(*args, **given)
        self._faults.point(f"after {label} {args[0]}")
        return answer

    def write_new(self, path: str, chunks: Any, like: Any = None) -> None:
        self._faults.point(f"before write_new {path}")
        whole = b"".join(chunks)
        try:
            self._faults.point(f"before write_half {path}")
        except OSError:
            self.inner.write_new(path, [whole[: len(whole) // 2]], like)
            raise
        self.inner.write_new(path, [whole], like)
        self._faults.point(f"after write_new {path}")

    def copy_file(self, source: str, target: str) -> None:
        self._do("copy_file", source, target)

    def sync_file(self, path: str) -> None:
        self._do("sync_file", path)

    def sync_directory(self, path: str) -> None:
        self._do("sync_directory", path)


class FailingStream(Passing):
    """A file that is open; to close it may fail, too, and closes it all the same."""

    def __init__(self, inner: Any, path: str, failures: FaultPlan) -> None:
        super().__init__(inner)
        self._path = path
        self._failures = failures

    def __enter__(self) -> FailingStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def read(self, *size: int) -> bytes:
        self._failures.point(f"before read {self._path}")
        data: bytes = self.inner.read(*size)
        return data

    def write(self, data: Any) -> int:
        self._failures.point(f"before write {self._path}")
        count: int = self.inner.write(data)
        return count

    def close(self) -> None:
        is_ending = not self.inner.closed and self.inner.writable()
        self.inner.close()
        if is_ending:
            self._failures.point(f"before close {self._path}")


class _Connection(sqlite3.Connection):
    """SQLite's, whose statements and commits are points."""

    failures: DatabaseFailures

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self.failures.point(f"before {sql}")
        return super().execute(sql, *arguments)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _Cursor)

    def commit(self) -> None:
        self.failures.point("before commit")
        super().commit()
        self.failures.point("after commit")


class _Cursor(sqlite3.Cursor):
    def _point(self, sql: str) -> None:
        if isinstance(self.connection, _Connection):
            self.connection.failures.point(f"before {sql}")

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self._point(sql)
        return super().execute(sql, *arguments)

    def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self._point(sql)
        return super().executemany(sql, *arguments)


@contextmanager
def failing_database(world: Installation, failures: DatabaseFailures) -> Iterator[None]:
    """The world's database, which is in memory, fails in a block where these say."""
    content = world.backup()

    class Failing(_Connection):
        pass

    Failing.failures = failures
    CONNECTION_KINDS[world.engine.engine] = Failing
    world.engine.close()
    world.restore(content)
    try:
        yield
    finally:
        del CONNECTION_KINDS[world.engine.engine]
