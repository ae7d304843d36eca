"""A database server that stands still on a host that lives: stopped, paused, or out of memory.

Its host confirms packets for it, so :mod:`hms_bridge.silent_hosts` sees nothing; and a statement
may take long, so time alone proves nothing. But a server that works lets others in, or refuses
them. Who waits long for an answer logs in once more, beside it: a server that does not even answer
that within the time for a connection stands still.
"""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_LOG = logging.getLogger(__name__)
QUIET_SECONDS = 30.0
"""How long an answer may take before somebody asks whether the server works at all."""


LOOK_THERE = "see there whether it is stopped, paused or out of memory"


class ServerCheck:
    """Of one connection. ``log_in`` makes another to the same server; ``name`` is for people."""

    def __init__(self, name: str, log_in: Callable[[], Any]) -> None:
        self._name = name
        self._log_in = log_in

    def require_working(self) -> None:
        """Raises TimeoutError if the server stands still."""
        try:
            self._log_in().close()
        except Exception as error:  # whatever the driver makes of a refusal: it is an answer
            if has_timed_out(error):
                raise TimeoutError(
                    f"the server stands still: no answer for {QUIET_SECONDS:g} s, and nobody else "
                    f"is let in, though its host is there; {LOOK_THERE}"
                ) from error
        _LOG.warning(
            "%s: a statement has had no answer for %g s; the server answers others, so it is "
            "waited for",
            self._name,
            QUIET_SECONDS,
        )


class _Patient(io.RawIOBase):
    """What comes on a socket that has a limit of time: at each that passes the server is looked
    after."""

    def __init__(self, connection: socket.socket, check: ServerCheck) -> None:
        self._connection = connection
        self._check = check

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As :class:`io.RawIOBase`. Raises TimeoutError if the server stands still."""
        while True:
            with suppress(TimeoutError):
                return self._connection.recv_into(buffer)
            # Outside of the block: what fails in it would have that time-out for its context.
            self._check.require_working()


def patient_reader(connection: socket.socket, check: ServerCheck) -> io.BufferedReader:
    """For a driver that reads its connection as a file."""
    return io.BufferedReader(_Patient(connection, check))


def has_timed_out(error: BaseException | None) -> bool:
    """Whether the time for a connection was over, as the drivers say it."""
    while error is not None:
        if isinstance(error, TimeoutError) or type(error).__name__ == "ConnectionTimeout":
            return True
        error = error.__cause__ or error.__context__
    return False
