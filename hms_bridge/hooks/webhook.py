"""The hook ``webhook``: an HTTP POST for each event, signed.

The only address that is ever connected to is that of the setting: neither a redirection nor a
proxy of the environment leads elsewhere, and nothing of an event becomes a part of the URL.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import Any
from urllib.parse import urlsplit

from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import WEBHOOK_SECRET, WEBHOOK_URL, Settings
from hms_bridge.errors import ConfigError
from hms_bridge.hooks.port import NotHeardError
from hms_bridge.hooks.told_json import told_json
from hms_bridge.model.hook import HookEvent

SECRET_LENGTH_MIN = 16
_SHOWN_MAX = 500


class WebhookError(NotHeardError):
    """The receiver could not be asked, or answered with something else than 2xx."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """Where to connect to, and what to ask for there."""

    is_encrypted: bool
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, url: str) -> Receiver:
        """Raises ConfigError for what is no http:// or https:// URL of a host, or has a user: what
        a receiver trusts is the signature."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{WEBHOOK_URL.name}: {error}") from error
        is_known = parts.scheme in ("http", "https") and parts.hostname
        if not is_known or parts.username is not None or parts.fragment:
            raise ConfigError(
                f"{WEBHOOK_URL.name}: write http://HOST:PORT/PATH or https://HOST/PATH, without a "
                "user or a fragment"
            )
        is_encrypted = parts.scheme == "https"
        query = f"?{parts.query}" if parts.query else ""
        return cls(
            is_encrypted=is_encrypted,
            host=parts.hostname or "",
            port=port or (443 if is_encrypted else 80),
            target=(parts.path or "/") + query,
        )

    @property
    def address(self) -> str:
        """For people; without the path, which may be a secret of the receiver's."""
        return f"{'https' if self.is_encrypted else 'http'}://{self.host}:{self.port}"

    def connection(self, timeout_seconds: float) -> HTTPConnection:
        """Not connected yet. A certificate is checked against those that this machine trusts."""
        kind = HTTPSConnection if self.is_encrypted else HTTPConnection
        return kind(self.host, self.port, timeout=timeout_seconds)


def signature(secret: str, time_seconds: int, body: bytes) -> str:
    """``sha256=…``: the HMAC of ``TIME.BODY``, so that an old request cannot be sent again later
    under a new time."""
    signed = f"{time_seconds}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


class Webhook:
    """Posts events to one receiver."""

    def __init__(
        self,
        receiver: Receiver,
        secret: str,
        timeout_seconds: float,
        now_ms: Callable[[], int],
    ) -> None:
        self._receiver = receiver
        self._secret = secret
        self._timeout_seconds = timeout_seconds
        self._now_ms = now_ms

    @classmethod
    def with_settings(cls, settings: Settings) -> Webhook:
        """Raises ConfigError if no URL is named, or a secret that is too short, or a variable that
        is not set."""
        hooks = settings.hooks
        if "${" in hooks.webhook_secret:  # its text is shown nowhere, so no more is said
            raise ConfigError(f"{WEBHOOK_SECRET.name} names a variable that is not set; set it")
        if hooks.webhook_url is None:
            raise ConfigError(f"hook webhook: name its receiver with {WEBHOOK_URL.name}")
        if len(hooks.webhook_secret) < SECRET_LENGTH_MIN:
            raise ConfigError(
                f"hook webhook: {WEBHOOK_SECRET.name} needs at least {SECRET_LENGTH_MIN} "
                "characters, with which requests are signed"
            )
        return cls(
            Receiver.parse(hooks.webhook_url),
            hooks.webhook_secret,
            hooks.timeout_ms / 1000,
            SystemClock().now_ms,
        )

    def on_event(self, event: HookEvent) -> None:
        """Post it. Raises WebhookError."""
        body = told_json(event).encode()
        time_seconds = self._now_ms() // 1000
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "hms-bridge",
            "X-Hms-Bridge-Key": event.key,
            "X-Hms-Bridge-Time": str(time_seconds),
            "X-Hms-Bridge-Signature": signature(self._secret, time_seconds, body),
        }
        try:
            self._post(body, headers)
        except (OSError, HTTPException) as error:
            raise WebhookError(
                f"{self._receiver.address} did not take it: {error or type(error).__name__}; "
                f"see that a receiver answers there ({WEBHOOK_URL.name})"
            ) from error

    def _post(self, body: bytes, headers: Mapping[str, str]) -> None:
        deadline = time.monotonic() + self._timeout_seconds
        with closing(self._receiver.connection(self._timeout_seconds)) as connection:
            connection.connect()
            connection.sock.settimeout(_left(deadline))
            connection.request("POST", self._receiver.target, body, dict(headers))
            answer = _Answer(connection.sock, deadline)
            answer.begin()
            if not 200 <= answer.status < 300:
                said = answer.read(_SHOWN_MAX).decode(errors="replace").strip()
                raise WebhookError(
                    f"{self._receiver.address} answered {answer.status} {answer.reason}"
                    + (f": {said}" if said else "")
                )


def _left(deadline: float) -> float:
    """In seconds. Raises TimeoutError if none is left."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _Answer(HTTPResponse):
    """An answer that must be there by a deadline. A socket's own limit of time begins anew with
    each byte, and a receiver may send one from time to time, for ever."""

    def __init__(self, answered: socket.socket, deadline: float) -> None:
        super().__init__(answered, method="POST")
        self.fp.close()
        self.fp = BufferedReader(_InTime(answered, deadline))


class _InTime(RawIOBase):
    """What comes from a socket until a deadline."""

    def __init__(self, answered: socket.socket, deadline: float) -> None:
        super().__init__()
        self._answered = answered
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._answered.settimeout(_left(self._deadline))
        return self._answered.recv_into(into)
