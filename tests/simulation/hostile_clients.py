"""Clients that mean harm, on sockets without a network: the others must be served all the same."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from itertools import chain, repeat
from typing import cast

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.config.settings import ServerSettings
from hms_bridge.server.serve import dispatcher_of
from hms_bridge.server.turns import Turns
from hms_bridge.wire.methods import method
from tests.simulation.cluster import Cluster
from tests.simulation.story import ViolationError
from tests.support.golden_wire import read_message, write_message

LIMITS = ServerSettings(message_elements_max=4_096)
_PIECE_BYTES = 512
_TAKEN_BYTES_MAX = 64 * 1024
"""More than 4,096 elements of the kinds below, with what is read ahead."""


class SimulatedSocket:
    """Sends what a client has to say, piece by piece; the server's side of a connection, whose two
    ends are on one machine."""

    family = socket.AF_INET

    def __init__(self, cluster: Cluster, pieces: Iterator[bytes]) -> None:
        self._cluster = cluster
        self._pieces = pieces
        self._rest = b""
        self.taken_bytes = 0
        self.answers = b""

    def getpeername(self) -> tuple[str, int]:
        """Where it comes from."""
        return "127.0.0.1", 1

    def getsockname(self) -> tuple[str, int]:
        """Where it arrived."""
        return "127.0.0.1", 2

    def recv(self, size: int) -> bytes:
        """What is there, at most as much as is wanted; nothing once the client is gone."""
        self._cluster.scheduler.point("a server reads", changes=False)
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece
        given, self._rest = self._rest[:size], self._rest[size:]
        self.taken_bytes += len(given)
        if self.taken_bytes > _TAKEN_BYTES_MAX:
            self._cluster.found(
                ViolationError("I13", f"a server goes on reading after {self.taken_bytes} bytes")
            )
            return b""
        return given

    def send(self, message: bytes, _flags: int) -> int:
        """Takes all of its answer."""
        self._cluster.scheduler.point("a server answers", changes=False)
        self.answers += message
        return len(message)

    def settimeout(self, seconds: float | None) -> None:
        """Nobody waits here."""


class HostileClients:
    """Each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def attack(self, dice: random.Random) -> None:
        """A message without end, or half of one; then somebody asks for the databases."""
        self._serve(dice.choice((_endless_fields, _endless_lists, _half_a_message))())
        name = "get_all_databases"
        result = method(name).result
        assert result is not None
        question = write_message(name, TMessageType.CALL, method(name).arguments())
        answer = read_message(self._serve(iter([question])), result)[2]
        if self.cluster.database not in (getattr(answer, "success", None) or ()):
            raise ViolationError("I13", f"after an attack the server says {answer}")

    def _serve(self, pieces: Iterator[bytes]) -> bytes:
        """A connection from its beginning to its end, as a thread of the server has it."""
        cluster = self.cluster
        client = SimulatedSocket(cluster, pieces)
        dispatcher = dispatcher_of(cluster.source.metastore, limits=LIMITS, clock=cluster.clock)
        dispatcher.serve(cast(socket.socket, client), Turns(cluster.clock))
        return client.answers


def _begun() -> bytes:
    """A call of which the server skips what it does not know."""
    buffer = TMemoryBuffer()
    TBinaryProtocol(buffer).writeMessageBegin("get_all_databases", TMessageType.CALL, 0)
    return cast(bytes, buffer.getvalue())


def _field(kind: int, value: bytes) -> bytes:
    return bytes([kind]) + (99).to_bytes(2, "big") + value


def _endless_fields() -> Iterator[bytes]:
    few = _field(TType.BOOL, b"\1") * (_PIECE_BYTES // 4)
    return chain([_begun()], repeat(few))


def _endless_lists() -> Iterator[bytes]:
    """Each of entries of one byte: empty structs."""
    length = _PIECE_BYTES
    structs = _field(TType.LIST, bytes([TType.STRUCT]) + length.to_bytes(4, "big") + b"\0" * length)
    return chain([_begun()], repeat(structs))


def _half_a_message() -> Iterator[bytes]:
    return iter([_begun() + _field(TType.STRING, (1 << 20).to_bytes(4, "big") + b"half")])
