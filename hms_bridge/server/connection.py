"""One client's connection: unframed strict binary messages, within limits."""

from __future__ import annotations

import socket
from contextlib import suppress
from io import BytesIO
from struct import Struct as BinaryLayout

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import CReadableTransport, TTransportBase

from hms_bridge.errors import HmsBridgeError
from hms_bridge.server.limits import ServerLimits
from hms_bridge.wire.structs import Struct

_CHUNK_BYTES = 64 * 1024
_STRICT_VERSION = 0x8001
_METHOD_NAME_BYTES_MAX = 256
_HEADER = BinaryLayout("!HHI")
_NUMBER = BinaryLayout("!i")


class BrokenMessageError(HmsBridgeError):
    """What came is no message, or exceeds a limit; the connection cannot go on."""


class ConnectionEndedError(HmsBridgeError):
    """The client is gone."""


class ClientConnection(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """Reads messages from a socket and writes answers.

    It is a thrift transport, so that the accelerated decoder can ask it for more bytes; bytes
    arrive in small chunks, so that a length that a client claims costs nothing until it is sent.
    """

    def __init__(self, client: socket.socket, limits: ServerLimits) -> None:
        self._socket = client
        self._limits = limits
        self._buffer = BytesIO()
        self._message_bytes = 0
        self._protocol = TBinaryProtocolAccelerated(
            self,
            strictRead=True,
            string_length_limit=limits.message_size_bytes,
            container_length_limit=limits.container_length,
        )

    def read_header(self) -> tuple[str, int, int]:
        """Wait for a message: its method, kind and sequence number.

        Raises ConnectionEndedError if the client left between messages, BrokenMessageError if
        what comes is no strict binary message.
        """
        self._message_bytes = 0
        start = self._buffer.read(8)
        if not start:
            self._socket.settimeout(None)
            start = self._receive(8)
            if not start:
                raise ConnectionEndedError("the client closed the connection")
            self._socket.settimeout(self._limits.message_timeout_seconds)
            self._buffer = BytesIO(start)
            start = self._buffer.read(8)
        if len(start) < 8:
            start += self.readAll(8 - len(start))
        version, kind, name_bytes = _HEADER.unpack(start)
        if version != _STRICT_VERSION or name_bytes > _METHOD_NAME_BYTES_MAX:
            raise BrokenMessageError(_what_is_this(start))
        rest = self.readAll(name_bytes + 4)
        name = rest[:name_bytes].decode("utf-8", "replace")
        return name, kind, _NUMBER.unpack_from(rest, name_bytes)[0]

    def read_struct(self, struct: Struct) -> None:
        """Read the body of the message."""
        struct.read(self._protocol)

    def encode(self, name: str, kind: int, sequence: int, body: Struct) -> bytes:
        """One message as bytes."""
        encoded_name = name.encode()
        encoded_body: bytes = self._protocol._fast_encode(body, [type(body), body.thrift_spec])
        header = _HEADER.pack(_STRICT_VERSION, kind, len(encoded_name))
        return header + encoded_name + _NUMBER.pack(sequence) + encoded_body

    def send(self, message: bytes) -> None:
        """Send an encoded message. Raises OSError if the client is gone."""
        self._socket.sendall(message)

    def close(self) -> None:
        """Close the socket; a thread that waits on it wakes up."""
        with suppress(OSError):  # the client may have been faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    # What thrift asks of a transport.

    def readAll(self, sz: int) -> bytes:  # noqa: N802, D102
        data: bytes = self._buffer.read(sz)
        if len(data) < sz:
            data = self.cstringio_refill(data, sz).read(sz)
        return data

    def read(self, sz: int) -> bytes:  # noqa: D102
        return self.readAll(sz)

    @property
    def cstringio_buf(self) -> BytesIO:  # noqa: D102
        return self._buffer

    def cstringio_refill(self, partial: bytes, needed: int) -> BytesIO:  # noqa: D102
        received = bytearray(partial)
        while len(received) < needed:
            chunk = self._receive(needed - len(received))
            if not chunk:
                raise ConnectionEndedError("the client closed the connection inside a message")
            received += chunk
        self._buffer = BytesIO(received)
        return self._buffer

    def _receive(self, wanted: int) -> bytes:
        size = min(max(wanted, 4096), _CHUNK_BYTES)
        chunk = self._socket.recv(size)
        self._message_bytes += len(chunk)
        if self._message_bytes > self._limits.message_size_bytes:
            raise BrokenMessageError(
                f"a message exceeds {self._limits.message_size_bytes} bytes; send less at a time"
            )
        return chunk


def _what_is_this(start: bytes) -> str:
    text = "this port speaks thrift's strict binary protocol without frames; a client sent "
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD"):
        return text + "HTTP; use a thrift:// address in the client"
    if start[4:6] == b"\x80\x01":
        return text + "framed messages; turn off framed transport in the client"
    if start[:1] == b"\x16":
        return text + "a TLS greeting; turn off SSL in the client"
    if start[:1] == b"\x01":
        return text + "a SASL greeting; turn off SASL in the client"
    return text + repr(start)
