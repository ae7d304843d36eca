"""SQLite databases behind engines that earlier tests of the process have used.

An engine compiles each statement once, which takes as long as running a test does; so the next test
gets the engine, and another file or memory behind it.
"""

from __future__ import annotations

import sqlite3
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, event, make_url
from sqlalchemy.engine import Dialect

from hms_bridge.backend.engine import Database, open_database

MEMORY = "sqlite://"
CONNECTION_KINDS: WeakKeyDictionary[Engine, type[sqlite3.Connection]] = WeakKeyDictionary()
"""Of new connections of an engine, where they are not the driver's own."""
_idle: dict[bool, list[Database]] = {True: [], False: []}


def open_again(url: str) -> Database:
    """As open_database does; :func:`put_back` closes it."""
    if not url.startswith("sqlite:"):
        return open_database(url)
    idle = _idle[url == MEMORY]
    database = idle.pop() if idle else _steered(url)
    # Whoever used it after its end left a connection to where it was.
    database.close()
    database.engine.url = make_url(url)
    return database


def put_back(database: Database) -> None:
    """Nobody uses it any more."""
    database.close()
    if database.engine.dialect.name == "sqlite":
        _idle[not database.engine.url.database].append(database)


def _steered(url: str) -> Database:
    """One whose new connections go where its engine's URL says by then."""
    database = open_database(url)

    @event.listens_for(database.engine, "do_connect")
    def connect(
        _dialect: Dialect, _record: object, _arguments: object, options: dict[str, Any]
    ) -> sqlite3.Connection:
        place = database.engine.url.database or ":memory:"
        kind = CONNECTION_KINDS.get(database.engine, sqlite3.Connection)
        opened: sqlite3.Connection = sqlite3.connect(place, factory=kind, **options)
        return opened

    return database
