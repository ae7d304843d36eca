"""No client can crash the server, make it allocate wildly, or disturb another client."""

import random
import resource
import selectors
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event
from time import monotonic, sleep

import pytest
from thrift.Thrift import TApplicationException, TMessageType

from hms_bridge.config.settings import ServerSettings
from hms_bridge.model.catalog import Database
from hms_bridge.server.door import Door
from hms_bridge.server.serve import MetastoreServer
from tests.support.fake_metastore import FakeMetastore
from tests.support.golden_wire import recorded_calls
from tests.support.raw_thrift import STOP, RawClient, header, string_field
from tests.support.sample_records import DATABASE
from tests.support.simulated_clock import SimulatedClock

GET_DATABASE = header("get_database") + string_field(1, b"db") + STOP
LIMITS = ServerSettings(
    message_size_bytes_max=1_000_000, container_length_max=1000, message_timeout_ms=500
)


@pytest.fixture(scope="module")
def server() -> Iterator[MetastoreServer]:
    fake = FakeMetastore(get_database=DATABASE)
    with MetastoreServer(0, fake, limits=LIMITS) as server:  # type: ignore[arg-type]
        yield server


@pytest.fixture(autouse=True)
def others_are_served(server: MetastoreServer) -> Iterator[None]:
    with RawClient(server.port) as bystander:
        bystander.send(GET_DATABASE[:10])
        yield
        with RawClient(server.port) as newcomer:
            newcomer.send(GET_DATABASE)
            assert newcomer.answer()[2].success.name == "db"


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _nested(opener: bytes, depth: int, closer: bytes = b"") -> bytes:
    return opener * depth + closer


HOSTILE = {
    "a string of 2 GiB": header("get_database") + string_field(1, b"db", 2**31 - 1),
    "a string of negative length": header("get_database") + string_field(1, b"db", -5),
    "a list of 2^31 names": header("get_table_objects_by_name") + string_field(1, b"d")
    + struct.pack("!bhbi", 15, 2, 11, 2**31 - 1),
    "a list of negative length": header("get_table_objects_by_name")
    + struct.pack("!bhbi", 15, 2, 11, -1),
    "a map of 2^31 entries": header("partition_name_has_valid_characters")
    + struct.pack("!bhbbi", 13, 7, 11, 11, 2**31 - 1),
    "a list of 10^9 empty structs": header("get_table_objects_by_name")
    + struct.pack("!bhbi", 15, 9, 12, 10**9),
    "structs within structs": header("get_database") + _nested(b"\x0c\x00\x09", 200_000),
    "lists within lists": header("get_database") + struct.pack("!bh", 15, 9)
    + _nested(b"\x0f\x00\x00\x00\x01", 150_000),
    "maps within maps": header("get_database") + struct.pack("!bh", 13, 9)
    + _nested(b"\x0d\x0d\x00\x00\x00\x01", 100_000),
    "sets within sets": header("get_database") + struct.pack("!bh", 14, 9)
    + _nested(b"\x0e\x00\x00\x00\x01", 150_000),
    "structs within an unknown method": header("nobody_knows") + _nested(b"\x0c\x00\x01", 200_000),
    "a message without end": header("get_database") + string_field(9, b"x" * 900_000) * 2,
    "an unknown type": header("get_database") + b"\x63\x00\x01",
    "text that is no text": header("get_database") + string_field(1, b"\xff\xfe\xfa") + STOP,
    "a method name of 2 GiB": struct.pack("!II", 0x80010001, 2**31 - 1),
    "a method name of 1 MiB": struct.pack("!II", 0x80010001, 2**20) + b"a" * 2**20,
    "no version": struct.pack("!I", 12) + b"get_database",
    "another version": header("get_database", version=0x80020001) + STOP,
    "an answer instead of a call": header("get_database", version=0x80010002) + STOP,
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a frame": struct.pack("!I", len(GET_DATABASE)) + GET_DATABASE,
    "SASL": b"\x01\x00\x00\x00\x06GSSAPI",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_messages_end_their_connection_only(server: MetastoreServer, data: bytes) -> None:
    before = _peak_kib()
    with RawClient(server.port) as client:
        try:
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.settimeout(10)
            while client.socket.recv(65536):
                pass  # a refusal may come first
        except OSError:
            pass  # the server hung up before everything was sent
    assert _peak_kib() - before < 50_000


def test_a_message_that_cannot_be_read_is_answered_first(server: MetastoreServer) -> None:
    with RawClient(server.port) as client:
        client.send(HOSTILE["an unknown type"])
        name, kind, refusal = client.answer()
        assert (name, kind) == ("get_database", TMessageType.EXCEPTION)
        assert refusal.type == TApplicationException.PROTOCOL_ERROR
        assert "get_database" in refusal.message
        assert client.is_closed()


def test_an_unknown_method_is_refused_and_the_connection_goes_on(server: MetastoreServer) -> None:
    with RawClient(server.port) as client:
        client.send(header("get_indexes", 7) + string_field(1, b"db") + STOP)
        name, _, refusal = client.answer()
        assert name == "get_indexes"
        assert refusal.type == TApplicationException.UNKNOWN_METHOD
        assert refusal.message == "Invalid method name: 'get_indexes'"
        client.send(GET_DATABASE)
        assert client.answer()[2].success.name == "db"


def test_messages_may_come_in_any_pieces(server: MetastoreServer) -> None:
    with RawClient(server.port) as client:
        for byte in GET_DATABASE:
            client.send(bytes([byte]))
        assert client.answer()[2].success.name == "db"
        client.send(GET_DATABASE + GET_DATABASE[:20])
        assert client.answer()[2].success.name == "db"
        client.send(GET_DATABASE[20:])
        assert client.answer()[2].success.name == "db"


def test_a_message_that_stops_in_the_middle_is_given_up(server: MetastoreServer) -> None:
    with RawClient(server.port) as client:
        client.send(GET_DATABASE[:-3])
        assert client.is_closed()


def test_shutdown_ends_the_connection_and_not_the_server(server: MetastoreServer) -> None:
    with RawClient(server.port) as client:
        client.send(header("reinitialize") + STOP + GET_DATABASE)
        assert client.answer()[2].success.name == "db"
        client.send(header("shutdown") + STOP)
        assert client.is_closed()


def test_random_bytes(server: MetastoreServer) -> None:
    rng = random.Random(20240229)
    for _ in range(150):
        with RawClient(server.port) as client:
            data = rng.randbytes(rng.randrange(1, 400))
            if rng.random() < 0.8:
                data = header(rng.choice(["get_table", "lock", "create_table", "x"])) + data
            client.send(data)
            with suppress(OSError):  # it may have hung up already
                client.socket.shutdown(socket.SHUT_WR)


def test_real_requests_with_one_byte_changed(server: MetastoreServer) -> None:
    rng = random.Random(7)
    requests = [call.request for call in recorded_calls() if call.request]
    for request in rng.sample(requests, 150):
        damaged = bytearray(request)
        damaged[rng.randrange(8, len(damaged))] = rng.randrange(256)
        with RawClient(server.port) as client:
            client.send(bytes(damaged))
            with suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)


