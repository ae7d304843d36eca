"""The plan service over HTTP, for one driver's Java: JSON both ways, a token, connections kept."""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from hms_bridge.bounded_http import BoundedHandler, BoundedServer, http_url, listen
from hms_bridge.plans.requests import PlanError, Refusal, malformed
from hms_bridge.plans.service import PlanService

_LOG = logging.getLogger(__name__)
_PREFIX = "/v1/"
_BODY_BYTES_MAX = 8 * 1024 * 1024
_LENGTH_DIGITS_MAX = 18
_CONNECTIONS_MAX = 256
_REQUEST_SECONDS_MAX = 30.0
_IDLE_SECONDS_MAX = 600.0
_ANSWER_SECONDS_MAX = 60.0
_STOP_SECONDS = 10.0
_WRITTEN_AT_ONCE_BYTES = 64 * 1024


class PlanEndpoint:
    """A port that answers who has the token. ``token`` None: a new one."""

    def __init__(
        self,
        service: PlanService,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
    ) -> None:
        """Raises ConfigError for an address that cannot be used."""
        self._service = service
        self.token = token or secrets.token_urlsafe(32)
        listener = listen("plans", host, port, connections_max=_CONNECTIONS_MAX)
        self._url = http_url(host, listener)
        self._server = _Server(
            listener,
            _Handler,
            connections_max=_CONNECTIONS_MAX,
            request_seconds_max=_REQUEST_SECONDS_MAX,
            idle_seconds_max=_IDLE_SECONDS_MAX,
        )
        self._server.service = service
        self._server.authorization = f"Bearer {self.token}".encode()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @property
    def url(self) -> str:
        """What the verbs' names are put behind, with ``/v1/`` between."""
        return self._url

    def start(self) -> None:
        """Answer in threads of its own; the service starts, too."""
        self._service.start()
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="plans-accept", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port and the connections, and stop the service: all leases end. In a fork
        nothing: neither leases nor threads are its own."""
        if os.getpid() != self._process:
            return
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join(_STOP_SECONDS)
        self._server.server_close()
        self._server.hang_up()
        self._service.stop()


class _Server(BoundedServer):
    service: PlanService
    authorization: bytes


class _Handler(BoundedHandler, BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Head and body go as one packet, at once: else each answer waits 40 ms for the other side to
    # confirm the head (Nagle's algorithm, and delayed acknowledgements).
    disable_nagle_algorithm = True
    wbufsize = _WRITTEN_AT_ONCE_BYTES

    def do_POST(self) -> None:
        """One verb."""
        try:
            status, answer = HTTPStatus.OK, self._answer()
        except PlanError as error:
            status, answer = error.kind.status, {"error": error.kind.text, "message": str(error)}
        except TimeoutError:
            self.close_connection = True
            return
        except Exception:  # the border: the next question may do better
            _LOG.exception("the plan service failed at %s", self.path)
            kind = Refusal.FAILED
            message = "the plan service failed; its log says why"
            status, answer = kind.status, {"error": kind.text, "message": message}
        body = json.dumps(answer, separators=(",", ":")).encode()
        self.connection.settimeout(_ANSWER_SECONDS_MAX)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _answer(self) -> dict[str, object]:
        body = self._body()
        if not self.path.startswith(_PREFIX):
            raise PlanError(Refusal.NO_SUCH_VERB, f"verbs are below {_PREFIX}")
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise malformed("the body is no JSON that can be read") from error
        return self.server.service.answer(self.path.removeprefix(_PREFIX), fields)

    def _body(self) -> bytes:
        """Read before anything is refused, so that the connection can be used again; unless it
        comes from who has no token, or is too large."""
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.server.authorization):
            self.close_connection = True
            raise PlanError(Refusal.UNAUTHORIZED, "the token is not the one of this service")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and len(length) <= _LENGTH_DIGITS_MAX):
            self.close_connection = True
            raise malformed("a question needs a Content-Length")
        if int(length) > _BODY_BYTES_MAX:
            self.close_connection = True
            raise PlanError(Refusal.TOO_LARGE, "a question has 8 MiB at most")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            raise malformed("the question ended early")
        return body
