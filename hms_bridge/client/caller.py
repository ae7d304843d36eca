"""Calls thrift methods of a metastore: connections, time-outs, retries."""

from __future__ import annotations

import errno
import select
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_bridge.client.addresses import Address
from hms_bridge.clock import Clock
from hms_bridge.errors import MetaError, MetastoreUnavailableError
from hms_bridge.silent_hosts import SILENT_SECONDS, give_up_silent_host
from hms_bridge.wire.exceptions import error_from_exception, error_from_text
from hms_bridge.wire.messages import KINDS, REFUSED_CONNECTION, ApplicationError, MessageStream
from hms_bridge.wire.methods import SUCCESS, method
from hms_bridge.wire.structs import Struct

_MESSAGE_SIZE_BYTES = 2**31 - 1
_CONTAINER_LENGTH = 2**31 - 1
_SILENT = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH})
"""What the system says of a connection whose other side confirms nothing any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallSettings:
    """How a client connects and waits; ``user`` is sent to the metastore if given.

    ``attempts`` counts for calls that may be repeated: those that only read, and those whose
    repetition changes nothing. Others are tried again only where nothing was sent yet. An answer
    is waited for as long as ``call_timeout_seconds`` from a host that is there, and no longer than
    about ``silent_seconds`` from one that confirms no packet (:mod:`hms_bridge.silent_hosts`).
    """

    user: str | None = None
    connect_timeout_seconds: float = 10.0
    call_timeout_seconds: float = 600.0
    silent_seconds: int = SILENT_SECONDS
    attempts: int = 3
    retry_delay_seconds: float = 0.5


class UnknownMethodError(MetaError):
    """The metastore is of a generation that does not have the method."""


class _NotSentError(Exception):
    """The call did not leave this machine."""


class _NoAnswerError(Exception):
    """The call was sent to an address, or a part of it, and no answer came; its cause says why."""

    def __init__(self, address: Address) -> None:
        super().__init__(str(address))
        self.address = address

    @property
    def is_slow(self) -> bool:
        """Whether all time is over that there was; the host has confirmed packets meanwhile."""
        cause = self.__cause__
        return isinstance(cause, TimeoutError) and cause.errno is None


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    stream: MessageStream
    address: Address
    sequence: int = 0

    def __del__(self) -> None:
        """Its thread has ended, and nobody else calls over it: a heartbeat's, for example."""
        self.stream.close()


