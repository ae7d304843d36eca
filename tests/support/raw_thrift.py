"""Thrift messages made by hand, for a server that must survive them."""

import socket
import struct
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.wire.messages import ApplicationError
from hms_bridge.wire.methods import method

STRICT_CALL = 0x80010001


def header(name: str, sequence: int = 0, version: int = STRICT_CALL) -> bytes:
    return struct.pack("!II", version, len(name)) + name.encode() + struct.pack("!i", sequence)


def string_field(number: int, text: bytes, length: int | None = None) -> bytes:
    claimed = len(text) if length is None else length
    return struct.pack("!bhi", 11, number, claimed) + text


STOP = b"\0"


def call(name: str, /, **arguments: object) -> bytes:
    """A whole call, as a well-meaning client sends it."""
    buffer = TMemoryBuffer()
    method(name).arguments(**arguments).write(TBinaryProtocolAccelerated(buffer))
    return header(name) + bytes(buffer.getvalue())


class RawClient:
    """A socket with just enough thrift to see an answer."""

    def __init__(self, port: int, source: str | None = None) -> None:
        """``source``: the address of this machine from which it comes."""
        own = None if source is None else (source, 0)
        self.socket = socket.create_connection(("127.0.0.1", port), 10, own)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[str, int, Any]:
        """Method, kind, and body (of the method, or a refusal)."""
        version, length = struct.unpack("!II", self._exactly(8))
        name = self._exactly(length + 4)[:length].decode()
        kind = version & 0xFF
        cls = ApplicationError if kind == TMessageType.EXCEPTION else method(name).result
        assert cls is not None
        body = b""
        while True:
            body += self._exactly(1)
            try:
                result = cls()
                result.read(TBinaryProtocolAccelerated(TMemoryBuffer(body)))
            except (EOFError, TypeError):  # not all there yet
                continue
            return name, kind, result

    def refusal(self) -> str:
        """Why the server takes no connection; it hangs up then."""
        _, kind, refused = self.answer()
        assert kind == TMessageType.EXCEPTION
        assert self.is_closed()
        return str(refused.message)

    def is_closed(self) -> bool:
        """Whether the server hangs up without another word."""
        self.socket.settimeout(10)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = self.socket.recv(count - len(data))
            assert chunk, f"the server closed the connection after {data!r}"
            data += chunk
        return data
