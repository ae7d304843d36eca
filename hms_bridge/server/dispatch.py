"""From a message to its answer: a table of methods, built once."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_bridge.clock import Clock, steady_ms
from hms_bridge.config.settings import ServerSettings
from hms_bridge.errors import HmsBridgeError, MetastoreError, MetastoreUnavailableError
from hms_bridge.model.call import AnsweredCall, CallOutcome
from hms_bridge.server.answers import Answer, is_gathered
from hms_bridge.server.crowd import Answering, Crowd, Guest
from hms_bridge.server.door import address_text
from hms_bridge.server.gate import Gate
from hms_bridge.server.identity import CallerIdentity, identity_of
from hms_bridge.server.places import wake
from hms_bridge.server.turns import Turns
from hms_bridge.server.verb_classes import VerbClass, class_of
from hms_bridge.wire.exceptions import exception_for
from hms_bridge.wire.message_memory import MessageMemory
from hms_bridge.wire.messages import KINDS, ApplicationError, MessageStream
from hms_bridge.wire.methods import SUCCESS, method
from hms_bridge.wire.structs import Struct, hive

_log = logging.getLogger(__name__)

CallWatch = Callable[[AnsweredCall], None]
"""Hears of each call, on the thread that answered it, before the answer is sent."""

Identify = Callable[[socket.socket], CallerIdentity]
"""Says where a new connection comes from."""

_NAMES_USER = "set_ugi"


class _AnyArguments(Struct):
    """Skips whatever arguments an unknown method has."""


@dataclass(frozen=True, slots=True)
class _Call:
    arguments: type[Struct]
    result: type[Struct] | None
    is_void: bool
    exceptions: Mapping[str, str]
    answer: Answer
    is_gathered: bool
    verb_class: VerbClass


class Dispatcher:
    """Answers the messages of one connection after the other."""

    def __init__(
        self,
        answers: Mapping[str, Answer],
        limits: ServerSettings,
        clock: Clock,
        gate: Gate,
        watch: CallWatch | None = None,
        identify: Identify = identity_of,
    ) -> None:
        self._gate = gate
        self._identify = identify
        self._calls = {name: _call(name, answer) for name, answer in answers.items()}
        self._limits = limits
        self._clock = clock
        self._watch = watch
        self._memory = MessageMemory(limits.messages_memory_bytes_max)

    @property
    def answered(self) -> frozenset[str]:
        """The thrift methods that have an answer."""
        return frozenset(self._calls)

    def serve(self, client: socket.socket, turns: Turns, crowd: Crowd | None = None) -> None:
        """Answer until the client leaves, asks for an end, or sends what cannot be read. Of calls
        that are done together the ``crowd`` takes care, once there are many in a row."""
        stream = MessageStream(
            client,
            message_size_bytes=self._limits.message_size_bytes_max,
            container_length=self._limits.container_length_max,
            element_count=self._limits.message_elements_max,
            memory=self._memory,
            end_if_idle=partial(self._end_if_idle, client, turns),
        )
        guest = Guest(client, stream, turns, self._identify(client))
        name = _client_name(client)
        try:
            is_open = True
            while is_open:
                stream.limit_time(None)
                turns.rest()
                # What has been read already is nothing that the crowd would hear of.
                if crowd is not None and guest.calls_to_join <= 0 and not stream.has_rest:
                    self._join(crowd, guest)
                stream.wait()
                turns.rest()
                stream.limit_time(self._limits.message_timeout_ms / 1000)
                is_open = self._serve_one(guest)
                stream.release()
        except TProtocolException as error:
            _log.warning("connection closed: %s: %s", name, error)
        except TimeoutError as error:
            if error.errno is None:
                _log.warning("connection closed: %s: a message did not move on in time", name)
            else:
                _log.info("connection closed: %s: its host confirms nothing any more", name)
        except (TTransportException, OSError) as error:
            _log.debug("connection ended: %s", error)
        finally:
            stream.release()

    def read_gathered(self, guest: Guest) -> Answering | None:
        """A call that is done together with others, read from what has arrived; None for any other.
        Raises what reading raises."""
        stream, turns = guest.stream, guest.turns
        name, kind, sequence = stream.read_header()
        call = self._calls.get(name)
        if kind != KINDS.CALL or call is None or not call.is_gathered:
            return None
        arguments = call.arguments()
        stream.read_struct(arguments)
        if not turns.work():
            return None
        return partial(self._make, guest, name, sequence, call, arguments)

    def _join(self, crowd: Crowd, guest: Guest) -> None:
        """Until it is this thread's turn again; what the crowd could not send goes first."""
        crowd.join(guest)
        if guest.unsent:
            self._send(guest.stream, guest.turns, (guest.unsent,))
            guest.unsent = b""
            guest.stream.limit_time(None)

    def _end_if_idle(self, client: socket.socket, turns: Turns) -> bool:
        """Give a connection up whose message takes memory that another one's needs."""
        if not turns.end_if_idle(self._limits.idle_timeout_ms):
            return False
        _log.warning(
            "connection closed: %s: its message did not move on, and made room for another one",
            _client_name(client),
        )
        wake(client)
        return True

    def _serve_one(self, guest: Guest) -> bool:
        stream, turns = guest.stream, guest.turns
        name, kind, sequence = stream.read_header()
        if kind not in (KINDS.CALL, KINDS.ONEWAY):
            raise TProtocolException(
                TProtocolException.INVALID_DATA, f"a message of kind {kind}; send calls only"
            )
        call = self._calls.get(name)
        arguments = _AnyArguments() if call is None else call.arguments()
        _read_arguments(stream, name, sequence, arguments)
        if not turns.work():
            return False
        if call is None:
            began_ms = steady_ms(self._clock)
            text = f"Invalid method name: '{name}'"
            unknown = TApplicationException.UNKNOWN_METHOD
            self._report(None, CallOutcome.REFUSED, began_ms)
            self._send(stream, turns, _refusal(stream, name, sequence, unknown, text))
        elif call.result is None:
            return bool(call.answer(arguments))
        else:
            guest.count(is_gathered=call.is_gathered)
            if name == _NAMES_USER:
                guest.identity = replace(guest.identity, user=arguments.user_name or "")
            self._send(stream, turns, self._make(guest, name, sequence, call, arguments))
        return True

    def _make(
        self, guest: Guest, name: str, sequence: int, call: _Call, arguments: Struct
    ) -> Iterable[bytes]:
        began_ms = steady_ms(self._clock)
        answer, outcome = self._answer(guest, name, sequence, call, arguments)
        self._report(name, outcome, began_ms)
        return answer

    def _answer(
        self, guest: Guest, name: str, sequence: int, call: _Call, arguments: Struct
    ) -> tuple[Iterable[bytes], CallOutcome]:
        result: Any = call.result
        outcome = CallOutcome.FAILED
        stream = guest.stream
        try:
            if call.verb_class is not VerbClass.OPEN:
                self._gate.require(guest.identity, name, call.verb_class)
            value = call.answer(arguments)
            body = result() if call.is_void else result(**{SUCCESS: value})
            return stream.encode(name, KINDS.REPLY, sequence, body), CallOutcome.OK
        except HmsBridgeError as error:
            outcome = _outcome(error)
            exception, message = exception_for(error, call.exceptions)
            if exception is not None:
                thrown = getattr(hive, exception)(message=message)
                body = result(**{call.exceptions[exception]: thrown})
                return stream.encode(name, KINDS.REPLY, sequence, body), outcome
        # The border: whatever went wrong, this client gets an answer and the others go on.
        except Exception as error:
            _log.exception("%s failed", name)
            message = f"Internal error processing {name}: {type(error).__name__}: {error}"
        internal = TApplicationException.INTERNAL_ERROR
        return _refusal(stream, name, sequence, internal, message), outcome

    def _report(self, method: str | None, outcome: CallOutcome, began_ms: int) -> None:
        if self._watch is not None:
            duration_ms = max(0, steady_ms(self._clock) - began_ms)
            self._watch(AnsweredCall(method, outcome, duration_ms))

    def _send(self, stream: MessageStream, turns: Turns, message: Iterable[bytes]) -> None:
        turns.rest()
        stream.limit_time(self._limits.message_timeout_ms / 1000)
        try:
            stream.send(message)
        except (TTransportException, OSError):
            raise
        # The border: a part of a long answer could not be made, and others are sent already.
        except Exception as error:
            _log.exception("connection closed: an answer could not be made to its end")
            raise TTransportException(TTransportException.UNKNOWN, "a half answer") from error