def test_real_requests_cut_short(server: MetastoreServer) -> None:
    rng = random.Random(11)
    requests = [call.request for call in recorded_calls() if call.request]
    for request in rng.sample(requests, 100):
        with RawClient(server.port) as client:
            client.send(request[: rng.randrange(1, len(request))])


def test_too_many_connections_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeMetastore(get_database=DATABASE)
    limits = ServerSettings(connections_max=2)
    with (
        MetastoreServer(0, fake, limits=limits) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
        RawClient(server.port) as second,
    ):
        for client in (first, second):
            client.send(GET_DATABASE)
            client.answer()
        with RawClient(server.port) as third:
            host, port = third.socket.getsockname()
            assert "see metastore.server.max.threads" in third.refusal()
        assert f"refused {host}:{port}: 2 connections are open" in caplog.text
        first.close()
        second.send(GET_DATABASE)
        assert second.answer()[2].success.name == "db"
        for _ in range(50):
            with RawClient(server.port) as fourth:
                try:
                    fourth.send(GET_DATABASE)
                    fourth.answer()
                except (AssertionError, OSError):
                    continue  # the first one's place is not free yet
                break
        else:
            pytest.fail("a closed connection kept its place")


def test_who_comes_as_the_server_stops_is_refused_for_that_and_for_no_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    next_client = Door.next_client
    server = MetastoreServer(0, FakeMetastore())  # type: ignore[arg-type]

    def stopped_as_one_comes(door: Door) -> tuple[socket.socket, object] | None:
        client = next_client(door)
        server._stopped.set()
        return client

    monkeypatch.setattr(Door, "next_client", stopped_as_one_comes)
    with server:
        with RawClient(server.port) as client:
            host, port = client.socket.getsockname()
            assert client.refusal() == "the server is being stopped"
        assert f"refused {host}:{port}: the server is being stopped" in caplog.text
        assert "max.threads" not in caplog.text


def _structs(*counts: int) -> bytes:
    """Lists of empty structs, which are a byte each."""
    return b"".join(
        struct.pack("!bhbi", 15, 1 + place, 12, count) + STOP * count
        for place, count in enumerate(counts)
    )


