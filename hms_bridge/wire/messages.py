"""Messages over a socket: thrift's strict binary protocol without frames, within limits.

The stream is a thrift transport, so that the accelerated decoder can ask it for more bytes. Bytes
arrive in small chunks: a length that the other side claims costs nothing until it is sent.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from itertools import chain
from struct import Struct as BinaryLayout

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import (
    CReadableTransport,
    TTransportBase,
    TTransportException,
)

from hms_bridge.wire.element_count import ElementCounter
from hms_bridge.wire.message_memory import ELEMENT_BYTES, FREE_BYTES, MessageMemory, never
from hms_bridge.wire.struct_bytes import is_plain, plain_bytes, struct_pieces
from hms_bridge.wire.structs import Struct, set_spec

_CHUNK_BYTES = 64 * 1024
_READ_AHEAD_BYTES = 4096
_PART_BYTES = 32 * 1024
_STRICT_VERSION = 0x8001
_METHOD_NAME_BYTES_MAX = 256
_HEADER = BinaryLayout("!HHI")
_NUMBER = BinaryLayout("!i")

KINDS = TMessageType
"""CALL, REPLY, EXCEPTION, ONEWAY."""


class ApplicationError(Struct):
    """A TApplicationException as a struct: a message, and one of thrift's kinds of it."""


set_spec(
    ApplicationError,
    (None, (1, TType.STRING, "message", "UTF8", None), (2, TType.I32, "type", None, None)),
)


REFUSED_CONNECTION = "connection"
"""What an exception is of that is no answer to a call: no call of the connection was made."""


def refusal_of_connection(why: str) -> bytes:
    """A message that a client of thrift takes for the answer to whatever it has called first."""
    name = REFUSED_CONNECTION.encode()
    body = ApplicationError(message=why, type=TApplicationException.INTERNAL_ERROR)
    start = _HEADER.pack(_STRICT_VERSION, KINDS.EXCEPTION, len(name))
    return b"".join((start, name, _NUMBER.pack(0), plain_bytes(body)))


class NotAllHereError(Exception):
    """Of what has arrived, more is to come."""


