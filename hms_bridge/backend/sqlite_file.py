"""The file of a SQLite database is its owner's alone: tokens and master keys stand in it."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from sqlalchemy import Engine, event

_LOG = logging.getLogger(__name__)
_LOOKING = threading.Lock()
"""Of all threads: none lets SQLite open a new file that another one is about to close."""


def keep_for_owner(engine: Engine) -> None:
    """A database that is not there is made with mode 0600 before SQLite would make it by the
    umask; -wal, -shm and -journal get the database's mode by SQLite. One that is there keeps its
    own, and a line says if all others may read it.

    Nothing here opens a database that is there: whoever closes a file gives up all locks that the
    process has on it (POSIX), those of SQLite's other connections too. Another process would then
    take itself for the last one, and remove the -wal with what is committed.
    """
    seen: set[Path] = set()

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
        place = _file_of(str(arguments[0]))
        if place is None:
            return
        with _LOOKING, suppress(OSError):  # SQLite says why it cannot
            if place not in seen:
                seen.add(place)
                _look(place)


def _look(place: Path) -> None:
    if not place.exists():
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    mode = place.stat().st_mode & 0o777
    if mode & 0o007:
        _LOG.warning(
            "%s: all users of this machine may open the database (mode %04o), in which tokens and "
            "master keys are; close it: chmod 600 %s*",
            place,
            mode,
            place,
        )


def _file_of(name: str) -> Path | None:
    """The file that SQLite would make; None for memory, and where a URI asks not to make one."""
    if not name.startswith("file:"):
        return None if name in ("", ":memory:") else Path(name)
    path, _, query = name.removeprefix("file:").partition("?")
    mode = parse_qs(query).get("mode", ["rwc"])[-1]
    path = unquote(path.removeprefix("//localhost").removeprefix("//"))
    return Path(path) if mode == "rwc" and path not in ("", ":memory:") else None