def test_a_message_of_too_many_elements_is_refused() -> None:
    """Each costs more than a hundred times its byte; so the size of a message bounds nothing."""
    fake = FakeMetastore(get_database=DATABASE)
    limits = ServerSettings(message_elements_max=50_000)
    with MetastoreServer(0, fake, limits=limits) as server:  # type: ignore[arg-type]
        with RawClient(server.port) as hostile:
            hostile.send(header("add_partitions") + _structs(40_000, 40_000, 40_000) + STOP)
            _, kind, refusal = hostile.answer()
            assert kind == TMessageType.EXCEPTION
            assert "more than 50000 elements; send less at a time" in refusal.message
            assert hostile.is_closed()
        with RawClient(server.port) as client:
            for _ in range(3):  # each message is counted anew
                client.send(header("get_database") + string_field(1, b"db")
                            + _structs(0, 40_000)[8:] + STOP)  # fmt: skip
                assert client.answer()[2].success.name == "db"


def _answered(*clients: RawClient, seconds: float) -> list[RawClient]:
    """Those for whom something arrives first."""
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        return [key.data for key, _ in selector.select(seconds)]


@pytest.mark.parametrize(
    ("long", "limit_bytes"),
    [
        (string_field(1, b"d" * 600_000), 1_000_000),
        (string_field(1, b"db") + _structs(0, 4_000, 70_000)[8:], 12_000_000),
    ],
    ids=["of many bytes", "of many elements"],
)
def test_messages_of_all_clients_have_a_limit_together(long: bytes, limit_bytes: int) -> None:
    """Each within its own limits, those of a thousand connections would take all memory."""
    message = header("get_database") + long + STOP
    begun, rest = message[:-10], message[-10:]
    limits = ServerSettings(messages_memory_bytes_max=limit_bytes)
    fake = FakeMetastore(get_database=DATABASE)
    with (
        MetastoreServer(0, fake, limits=limits) as server,  # type: ignore[arg-type]
        RawClient(server.port) as one,
        RawClient(server.port) as other,
    ):
        one.send(begun)
        other.send(begun)
        late, early = (one, other) if _answered(one, other, seconds=10) == [one] else (other, one)
        _, kind, refusal = late.answer()
        assert kind == TMessageType.EXCEPTION
        assert "messages of all clients would take more than" in refusal.message
        assert late.is_closed()
        with RawClient(server.port) as small:  # is served meanwhile
            small.send(GET_DATABASE)
            assert small.answer()[2].success.name == "db"
        early.send(rest)
        assert early.answer()[2].success.name == "db"
        # An answer is sent before its question's memory counts as free; the next one comes after.
        early.send(GET_DATABASE)
        assert early.answer()[2].success.name == "db"
        with RawClient(server.port) as next_one:
            next_one.send(message)
            assert next_one.answer()[2].success.name == "db"


def test_half_a_message_makes_room_for_a_whole_one() -> None:
    """Whose client stands still would keep the memory of others for ten minutes."""
    message = header("get_database") + string_field(1, b"d" * 600_000) + STOP
    fake, clock = FakeMetastore(get_database=DATABASE), SimulatedClock()
    limits = ServerSettings(messages_memory_bytes_max=1_000_000, idle_timeout_ms=60_000)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as standing,
        RawClient(server.port) as early,
        RawClient(server.port) as late,
    ):
        standing.send(message[:-10])
        sleep(0.3)  # until the server has it
        clock.advance_ms(59_000)
        early.send(message)
        assert "more than 1000000 bytes" in early.answer()[2].message
        clock.advance_ms(1_000)
        late.send(message)
        assert late.answer()[2].success.name == "db"
        assert standing.is_closed()


def test_a_message_that_trickles_is_given_up(server: MetastoreServer) -> None:
    """The limit is of the whole message, not of each byte."""
    began = monotonic()
    with RawClient(server.port) as client, suppress(OSError):
        for byte in header("get_database") + string_field(1, b"x" * 1000):
            client.send(bytes([byte]))
            sleep(0.1)
    assert monotonic() - began < 20


def test_who_is_idle_makes_room_for_who_comes() -> None:
    fake = FakeMetastore(get_database=DATABASE)
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=3, idle_timeout_ms=60_000)

    def ask(client: RawClient) -> None:
        client.send(GET_DATABASE)
        assert client.answer()[2].success.name == "db"
        sleep(0.3)  # until the server is through with it

    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
        RawClient(server.port) as busy,
        RawClient(server.port) as third,
    ):
        for client in (first, busy, third):
            ask(client)
            clock.advance_ms(10_000)
        with RawClient(server.port) as too_early:
            assert "3 connections are open" in too_early.refusal()
        clock.advance_ms(30_000)
        with RawClient(server.port) as fourth:
            ask(fourth)
            assert first.is_closed()
            busy.send(GET_DATABASE[:10])
            sleep(0.3)
            clock.advance_ms(59_000)
            with RawClient(server.port) as fifth:
                ask(fifth)
                assert third.is_closed()
                busy.send(GET_DATABASE[10:])
                assert busy.answer()[2].success.name == "db"
                ask(fourth)