class MessageStream(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """Reads and writes messages.

    Raises TTransportException where the other side is gone, TProtocolException where what comes
    is no message or exceeds a limit, OSError as the socket does. After each of them the stream is
    of no use, unless its message has arrived (:meth:`arrive`) and is rewound. ``element_count``:
    the most fields and entries of a message that is read; None: any. ``memory``: what this stream's
    message takes of what all may take, until it is released, or ``end_if_idle`` gives the
    connection up for another one's message.
    """

    def __init__(
        self,
        stream: socket.socket,
        *,
        message_size_bytes: int,
        container_length: int,
        element_count: int | None = None,
        memory: MessageMemory | None = None,
        end_if_idle: Callable[[], bool] = never,
    ) -> None:
        self._socket = stream
        self._memory = memory
        self._end_if_idle = end_if_idle
        self._message_size_bytes = message_size_bytes
        self._element_count = element_count
        self._elements: ElementCounter | None = None
        self._seen: list[bytes] | None = None
        self._deadline: float | None = None
        self._is_limited = False
        self._holds_memory = False
        self._arrived: bytes | None = None
        self._buffer = BytesIO()
        self._received_bytes = 0
        self._protocol = TBinaryProtocolAccelerated(
            self,
            strictRead=True,
            string_length_limit=message_size_bytes,
            container_length_limit=container_length,
        )

    def wait(self) -> None:
        """Block until a message begins. Raises TTransportException if the stream ends first."""
        self._received_bytes = 0
        rest = self._buffer.read()
        if not rest:
            rest = self._receive(_READ_AHEAD_BYTES)
            if not rest:
                raise _ended()
        self._buffer = BytesIO(rest)

    def arrive(self) -> bool:
        """In place of :meth:`wait`, for what has come: whether there may be more of it. Until it is
        settled or rewound nothing waits for more, which is a NotAllHereError. No limit of time may
        be set: a socket that has one waits, whatever it is asked.

        Raises TTransportException if the stream has ended, BlockingIOError if nothing has come.
        """
        self._limit_wait()
        came = self._socket.recv(_READ_AHEAD_BYTES, socket.MSG_DONTWAIT)
        if not came:
            raise _ended()
        self._arrived = came
        self._buffer = BytesIO(came)
        self._received_bytes = 0
        return len(came) == _READ_AHEAD_BYTES

    @property
    def has_rest(self) -> bool:
        """Whether more has come than the message that was read."""
        return self._buffer.tell() < len(self._buffer.getvalue())

    def settle(self) -> None:
        """The message that has arrived is done with."""
        self._arrived = None

    def rewind(self) -> None:
        """What has arrived, unless it is settled, is to be read from its start."""
        if self._arrived is not None:
            self._buffer = BytesIO(self._arrived)
            self._arrived = None

    def limit_time(self, seconds: float | None) -> None:
        """From now on: a whole message must come, and go, in this time; None for any."""
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def read_header(self) -> tuple[str, int, int]:
        """A message's method, kind and sequence number."""
        self._received_bytes = 0
        start = self.readAll(8)
        version, kind, name_bytes = _HEADER.unpack(start)
        if version != _STRICT_VERSION or name_bytes > _METHOD_NAME_BYTES_MAX:
            raise TProtocolException(TProtocolException.BAD_VERSION, _what_is_this(start))
        rest = self.readAll(name_bytes + 4)
        name = rest[:name_bytes].decode("utf-8", "replace")
        return name, kind, _NUMBER.unpack_from(rest, name_bytes)[0]

    def read_struct(self, struct: Struct) -> None:
        """The body of a message."""
        self._elements, self._seen = None, None
        if self._element_count is not None:
            self._seen = [self._buffer.getvalue()[self._buffer.tell() :]]
        try:
            struct.read(self._protocol)
        finally:
            self._elements, self._seen = None, None

    def encode(self, name: str, kind: int, sequence: int, body: Struct) -> Iterable[bytes]:
        """One message in parts, for once. The first is there; the others, of a long list, are made
        when they are asked for: the other side reads the first meanwhile."""
        encoded_name = name.encode()
        header = _HEADER.pack(_STRICT_VERSION, kind, len(encoded_name))
        start = (header, encoded_name, _NUMBER.pack(sequence))
        if is_plain(body):
            return (b"".join((*start, plain_bytes(body))),)
        parts = _parts(chain(start, struct_pieces(body)))
        return chain((next(parts),), parts)

    def send(self, message: Iterable[bytes]) -> None:
        """Send an encoded message."""
        for part in message:
            sent = 0 if self._deadline is None else self._send_at_once(part)
            if sent < len(part):
                self._limit_wait()
                self._socket.sendall(memoryview(part)[sent:])

    def send_now(self, message: Iterable[bytes]) -> bytes:
        """Send as much of an encoded message as the other side has room for now; the rest."""
        whole = b"".join(message)
        return whole[self._send_at_once(whole) :]

    def release(self) -> None:
        """Nobody works on the last message any more: it takes no memory."""
        if self._memory is not None and self._holds_memory:
            self._memory.release(self)
            self._holds_memory = False

    def close(self) -> None:
        """Close the socket; a thread that waits on it wakes up."""
        with suppress(OSError):  # the other side may have been faster
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
                raise _ended(" inside a message")
            received += chunk
        self._buffer = BytesIO(received)
        return self._buffer

    def _receive(self, wanted: int) -> bytes:
        if self._arrived is not None:
            raise NotAllHereError
        self._limit_wait()
        chunk = self._socket.recv(min(max(wanted, _READ_AHEAD_BYTES), _CHUNK_BYTES))
        self._received_bytes += len(chunk)
        if self._received_bytes > self._message_size_bytes:
            raise TProtocolException(
                TProtocolException.SIZE_LIMIT,
                f"a message exceeds {self._message_size_bytes} bytes; send less at a time",
            )
        self._count_elements(chunk)
        if self._memory is not None and self._received_bytes > FREE_BYTES:
            self._holds_memory = True
            count = 0 if self._elements is None else self._elements.count
            size_bytes = self._received_bytes + ELEMENT_BYTES * count
            self._memory.hold(self, size_bytes, self._end_if_idle)
        return chunk

    def _send_at_once(self, part: bytes) -> int:
        """How many bytes of it the other side has room for now: of most answers, all."""
        try:
            return self._socket.send(part, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _limit_wait(self) -> None:
        """The socket gets its limit only where it may have to wait: each time it does, this thread
        gives up the interpreter, for which others may be waiting."""
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("a message took too long")
            self._socket.settimeout(left)
            self._is_limited = True
        elif self._is_limited:
            self._socket.settimeout(None)
            self._is_limited = False

    def _count_elements(self, chunk: bytes) -> None:
        """An element is a byte at least, and what is short takes no memory to speak of: only a
        longer message is counted."""
        if self._elements is not None:
            self._elements.feed(chunk)
        elif self._seen is not None and self._element_count is not None:
            self._seen.append(chunk)
            if self._received_bytes > min(self._element_count, FREE_BYTES):
                self._elements = ElementCounter(self._element_count)
                for seen in self._seen:
                    self._elements.feed(seen)
                self._seen = None


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in parts that are worth a call each."""
    held: list[bytes] = []
    size_bytes = 0
    for piece in pieces:
        held.append(piece)
        size_bytes += len(piece)
        if size_bytes >= _PART_BYTES:
            yield b"".join(held)
            held, size_bytes = [], 0
    if held:
        yield b"".join(held)


def _ended(where: str = "") -> TTransportException:
    text = f"the other side closed the connection{where}"
    return TTransportException(TTransportException.END_OF_FILE, text)


def _what_is_this(start: bytes) -> str:
    text = "this is thrift's strict binary protocol without frames; the other side sent "
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD"):
        return text + "HTTP; use a thrift:// address there"
    if start[4:6] == b"\x80\x01":
        return text + "framed messages; turn off framed transport there"
    if start[:1] == b"\x16":
        return text + "a TLS greeting; turn off SSL there"
    if start[:1] == b"\x01":
        return text + "a SASL greeting; turn off SASL there"
    return text + repr(start)
