"""Serves what a collector finds over HTTP, to whoever asks for ``/metrics``."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from hms_bridge.errors import ConfigError
from hms_bridge.metrics.metric import collected_text

_LOG = logging.getLogger(__name__)
PATH = "/metrics"
_CONNECTIONS_MAX = 8
_REQUEST_SECONDS_MAX = 10.0
_ANSWER_SECONDS_MAX = 30.0
_STOP_SECONDS = 10.0


class MetricsEndpoint:
    """One page, at a socket that listens, which it closes when it stops. A request must come whole
    within ``request_seconds_max``."""

    def __init__(
        self,
        collector: Collector,
        *,
        host: str,
        listener: socket.socket,
        request_seconds_max: float = _REQUEST_SECONDS_MAX,
    ) -> None:
        self._address = (host, listener.getsockname()[1])
        self._server = _Server(listener, collector, request_seconds_max)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    def start(self) -> None:
        """Answer in threads of its own."""
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics-accept", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port; a scrape under way is not waited for."""
        if self._thread is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_STOP_SECONDS)


def listen_for_scrapes(host: str, port: int) -> socket.socket:
    """Raises ConfigError for an address that cannot be used."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_CONNECTIONS_MAX)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(
            f"metrics cannot be served on {host} port {port}: {error}; name another port "
            "(0 takes a free one), or see hms.bridge.metrics.host"
        ) from error
    return listener


class _Server(ThreadingHTTPServer):
    """Threads are bounded, because a client may be slow for as long as it likes."""

    def __init__(
        self, listener: socket.socket, collector: Collector, request_seconds_max: float
    ) -> None:
        self.collector = collector
        self.request_seconds_max = request_seconds_max
        self._room = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
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
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base's
        """A client that went away is no error of ours."""
        _LOG.debug("metrics: a request of %s ended early", client_address, exc_info=True)


class _InTime(io.RawIOBase):
    """What a client sends, all of it within a time: however little comes at once, a thread is not
    kept for ever."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As :class:`io.RawIOBase`. Raises TimeoutError when the time is over."""
        left_seconds = self._deadline - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(left_seconds)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "hms-bridge", ""

    def setup(self) -> None:
        """As the base, but for the time in which the request must come."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_InTime(self.connection, self.server.request_seconds_max))

    def do_GET(self) -> None:
        """The page, or where it is."""
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}")
            return
        try:
            text = collected_text(self.server.collector)
        except Exception:  # the border: the next scrape may do better
            _LOG.exception("metrics: a scrape failed")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
            return
        self.connection.settimeout(_ANSWER_SECONDS_MAX)  # for all of it
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE_LATEST)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Not to standard error, which is for people."""
        _LOG.debug(format, *args)
