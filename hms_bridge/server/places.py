"""Who has one of the connections, and who makes room for a client that finds all of them taken.

First goes who never finished a first message, the oldest of them: to open a connection and send
nothing costs nobody anything, so a thousand of them must not lock anybody out. Then a client of a
host that has more than its part goes for one of another host; then whoever is idle for long. What
has no such client is full.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from hms_bridge.clock import Clock, steady_ms
from hms_bridge.config.settings import ServerSettings
from hms_bridge.server.turns import Turns

_LOG = logging.getLogger(__name__)
_REST_MS = 1_000
"""Who was idle for less may be between two calls, and is not closed for one of another host."""
_SAY_AGAIN_MS = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """A connection that is served. ``host``: where it comes from."""

    thread: threading.Thread
    turns: Turns
    host: str


class Places:
    """The connections of a server, or of one process of it. Used under one lock."""

    def __init__(self, limits: ServerSettings, clock: Clock) -> None:
        self._limits = limits
        self._of_one_host_max = limits.host_connections_max or -(-limits.connections_max // 2)
        self._clock = clock
        self._places: dict[socket.socket, Place] = {}
        self._new: dict[socket.socket, None] = {}
        """Those that had sent no whole message when they were looked at last, the oldest first."""
        self._of_hosts: Counter[str] = Counter()
        self._said_at_ms: dict[str, int] = {}
        self._unsaid: Counter[str] = Counter()

    @property
    def all(self) -> dict[socket.socket, Place]:
        """A copy."""
        return dict(self._places)

    @property
    def load(self) -> int:
        """How many connections others have to reckon with: of a process that is full, not those
        that make room at once."""
        count = len(self._places)
        if count < self._limits.connections_max:
            return count
        return count - sum(self._places[client].turns.is_silent for client in self._new)

    def add(self, client: socket.socket, place: Place) -> None:
        """There is room for it."""
        self._places[client] = place
        self._new[client] = None
        self._of_hosts[place.host] += 1

    def remove(self, client: socket.socket) -> None:
        """It has ended, or is to."""
        place = self._places.pop(client, None)
        self._new.pop(client, None)
        if place is not None:
            self._of_hosts[place.host] -= 1
            if not self._of_hosts[place.host]:
                del self._of_hosts[place.host]

    def make_room(self, host: str) -> str | None:
        """For a client from a host; why there is none, if there is none."""
        count = len(self._places)
        if count < self._limits.connections_max:
            return None
        if self._end_silent() or self._end_of_large_host(host) or self._end_idle():
            return None
        return (
            f"{count} connections are open, {self._of_hosts[host]} of them from {host}, "
            "see metastore.server.max.threads"
        )

    def say(self, what: str, line: str) -> None:
        """A line into the log; of the same thing, which is one of a few, only now and then."""
        now_ms = steady_ms(self._clock)
        said_at_ms = self._said_at_ms.get(what)
        if said_at_ms is not None and now_ms - said_at_ms < _SAY_AGAIN_MS:
            self._unsaid[what] += 1
            return
        self._said_at_ms[what] = now_ms
        unsaid = self._unsaid.pop(what, 0)
        others = f" (and {unsaid} others since the last such line)" if unsaid else ""
        _LOG.warning("%s%s", line, others)

    def _end_silent(self) -> bool:
        while self._new:
            client = next(iter(self._new))
            del self._new[client]
            place = self._places[client]
            if place.turns.end_if_silent():
                self._end(client)
                line = f"{place.host} sent no whole call, and made room for another client"
                self.say("a silent client", line)
                return True
        return False

    def _end_of_large_host(self, host: str) -> bool:
        of_host = self._of_hosts[host]
        largest, count = max(self._of_hosts.items(), key=lambda item: item[1])
        if largest == host or count <= max(of_host, self._of_one_host_max):
            return False
        idlest = self._idlest(largest)
        if not self._places[idlest].turns.end_if_idle(_REST_MS):
            return False
        self._end(idlest)
        line = f"{largest} has more than its part, and made room for another host's client"
        self.say("a large host", line)
        return True

    def _end_idle(self) -> bool:
        idlest = self._idlest()
        if not self._places[idlest].turns.end_if_idle(self._limits.idle_timeout_ms):
            return False
        self._end(idlest)
        return True

    def _idlest(self, host: str | None = None) -> socket.socket:
        candidates = (
            client for client, place in self._places.items() if host in (None, place.host)
        )
        return max(candidates, key=lambda client: self._places[client].turns.idle_ms)

    def _end(self, client: socket.socket) -> None:
        self.remove(client)
        wake(client)


def wake(client: socket.socket) -> None:
    """End what a thread waits for on a socket."""
    with suppress(OSError):  # it may be closed already
        client.shutdown(socket.SHUT_RDWR)
