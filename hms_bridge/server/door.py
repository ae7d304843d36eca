"""Where clients come in: a port that this process has alone, or that several accept on."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Network
from typing import Any

from hms_bridge.errors import ConfigError
from hms_bridge.server.identity import plain_address
from hms_bridge.server.peers import Peers

_BACKLOG = 1024
"""Who does not fit in waits for a second, and tries again."""
_GIVE_WAY_SECONDS = 0.25
"""How long a client waits for the process that has the fewest connections, if that is busy."""
_STEP_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Entrance:
    """A listening socket that processes share, which of them this one is, and since when the first
    of them is there: clients may ask any."""

    listener: socket.socket
    peers: Peers
    number: int
    since_seconds: int


class Door:
    """Hands out clients, on one thread, until it is closed by another.

    One queue serves all processes, so that none waits behind one that is busy or dead, as clients
    would whom the kernel spreads over sockets by their addresses (SO_REUSEPORT); and who has more
    connections than another lets that one go first.
    """

    def __init__(self, listener: socket.socket, entrance: Entrance | None = None) -> None:
        self._listener = listener
        self._entrance = entrance
        listener.setblocking(False)
        self._bell, self._rope = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)

    def next_client(self) -> tuple[socket.socket, Any] | None:
        """One, and its address; None once the door is closed. Raises OSError, e.g. for want of file
        descriptors: others may come in later."""
        while True:
            came = {key.fileobj for key, _ in self._selector.select()}
            if self._bell in came:
                return None
            if self._entrance is not None:
                self._give_way(self._entrance)
            with suppress(BlockingIOError):  # another process was quicker, or the client left
                return self._listener.accept()

    def close(self) -> None:
        """Nobody comes in any more. What waits at a shared port is for the other processes: closing
        this one's copy of the socket leaves theirs, shutting it down would not."""
        self._rope.send(b".")

    def release(self) -> None:
        """Once nobody waits at the door."""
        self._selector.close()
        self._bell.close()
        self._rope.close()
        self._listener.close()

    def note(self, connections: int) -> None:
        """Let the other processes know how many this one has."""
        if self._entrance is not None:
            self._entrance.peers.note(self._entrance.number, connections)

    def _give_way(self, entrance: Entrance) -> None:
        deadline = time.monotonic() + _GIVE_WAY_SECONDS
        while (
            entrance.peers.is_another_emptier(entrance.number)
            and time.monotonic() < deadline
            and self._selector.select(0)
        ):
            time.sleep(_STEP_SECONDS)


def address_text(address: Any) -> str:
    """Where a client comes from, as ``HOST:PORT``, for the log."""
    match address:
        case (str(host), int(port), *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return "a client"


def host_of(address: Any) -> str:
    """Where a client comes from; of IPv6 the network, of which a host may have all addresses."""
    match address:
        case (str(text), int(), *_):
            host = plain_address(text)
            if host.version == 4 or host.is_loopback:
                return str(host)
            return str(IPv6Network((int(host), 64), strict=False))
    return "an unknown host"


def is_beyond_this_machine(host: str) -> bool:
    """Whether others reach a server that listens there; also for a name that means nothing yet."""
    if not host:  # all addresses
        return True
    try:
        entries = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return True
    return not all(plain_address(str(entry[4][0])).is_loopback for entry in entries)


def listen(host: str, port: int) -> socket.socket:
    """Raises ConfigError for an address that cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program; stop that program, or serve "
            "on another port (0 takes a free one)"
        )
    if number == errno.EACCES:
        return f"port {port} on {host} may not be used by this user; take one above 1023"
    return f"cannot listen on {host} port {port}: {error}; check the address and the port"
