"""Connections to MariaDB and MySQL that give up a server which is gone, or stands still.

libpq has parameters for hosts. PyMySQL's own time for an answer ends any long statement; and its
socket and its reader have no public names.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import URL, Engine, event

from hms_bridge.backend import frozen_server
from hms_bridge.backend.frozen_server import ServerCheck, patient_reader
from hms_bridge.errors import ConfigError
from hms_bridge.silent_hosts import give_up_silent_host

LIMITS = ("read_timeout", "write_timeout")
"""PyMySQL's, of a URL whose user wants them: then they are all there is."""


def log_in_limits(url: URL, seconds: float) -> dict[str, float]:
    """PyMySQL's connect_timeout ends before the server's greeting, which may take long, as where it
    looks for its clients' names: the URL's own counts for all of the log-in. Raises ConfigError."""
    if not url.query.keys().isdisjoint(LIMITS):
        return {}
    said = url.query.get("connect_timeout", seconds)
    try:
        return dict.fromkeys(LIMITS, float(str(said)))
    except ValueError as error:
        raise ConfigError(
            f"a database URL has connect_timeout={said!r}; give seconds, as 30"
        ) from error


def give_up_who_is_silent(engine: Engine, name: str) -> None:
    """From now on; ``name`` is the database's, for people."""

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        log_in = partial(engine.dialect.connect, *arguments, **options)
        connection: Any = log_in()
        give_up_silent_host(connection._sock)
        if engine.url.query.keys().isdisjoint(LIMITS):
            connection._rfile = patient_reader(connection._sock, ServerCheck(name, log_in))
            # Equal ones: else the driver sets the socket's anew for each message.
            connection._read_timeout = connection._write_timeout = frozen_server.QUIET_SECONDS
        return connection
