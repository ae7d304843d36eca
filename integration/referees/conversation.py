"""Talking to a driver: one JSON object a line, a reply for each."""

from __future__ import annotations

import json
from typing import Any

from integration.referees.errors import StartError, StatementError
from integration.referees.processes import Server


class Conversation:
    """A driver process that answers one request at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def read(self) -> dict[str, Any]:
        """The next reply; StartError with the end of the log if the driver ended instead."""
        pipe = self._server.process.stdout
        line = pipe.readline() if pipe else b""
        if not line:
            raise StartError(f"{self._server.name} ended; log:\n{self._server.log_tail()}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def ask(self, **request: object) -> Any:
        """Send a request and return its result; StatementError carries the driver's error."""
        pipe = self._server.process.stdin
        if pipe is None:
            raise StartError(f"{self._server.name} was started without pipes")
        pipe.write(json.dumps(request).encode() + b"\n")
        pipe.flush()
        reply = self.read()
        if "error" in reply:
            raise StatementError(
                engine=self._server.name, statement=json.dumps(request), message=reply["error"]
            )
        return reply["result"]
