"""What every small HTTP server here needs: a bound on its connections, and a time for a request."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hms_bridge.errors import ConfigError

_LOG = logging.getLogger(__name__)


def listen(
    what: str, host: str, port: int, *, connections_max: int, hint: str = ""
) -> socket.socket:
    """Where ``what`` is to be served. Raises ConfigError, with a hint, for an address that cannot
    be used."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # at once after an earlier one
    try:
        listener.bind((host, port))
        listener.listen(connections_max)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(
            f"{what} cannot be served on {host} port {port}: {error}; name another port "
            f"(0 takes a free one){hint}"
        ) from error
    return listener


def http_url(host: str, listener: socket.socket) -> str:
    """Of a server that listens there, by the name that it was given for its host."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


class BoundedServer(ThreadingHTTPServer):
    """Threads are bounded, because a client may be slow for as long as it likes.

    A request must come whole within ``request_seconds_max``. After its first one, which says who
    it is, a connection may wait ``idle_seconds_max`` for the next one's first byte; 0: that time
    is part of the other one.
    """

    def __init__(
        self,
        listener: socket.socket,
        handler: type[BoundedHandler],
        *,
        connections_max: int,
        request_seconds_max: float,
        idle_seconds_max: float = 0.0,
    ) -> None:
        self.request_seconds_max = request_seconds_max
        self.idle_seconds_max = idle_seconds_max
        self._room = threading.BoundedSemaphore(connections_max)
        self._connections: set[socket.socket] = set()
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    def process_request(self, request: Any, client_address: Any) -> None:
        """On a thread of its own; a client for which there is no room is sent away."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """To its end."""
        self._connections.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.discard(request)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base's
        """A client that went away is no error of ours."""
        _LOG.debug("a request of %s ended early", client_address, exc_info=True)

    def hang_up(self) -> None:
        """End the connections that are open: no request comes over them any more."""
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its client was faster


class _InTime(io.RawIOBase):
    """What a client sends, a request within a time: however little comes at once, a thread is not
    kept for ever."""

    def __init__(self, connection: socket.socket, seconds: float, idle_seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._idle_seconds = idle_seconds
        self._deadline: float | None = None
        self._is_known = False

    def next_request(self) -> None:
        """The time begins with the first byte if it may be waited for, else now."""
        may_wait = self._is_known and self._idle_seconds
        self._deadline = None if may_wait else time.monotonic() + self._seconds
        self._is_known = True

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As :class:`io.RawIOBase`. Raises TimeoutError when the time is over."""
        if self._deadline is None:
            self._connection.settimeout(self._idle_seconds)
            count = self._connection.recv_into(buffer)
            self._deadline = time.monotonic() + self._seconds
            return count
        left_seconds = self._deadline - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(left_seconds)
        return self._connection.recv_into(buffer)


class BoundedHandler(BaseHTTPRequestHandler):
    """Reads requests in time, and says nothing on standard error, which is for people."""

    server: BoundedServer
    server_version, sys_version = "hms-bridge", ""

    def setup(self) -> None:
        """As the base, but for the time in which a request must come."""
        super().setup()
        self.rfile.close()
        server = self.server
        self._requests = _InTime(
            self.connection, server.request_seconds_max, server.idle_seconds_max
        )
        self.rfile = io.BufferedReader(self._requests)

    def handle_one_request(self) -> None:
        """As the base."""
        self._requests.next_request()
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """For who looks for a fault."""
        _LOG.debug(format, *args)