class Caller:
    """A connection for each thread that calls, closed when the thread ends; reconnects, also to
    another address."""

    def __init__(
        self, addresses: tuple[Address, ...], settings: CallSettings, clock: Clock
    ) -> None:
        self._addresses = addresses
        self._settings = settings
        self._clock = clock
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._open: WeakSet[socket.socket] = WeakSet()
        self._unknown: set[str] = set()

    def call(self, name: str, /, *, is_repeatable: bool = False, **arguments: Any) -> Any:
        """Call a method; what it returns.

        Raises the error that the metastore threw, UnknownMethodError, MetaError for an answer
        that cannot be read, MetastoreUnavailableError if no metastore answered.
        """
        described = method(name)
        body = described.arguments(**arguments)
        sent: _NoAnswerError | None = None
        for attempt in range(1, self._settings.attempts + 1):
            is_last = attempt == self._settings.attempts
            try:
                return self._call_once(name, body)
            except _NotSentError as error:
                if is_last and sent is None:
                    raise self._unavailable(name, error.__cause__ or error) from error
            except _NoAnswerError as error:
                sent = error
            if sent is not None and (is_last or sent.is_slow or not is_repeatable):
                raise self._lost(name, sent, is_repeatable) from sent.__cause__
            self._clock.sleep_seconds(self._settings.retry_delay_seconds * attempt)
        raise MetastoreUnavailableError(f"{name} was not tried; allow at least one attempt")

    def repeat(self, name: str, /, **arguments: Any) -> Any:
        """As :meth:`call`, of what may be done twice: again where no answer came."""
        return self.call(name, is_repeatable=True, **arguments)

    def call_first_known(
        self, forms: Iterable[tuple[str, dict[str, Any]]], *, is_repeatable: bool = False
    ) -> tuple[str, Any]:
        """Call the first method that the metastore has; its name and what it returns.

        Which methods it does not have is remembered. Raises as :meth:`call`.
        """
        refusal: UnknownMethodError | None = None
        for name, arguments in forms:
            if name in self._unknown:
                continue
            try:
                return name, self.call(name, is_repeatable=is_repeatable, **arguments)
            except UnknownMethodError as error:
                self._unknown.add(name)
                refusal = error
        self._unknown.clear()  # it may have been replaced by another version
        raise refusal or UnknownMethodError("the metastore knows no form of this call")

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for opened in self._open:
                opened.close()
            self._open.clear()
        self._mine = threading.local()

    def _call_once(self, name: str, body: Struct) -> Any:
        connection = self._connection()
        connection.sequence += 1
        stream = connection.stream
        message = stream.encode(name, KINDS.CALL, connection.sequence, body)
        try:
            stream.send(message)
            return self._read_answer(name, connection)
        except (TTransportException, TProtocolException, OSError) as error:
            self._drop(connection)
            if isinstance(error, TProtocolException):
                raise MetaError(
                    f"the answer of {connection.address} to {name} cannot be read: {error}"
                ) from error
            raise _NoAnswerError(connection.address) from error

    def _read_answer(self, name: str, connection: _Connection) -> Any:
        stream, described = connection.stream, method(name)
        answered, kind, sequence = stream.read_header()
        if kind == KINDS.EXCEPTION and answered == REFUSED_CONNECTION:
            turned_away = ApplicationError()
            stream.read_struct(turned_away)
            self._drop(connection)
            refused = f"{connection.address} takes no connection: {turned_away.message}"
            raise _NotSentError from MetastoreUnavailableError(refused)
        if answered != name or sequence != connection.sequence:
            raise TProtocolException(
                TProtocolException.INVALID_DATA, f"an answer to {answered} came"
            )
        if kind == KINDS.EXCEPTION:
            refusal = ApplicationError()
            stream.read_struct(refusal)
            raise self._refused(name, connection, refusal)
        result: Any = described.result and described.result()
        stream.read_struct(result)
        for field in described.exceptions.values():
            thrown = getattr(result, field)
            if thrown is not None:
                raise error_from_exception(thrown)
        if described.is_void:
            return None
        value = getattr(result, SUCCESS)
        if value is None:
            raise MetaError(f"{connection.address} answered {name} without a result")
        return value

    def _refused(self, name: str, connection: _Connection, refusal: Struct) -> Exception:
        message = refusal.message or ""
        if refusal.type == TApplicationException.UNKNOWN_METHOD:
            return UnknownMethodError(f"{connection.address} has no method {name}")
        if refusal.type == TApplicationException.PROTOCOL_ERROR:
            self._drop(connection)  # servers close it then
        return error_from_text(message)

    def _connection(self) -> _Connection:
        current: _Connection | None = getattr(self._mine, "connection", None)
        if current is not None and _is_stale(current.socket):
            self._drop(current)
            current = None
        if current is None:
            current = self._connect()
            self._mine.connection = current
        return current

    def _connect(self) -> _Connection:
        failure: OSError | None = None
        for address in self._addresses:
            try:
                opened = socket.create_connection(
                    (address.host, address.port), self._settings.connect_timeout_seconds
                )
            except OSError as error:
                failure = error
                continue
            return self._introduce(opened, address)
        raise _NotSentError from failure

    def _introduce(self, opened: socket.socket, address: Address) -> _Connection:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        give_up_silent_host(opened, self._settings.silent_seconds)
        opened.settimeout(self._settings.call_timeout_seconds)
        with self._lock:
            self._open.add(opened)
        stream = MessageStream(
            opened, message_size_bytes=_MESSAGE_SIZE_BYTES, container_length=_CONTAINER_LENGTH
        )
        connection = _Connection(opened, stream, address)
        user = self._settings.user
        if user is not None:
            body = method("set_ugi").arguments(user_name=user, group_names=[user])
            try:
                stream.send(stream.encode("set_ugi", KINDS.CALL, 0, body))
                self._read_answer("set_ugi", connection)
            except (TTransportException, TProtocolException, OSError) as error:
                self._drop(connection)
                raise _NotSentError from error
        return connection

    def _drop(self, connection: _Connection) -> None:
        connection.stream.close()
        with self._lock:
            self._open.discard(connection.socket)
        if getattr(self._mine, "connection", None) is connection:
            self._mine.connection = None

    def _unavailable(self, name: str, cause: BaseException) -> MetastoreUnavailableError:
        tried = ", ".join(str(address) for address in self._addresses)
        return MetastoreUnavailableError(
            f"no metastore answers at {tried} ({cause}); {name} was not sent; check that it runs "
            "and that the address is right"
        )

    def _lost(
        self, name: str, sent: _NoAnswerError, is_repeatable: bool
    ) -> MetastoreUnavailableError:
        cause = sent.__cause__
        why = str(cause)
        advice = (
            "try again; if it stays so, this is no metastore's port, or one that wants Kerberos or "
            "TLS, which hms-bridge does not speak"
        )
        if sent.is_slow:
            why = (
                f"for {self._settings.call_timeout_seconds:g} s, though its host {sent.address} is "
                "there"
            )
            advice = "look there what the metastore waits for, and try again"
        elif isinstance(cause, OSError) and cause.errno in _SILENT:
            why = f"its host confirms no packet any more: {cause}"
            advice = "check that host and the way to it, and try again"
        if not is_repeatable:
            advice = "whether it took effect is unknown: look before you try again"
        return MetastoreUnavailableError(
            f"{name} got no answer from {sent.address} ({why}); {advice}"
        )


class Client:
    """Base of the parts of a metastore over thrift."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller


def _is_stale(idle: socket.socket) -> bool:
    """Whether the other side closed an idle connection; nothing else can be readable on it."""
    arrivals = select.poll()  # select.select takes no descriptor above 1023
    try:
        arrivals.register(idle, select.POLLIN)
    except ValueError:
        return True  # closed here, by close()
    return bool(arrivals.poll(0))
