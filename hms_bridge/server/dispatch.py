"""From a message to its answer: a table of methods, built once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thrift.Thrift import TApplicationException, TMessageType, TType

from hms_bridge.errors import HmsBridgeError
from hms_bridge.server.answers import Answer
from hms_bridge.server.connection import (
    BrokenMessageError,
    ClientConnection,
    ConnectionEndedError,
)
from hms_bridge.wire.exceptions import exception_for
from hms_bridge.wire.methods import SUCCESS, method
from hms_bridge.wire.structs import Struct, hive, set_spec

_log = logging.getLogger(__name__)


class _AnyArguments(Struct):
    """Skips whatever arguments an unknown method has."""


class ApplicationError(Struct):
    """A TApplicationException on its way out."""


set_spec(
    ApplicationError,
    ((None), (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None)),
)


@dataclass(frozen=True, slots=True)
class _Call:
    arguments: type[Struct]
    result: type[Struct] | None
    is_void: bool
    exceptions: Mapping[str, str]
    answer: Answer


class Dispatcher:
    """Answers the messages of one connection after the other."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._calls = {name: _call(name, answer) for name, answer in answers.items()}

    def serve(self, connection: ClientConnection) -> None:
        """Answer until the client leaves, asks for an end, or sends what cannot be read."""
        try:
            while self._serve_one(connection):
                pass
        except ConnectionEndedError as end:
            _log.debug("%s", end)
        except BrokenMessageError as error:
            _log.warning("connection closed: %s", error)
        except TimeoutError:
            _log.warning("connection closed: a message did not arrive in time")
        except OSError as error:
            _log.debug("connection lost: %s", error)

    def _serve_one(self, connection: ClientConnection) -> bool:
        name, kind, sequence = connection.read_header()
        if kind not in (TMessageType.CALL, TMessageType.ONEWAY):
            raise BrokenMessageError(f"a message of kind {kind} for {name}; send calls only")
        call = self._calls.get(name)
        arguments = _AnyArguments() if call is None else call.arguments()
        self._read_arguments(connection, name, sequence, arguments)
        if call is None:
            text = f"Invalid method name: '{name}'"
            connection.send(
                _refusal(connection, name, sequence, TApplicationException.UNKNOWN_METHOD, text)
            )
        elif call.result is None:
            return bool(call.answer(arguments))
        else:
            connection.send(_answer(connection, name, sequence, call, arguments))
        return True

    def _read_arguments(
        self, connection: ClientConnection, name: str, sequence: int, arguments: Struct
    ) -> None:
        try:
            connection.read_struct(arguments)
        except (ConnectionEndedError, BrokenMessageError, OSError):
            raise
        # The border: the decoder reports malformed input by many classes.
        except Exception as error:
            text = f"the arguments of {name} cannot be read: {error}"
            connection.send(
                _refusal(connection, name, sequence, TApplicationException.PROTOCOL_ERROR, text)
            )
            raise BrokenMessageError(text) from error


def _answer(
    connection: ClientConnection, name: str, sequence: int, call: _Call, arguments: Struct
) -> bytes:
    result: Any = call.result
    try:
        value = call.answer(arguments)
        body = result() if call.is_void else result(**{SUCCESS: value})
        return connection.encode(name, TMessageType.REPLY, sequence, body)
    except HmsBridgeError as error:
        exception, message = exception_for(error, call.exceptions)
        if exception is not None:
            thrown = getattr(hive, exception)(message=message)
            body = result(**{call.exceptions[exception]: thrown})
            return connection.encode(name, TMessageType.REPLY, sequence, body)
    # The border: whatever went wrong, this client gets an answer and the others go on.
    except Exception as error:
        _log.exception("%s failed", name)
        message = f"Internal error processing {name}: {type(error).__name__}: {error}"
    return _refusal(connection, name, sequence, TApplicationException.INTERNAL_ERROR, message)


def _call(name: str, answer: Answer) -> _Call:
    described = method(name)
    return _Call(
        arguments=described.arguments,
        result=described.result,
        is_void=described.is_void,
        exceptions=described.exceptions,
        answer=answer,
    )


def _refusal(connection: ClientConnection, name: str, sequence: int, kind: int, text: str) -> bytes:
    body = ApplicationError(message=text, type=kind)
    return connection.encode(name, TMessageType.EXCEPTION, sequence, body)