def test_a_server_whose_connections_are_all_idle_serves_whoever_comes() -> None:
    fake = FakeMetastore(get_database=DATABASE)
    limits = ServerSettings(connections_max=20, idle_timeout_ms=0)
    with (
        MetastoreServer(0, fake, limits=limits) as server,  # type: ignore[arg-type]
        ExitStack() as stack,
    ):
        for _ in range(20):
            stack.enter_context(RawClient(server.port))
        sleep(0.5)
        with RawClient(server.port) as client:
            client.send(GET_DATABASE)
            assert client.answer()[2].success.name == "db"


def test_who_sends_half_a_message_makes_room_too() -> None:
    """Else as many clients as there are connections, with a byte each, would lock everyone out."""
    fake = FakeMetastore(get_database=DATABASE)
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=2, idle_timeout_ms=60_000)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
        RawClient(server.port) as second,
    ):
        for client in (first, second):
            client.send(GET_DATABASE)
            assert client.answer()[2].success.name == "db"
        first.send(GET_DATABASE[:1])
        second.send(GET_DATABASE[:30])
        sleep(0.3)
        clock.advance_ms(59_000)
        with RawClient(server.port) as too_early:
            assert "2 connections are open" in too_early.refusal()
        clock.advance_ms(2_000)
        with RawClient(server.port) as third:
            third.send(GET_DATABASE)
            assert third.answer()[2].success.name == "db"


def test_who_does_not_take_its_answer_makes_room_too() -> None:
    fake = FakeMetastore(get_database=replace(DATABASE, description="x" * 20_000_000))
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=1, idle_timeout_ms=60_000)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
    ):
        first.send(GET_DATABASE)
        sleep(1)
        clock.advance_ms(61_000)
        fake.answers["get_database"] = DATABASE
        with RawClient(server.port) as second:
            second.send(GET_DATABASE)
            assert second.answer()[2].success.name == "db"


def test_who_waits_for_us_is_not_cut_off() -> None:
    begun, go_on = Event(), Event()

    def slow(*_: object, **__: object) -> Database:
        begun.set()
        go_on.wait(10)
        return DATABASE

    fake = FakeMetastore(get_database=slow)
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=1, idle_timeout_ms=60_000)
    with (
        MetastoreServer(0, fake, limits=limits, clock=clock) as server,  # type: ignore[arg-type]
        RawClient(server.port) as first,
    ):
        first.send(GET_DATABASE)
        assert begun.wait(10)
        clock.advance_ms(3_600_000)
        with RawClient(server.port) as second:
            assert "1 connections are open" in second.refusal()
        go_on.set()
        assert first.answer()[2].success.name == "db"


LONG = replace(DATABASE, description="x" * 20_000_000)


def test_who_does_not_take_its_answer_is_left_after_a_while() -> None:
    fake = FakeMetastore(get_database=LONG)
    with (
        MetastoreServer(0, fake, limits=LIMITS) as server,  # type: ignore[arg-type]
        RawClient(server.port) as client,
    ):
        client.send(GET_DATABASE)
        sleep(3 * LIMITS.message_timeout_ms / 1000)
        client.socket.settimeout(10)
        taken = 0
        with suppress(ConnectionResetError):
            while piece := client.socket.recv(1_000_000):
                taken += len(piece)
        assert taken < 20_000_000


def test_who_took_a_long_answer_has_all_time_for_its_next_call() -> None:
    fake = FakeMetastore(get_database=LONG)
    limits = replace(LIMITS, message_timeout_ms=1000)
    with (
        MetastoreServer(0, fake, limits=limits) as server,  # type: ignore[arg-type]
        RawClient(server.port) as client,
    ):
        client.send(GET_DATABASE)
        sleep(0.2)
        taken = 0
        while taken < 20_000_000:
            taken += len(client.socket.recv(1_000_000))
        while _answered(client, seconds=0.2):
            assert client.socket.recv(1_000_000)
        fake.answers["get_database"] = DATABASE
        sleep(1.5 * limits.message_timeout_ms / 1000)
        client.send(GET_DATABASE)
        assert client.answer()[2].success.name == "db"