def _client_name(client: socket.socket) -> str:
    try:
        return address_text(client.getpeername())
    except OSError:  # it is gone already
        return address_text(None)


def _read_arguments(stream: MessageStream, name: str, sequence: int, arguments: Struct) -> None:
    try:
        stream.read_struct(arguments)
    except (TTransportException, OSError):
        raise
    # The border: the decoder reports malformed input by many classes.
    except Exception as error:
        text = f"the arguments of {name} cannot be read: {error}"
        protocol_error = TApplicationException.PROTOCOL_ERROR
        stream.send(_refusal(stream, name, sequence, protocol_error, text))
        raise TProtocolException(TProtocolException.INVALID_DATA, text) from error


def _outcome(error: HmsBridgeError) -> CallOutcome:
    """Hive has one exception for both, so the outcome follows ours."""
    is_refusal = isinstance(error, MetastoreError)
    if is_refusal and not isinstance(error, MetastoreUnavailableError):
        return CallOutcome.REFUSED
    return CallOutcome.FAILED


def _refusal(
    stream: MessageStream, name: str, sequence: int, kind: int, text: str
) -> Iterable[bytes]:
    body = ApplicationError(message=text, type=kind)
    return stream.encode(name, KINDS.EXCEPTION, sequence, body)


def _call(name: str, answer: Answer) -> _Call:
    described = method(name)
    return _Call(
        arguments=described.arguments,
        result=described.result,
        is_void=described.is_void,
        exceptions=described.exceptions,
        answer=answer,
        is_gathered=is_gathered(answer),
        verb_class=class_of(name),
    )
