"""Thrift calls as a client's generated code makes them: what is thrown is of its wire class."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TMemoryBuffer, TTransportException

from hms_bridge.wire.methods import method
from hms_bridge.wire.structs import Struct
from tests.support.golden_wire import write_message

CLOSED = "the connection was closed"


@dataclass(frozen=True)
class Thrown:
    """What a client gets in place of a result: the class of a declared exception, or thrift's own
    with its type, or CLOSED."""

    cls: str
    message: str


def answer_in(message: bytes) -> Any:
    """The answer that a message holds: what is in ``success``, or what was thrown."""
    protocol = TBinaryProtocolAccelerated(TMemoryBuffer(message))
    name, kind, _ = protocol.readMessageBegin()
    return _answer(protocol, name, kind, message)


def _answer(protocol: Any, name: str, kind: int, message: bytes) -> Any:
    if kind == TMessageType.EXCEPTION:
        refusal = TApplicationException()
        refusal.read(protocol)
        return Thrown(f"TApplicationException {refusal.type}", refusal.message or "")
    described = method(name)
    assert described.result is not None
    result = described.result()
    result.read(protocol)
    for field in described.exceptions.values():
        thrown = getattr(result, field)
        if thrown is not None:
            assert _generated_class(name, message, field) in (None, type(thrown).__name__)
            return Thrown(type(thrown).__name__, thrown.message or "")
    return None if described.is_void else result.success


def _generated_class(name: str, message: bytes, field: str) -> str | None:
    """What the published client's own code reads there; None if it does not have the method."""
    generated = getattr(ThriftHiveMetastore, f"{name}_result", None)
    if generated is None or not hasattr(generated(), field):
        return None
    protocol = TBinaryProtocolAccelerated(TMemoryBuffer(message))
    protocol.readMessageBegin()
    result = generated()
    result.read(protocol)
    return type(getattr(result, field)).__name__


class _Recording(TSocket):  # type: ignore[misc]
    """Keeps the bytes of an answer."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port)
        self.received = b""

    def read(self, size: int) -> bytes:
        found: bytes = super().read(size)
        self.received += found
        return found


class WireClient:
    """One connection to a server; made again when the server closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: _Recording | None = None
        self.received = b""
        """The bytes of the last answer."""

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            self._socket.close()

    def call(self, name: str, arguments: Struct) -> Any:
        """The answer, or a Thrown."""
        if self._socket is None:
            self._socket = _Recording(self._port)
            self._socket.open()
        connection = self._socket
        connection.received = self.received = b""
        try:
            connection.write(write_message(name, TMessageType.CALL, arguments))
            protocol = TBinaryProtocolAccelerated(TBufferedTransport(connection))
            answered, kind, _ = protocol.readMessageBegin()
            assert answered == name
            if kind == TMessageType.EXCEPTION:
                TApplicationException().read(protocol)
            else:
                described = method(name)
                assert described.result is not None
                described.result().read(protocol)
        except (OSError, TTransportException) as error:
            connection.close()
            self._socket = None
            return Thrown(CLOSED, str(error))
        self.received = connection.received
        return answer_in(self.received)
