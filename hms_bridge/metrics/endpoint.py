"""Serves what a collector finds over HTTP, to whoever asks for ``/metrics``."""

from __future__ import annotations

import logging
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from hms_bridge.bounded_http import BoundedHandler, BoundedServer, http_url, listen
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
        self._url = http_url(host, listener)
        self._server = _Server(
            listener,
            _Handler,
            connections_max=_CONNECTIONS_MAX,
            request_seconds_max=request_seconds_max,
        )
        self._server.collector = collector
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"{self._url}{PATH}"

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
    hint = ", or see hms.bridge.metrics.host"
    return listen("metrics", host, port, connections_max=_CONNECTIONS_MAX, hint=hint)


class _Server(BoundedServer):
    collector: Collector


class _Handler(BoundedHandler, BaseHTTPRequestHandler):
    server: _Server

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
