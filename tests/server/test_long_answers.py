"""Of a long answer the first part is sent while the last is not made yet."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from hms_bridge.model.catalog import Storage
from hms_bridge.model.partition_list import PartitionList, PartitionRow
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.wire.methods import method
from tests.support.fake_metastore import FakeMetastore
from tests.support.raw_thrift import RawClient, call, header

COUNT = 1000
MANY = call("get_partitions", db_name="db", tbl_name="t", max_parts=-1)
STORAGE = Storage()


class _Rows:
    """Partitions, with something that happens before each is made."""

    def __init__(self, before: Callable[[int], None]) -> None:
        self._before = before

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[PartitionRow]:
        for number in range(COUNT):
            self._before(number)
            place = f"file:/{number:0300}"
            yield PartitionRow((f"{number}",), 0, 0, STORAGE, place, {}, 0)


def _serving(before: Callable[[int], None]) -> MetastoreServer:
    fake = FakeMetastore(get_partitions=PartitionList("db", "t", _Rows(before)))
    return MetastoreServer(0, fake)  # type: ignore[arg-type]


def _fails_at(last: int) -> Callable[[int], None]:
    def before(number: int) -> None:
        if number == last:
            raise ZeroDivisionError("a bug")

    return before


def _rest(client: RawClient) -> bytes:
    """All that the server has to say, to a client that says no more."""
    with suppress(OSError):
        client.socket.shutdown(socket.SHUT_WR)
    received = bytearray()
    with suppress(ConnectionResetError):
        while chunk := client.socket.recv(1 << 16):
            received += chunk
    return bytes(received)


def test_the_client_reads_before_the_last_is_made() -> None:
    reads = threading.Event()

    def before(number: int) -> None:
        if number == COUNT - 1:
            assert reads.wait(60)

    with _serving(before) as server, RawClient(server.port) as client:
        client.send(MANY)
        first = client.socket.recv(1)
        reads.set()
        answer = first + _rest(client)
    result = method("get_partitions").result
    assert result is not None
    body = TMemoryBuffer(answer[len(header("get_partitions")) :])
    read = result()
    read.read(TBinaryProtocolAccelerated(body))
    partitions = read.success
    assert [one.values for one in partitions] == [[f"{number}"] for number in range(COUNT)]
    assert {one.sd.location for one in partitions} == {
        f"file:/{number:0300}" for number in range(COUNT)
    }


def test_what_fails_before_is_answered() -> None:
    with _serving(_fails_at(0)) as server, RawClient(server.port) as client:
        client.send(MANY)
        _, kind, refusal = client.answer()
    assert (kind, refusal.type) == (TMessageType.EXCEPTION, TApplicationException.INTERNAL_ERROR)


def test_a_half_answer_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for its rest, and nothing else is taken for that."""
    with _serving(_fails_at(COUNT - 1)) as server:
        with RawClient(server.port) as client, caplog.at_level(logging.ERROR):
            client.send(MANY + MANY)
            assert 0 < _rest(client).count(b"file:/") < COUNT
        assert "could not be made to its end" in caplog.text
        with RawClient(server.port) as other:
            other.send(call("getName"))
            assert other.answer()[1] == TMessageType.REPLY
