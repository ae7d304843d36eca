"""Connections with short calls only are read by one thread, and lose nothing by it."""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from thrift.Thrift import TApplicationException, TMessageType

from hms_bridge.config.settings import ServerSettings
from hms_bridge.gathering import leave_gathering
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.server import crowd as crowd_of_server
from hms_bridge.server.crowd import STREAK
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.wire.structs import hive
from tests.support.crowd import wait_until
from tests.support.fake_metastore import FakeMetastore
from tests.support.raw_thrift import RawClient, call
from tests.support.sample_records import DATABASE
from tests.support.simulated_clock import SimulatedClock

GET_DATABASE = call("get_database", name="db")
CROWD, OWN = "thrift-crowd", "thrift-client"
SOON_SECONDS = 1.5
"""Less than after which whoever is idle leaves a crowd that is held up."""


def heartbeat(txn: int = 1) -> bytes:
    return call("heartbeat", ids=hive.HeartbeatRequest(txnid=txn, lockid=0))


def opening(count: int = 1, user: str = "u") -> bytes:
    return call("open_txns", rqst=hive.OpenTxnRequest(num_txns=count, user=user, hostname="h"))


class Served:
    """A server that notes on which thread each call is made, and numbers what is opened.
    ``before``: what happens in a heartbeat of a transaction with this id."""

    def __init__(self, limits: ServerSettings | None = None, clock: SimulatedClock | None = None):
        self.threads: list[str] = []
        self.before: dict[int, Callable[[], object]] = {}
        self._ids = itertools.count(1)
        self.fake = FakeMetastore(
            heartbeat=self._heartbeat, open_txns=self._open, get_database=self._get
        )
        self.server = MetastoreServer(
            0, self.fake, limits=limits or ServerSettings(), clock=clock  # type: ignore[arg-type]
        )  # fmt: skip

    def _note(self) -> None:
        self.threads.append(threading.current_thread().name)

    def _heartbeat(self, txn: int, _: int) -> None:
        self.before.get(txn, lambda: None)()
        self._note()

    def _open(self, request: OpenTxnsRequest) -> list[int]:
        self._note()
        return list(itertools.islice(self._ids, request.count))

    def _get(self, *_: object) -> object:
        self._note()
        return DATABASE

    @contextmanager
    def guest(self) -> Iterator[RawClient]:
        """A client whose next message is for the crowd's thread."""
        with RawClient(self.server.port) as client:
            self.settle(client)
            yield client

    def settle(self, client: RawClient) -> None:
        """As many calls as it takes."""
        for _ in range(STREAK):
            self.beat(client)
        assert self.beat(client) == CROWD

    def beat(self, client: RawClient, txn: int = 1) -> str:
        """On which thread it was answered."""
        client.send(heartbeat(txn))
        assert client.answer()[1] == TMessageType.REPLY
        return self.threads[-1]


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    with made.server:
        yield made


def opened(client: RawClient) -> list[int]:
    ids: list[int] = client.answer()[2].success.txn_ids
    return ids


def crowd_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(CROWD)]


def test_after_a_streak_it_is_one_thread_and_its_own_at_once_for_any_other_call(
    served: Served,
) -> None:
    with RawClient(served.server.port) as client:
        for _ in range(2):
            assert [served.beat(client) for _ in range(STREAK + 3)] == [OWN] * STREAK + [CROWD] * 3
            client.send(GET_DATABASE)
            assert client.answer()[2].success.name == "db"
            assert served.threads[-1] == OWN


def test_a_streak_is_of_calls_in_a_row(served: Served) -> None:
    with RawClient(served.server.port) as client:
        for _ in range(3):
            assert [served.beat(client) for _ in range(STREAK - 1)] == [OWN] * (STREAK - 1)
            client.send(GET_DATABASE)
            client.answer()


@pytest.mark.parametrize("first", [True, False])
def test_several_messages_of_one_segment_are_answered_in_their_order(
    served: Served, *, first: bool
) -> None:
    """First: those that come before it has joined, which its own thread has read already."""
    for count in (2, 3, STREAK, STREAK + 1, STREAK + 2, 200):
        with RawClient(served.server.port) as client:
            if not first:
                served.settle(client)
            client.send(opening() * count)
            ids = [opened(client)[0] for _ in range(count)]
            assert ids == list(range(ids[0], ids[0] + count))
            client.send(GET_DATABASE)
            assert client.answer()[2].success.name == "db"


def test_half_a_message_holds_nobody_up(served: Served) -> None:
    message = heartbeat()
    with served.guest() as client, served.guest() as other:
        for length in range(1, len(message)):
            client.send(message[:length])
            assert served.beat(other) == CROWD
            client.send(message[length:])
            assert client.answer()[1] == TMessageType.REPLY
            wait_until(lambda: served.beat(client) == CROWD)


@pytest.mark.parametrize("more", [-1, 0, 1, 4096, 200_000])
def test_messages_about_as_long_as_what_is_read_at_once(served: Served, more: int) -> None:
    user = "u" * (4096 - len(opening(user="")) + more)
    assert len(opening(user=user)) == 4096 + more
    with served.guest() as client, served.guest() as other:
        for _ in range(3):
            client.send(opening(user=user))
            assert len(opened(client)) == 1
            assert served.beat(other) == CROWD
        client.send(opening(user=user) * 3)
        assert [len(opened(client)) for _ in range(3)] == [1, 1, 1]


def _with_half_a_message(served: Served, client: RawClient) -> None:
    """Joins after a call of whose rest its own thread waited for, for a limited time."""
    for _ in range(STREAK - 1):
        served.beat(client)
    client.send(heartbeat()[:20])
    time.sleep(0.1)
    client.send(heartbeat()[20:])
    client.answer()


def test_what_does_not_fit_of_an_answer_is_sent_when_there_is_room(served: Served) -> None:
    with RawClient(served.server.port) as client, served.guest() as other:
        _with_half_a_message(served, client)
        client.send(opening(2_000_000))
        wait_until(lambda: served.threads.count(CROWD) > 1)
        before = time.monotonic()
        assert [served.beat(other) for _ in range(10)] == [CROWD] * 10
        assert time.monotonic() - before < SOON_SECONDS
        ids = _long_answer(client)
        assert (ids[0], len(ids)) == (1, 2_000_000)
        client.send(opening())
        assert opened(client) == [2_000_001]


def test_who_takes_no_answers_holds_nobody_up(served: Served) -> None:
    """One call after the other, until there is no room for an answer at all."""
    with RawClient(served.server.port) as client, served.guest() as other:
        client.socket.settimeout(60)
        _with_half_a_message(served, client)
        count = 0
        while True:
            known = len(served.threads)
            client.send(opening(10_000))
            count += 1
            before = time.monotonic()
            if not _is_seen(lambda known=known: len(served.threads) > known):  # type: ignore[misc]
                break
            assert served.threads[-1] == CROWD
            assert served.beat(other) == CROWD
            assert time.monotonic() - before < SOON_SECONDS
        assert count > 2
        ids = [one for _ in range(count) for one in _long_answer(client)]
        assert ids == list(range(1, count * 10_000 + 1))


def _is_seen(condition: Callable[[], bool]) -> bool:
    """Within a moment."""
    deadline = time.monotonic() + 0.5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def _long_answer(client: RawClient) -> list[int]:
    """Read at once, not byte by byte: 2 million ids take 8 bytes each."""
    name = b"open_txns"
    head = client._exactly(4 + 4 + len(name) + 4)
    assert name in head
    fields = client._exactly(3 + 3 + 5)  # success, txn_ids, kind and number of the elements
    count = int.from_bytes(fields[-4:])
    raw = bytearray()
    while len(raw) < 8 * count + 2:
        raw += client.socket.recv(8 * count + 2 - len(raw))
    return [int.from_bytes(raw[at : at + 8]) for at in range(0, 8 * count, 8)]


def test_thousands_that_are_not_read_are_answered_at_last(served: Served) -> None:
    count, ids_of_each = 3000, 300
    with served.guest() as client, served.guest() as other:
        client.socket.settimeout(60)
        sender = threading.Thread(target=client.send, args=(opening(ids_of_each) * count,))
        sender.start()
        for _ in range(20):
            served.beat(other)
        wait_until(lambda: served.beat(other) == CROWD)
        ids = [one for _ in range(count) for one in _long_answer(client)]
        sender.join(60)
        assert ids == list(range(1, count * ids_of_each + 1))


def test_where_no_thread_can_be_started_each_keeps_its_own(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_of_server, "STREAK_OF_LONERS", 6)
    really = threading.Thread.start
    refused: list[str] = []

    def start(thread: threading.Thread) -> None:
        if thread.name == CROWD and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        really(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with RawClient(served.server.port) as client:
        assert [served.beat(client) for _ in range(STREAK + 7)] == [OWN] * (STREAK + 6) + [CROWD]
        assert refused == [CROWD]
        assert sorted(crowd_threads()) == [CROWD, f"{CROWD}-watch"]


def test_who_leaves_is_forgotten(served: Served) -> None:
    with served.guest() as stays:
        with served.guest():
            assert len(served.server._connections) == 2
        wait_until(lambda: len(served.server._connections) == 1)
        assert served.beat(stays) == CROWD


def test_who_leaves_while_its_call_is_made_is_forgotten(served: Served) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert go_on.wait(10)

    served.before[7] = waits
    with served.guest() as stays:
        with served.guest() as client:
            client.send(heartbeat(7))
            assert begun.wait(10)
        go_on.set()
        wait_until(lambda: len(served.server._connections) == 1)
        wait_until(lambda: served.beat(stays) == CROWD)


@pytest.mark.parametrize("count", [1, 2])
def test_who_says_no_more_with_its_last_call_is_answered_and_forgotten(
    served: Served, count: int
) -> None:
    """Message and end come at once, of which the kernel tells once."""
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert go_on.wait(10)

    served.before[7] = waits
    with served.guest() as busy, served.guest() as client:
        busy.send(heartbeat(7))
        assert begun.wait(10)
        client.send(heartbeat() * count)
        client.socket.shutdown(socket.SHUT_WR)
        go_on.set()
        for _ in range(count):
            assert client.answer()[1] == TMessageType.REPLY
        assert client.is_closed()
        wait_until(lambda: len(served.server._connections) == 1)


def test_what_is_no_message_ends_its_connection_only(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with served.guest() as other, caplog.at_level(logging.WARNING):
        for broken in (b"GET / HTTP/1.1\r\n\r\n", heartbeat()[:-20] + b"\xff" * 40):
            with served.guest() as client:
                client.send(broken)
                client.socket.settimeout(10)
                while client.socket.recv(1000):
                    pass
            assert served.beat(other) == CROWD
        assert caplog.text.count("connection closed: ") == 2
        assert "use a thrift:// address there" in caplog.text
        wait_until(lambda: len(served.server._connections) == 1)


def test_who_is_idle_in_the_crowd_makes_room() -> None:
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=2, idle_timeout_ms=60_000)
    served = Served(limits, clock)
    with served.server, served.guest() as idle, served.guest() as busy:
        clock.advance_ms(40_000)
        with RawClient(served.server.port) as too_early:
            assert too_early.is_closed()
        assert served.beat(busy) == CROWD
        clock.advance_ms(30_000)
        with served.guest():
            assert idle.is_closed()
            assert served.beat(busy) == CROWD


def test_a_call_of_a_guest_is_no_idle_time() -> None:
    clock = SimulatedClock()
    served = Served(ServerSettings(connections_max=1, idle_timeout_ms=60_000), clock)
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert go_on.wait(10)

    served.before[7] = waits
    with served.server, served.guest() as guest:
        guest.send(heartbeat(7))
        assert begun.wait(10)
        clock.advance_ms(3_600_000)
        with RawClient(served.server.port) as second:
            assert second.is_closed()
        go_on.set()
        guest.answer()
        clock.advance_ms(59_000)
        with RawClient(served.server.port) as third:
            assert third.is_closed()
        assert served.beat(guest) == CROWD


def test_a_crowd_that_is_held_up_lets_go_who_waits_for_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_of_server, "PATIENCE_SECONDS", 0.2)
    begun, go_on = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert go_on.wait(10)

    served.before[7] = waits
    with served.guest() as held, served.guest() as idle, served.guest() as sending:
        held.send(heartbeat(7))
        assert begun.wait(10)
        sending.send(heartbeat())
        assert sending.answer()[1] == TMessageType.REPLY
        assert served.threads[-1] == OWN
        assert [served.beat(idle) for _ in range(2 * STREAK)] == [OWN] * 2 * STREAK
        idle.send(GET_DATABASE)
        assert idle.answer()[2].success.name == "db"
        with RawClient(served.server.port) as new:
            assert [served.beat(new) for _ in range(2 * STREAK)] == [OWN] * 2 * STREAK
            go_on.set()
            assert held.answer()[1] == TMessageType.REPLY
            for client in (held, idle, sending, new):
                wait_until(lambda client=client: served.beat(client) == CROWD)  # type: ignore[misc]


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_server_with_guests_stops_soon(*, is_busy: bool) -> None:
    served = Served()
    begun = threading.Event()

    def takes_a_second() -> None:
        begun.set()
        time.sleep(1)

    served.before[7] = takes_a_second
    served.server.start()
    with ExitStack() as stack:
        guests = [stack.enter_context(served.guest()) for _ in range(3)]
        if is_busy:
            guests[0].send(heartbeat(7))
            assert begun.wait(10)
        before = time.monotonic()
        served.server.stop()
        assert time.monotonic() - before < 4
        wait_until(lambda: not crowd_threads())
        assert served.server._connections == {}
        served.server.stop()


def test_a_call_that_leaves_is_made_once_on_its_own_thread_which_then_keeps_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_of_server, "STREAK_OF_LONERS", 20)
    with served.guest() as client:
        served.before[7] = leave_gathering
        known = len(served.threads)
        assert served.beat(client, 7) == OWN
        assert [served.beat(client) for _ in range(19)] == [OWN] * 19
        assert len(served.threads) == known + 20, "each was made once"
        assert served.beat(client) == CROWD


def test_another_call_does_not_bring_back_sooner_who_left(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_of_server, "STREAK_OF_LONERS", 20)
    served.before[7] = leave_gathering
    with served.guest() as client:
        served.beat(client, 7)
        client.send(GET_DATABASE)
        client.answer()
        assert [served.beat(client) for _ in range(19)] == [OWN] * 19
        assert served.beat(client) == CROWD


def test_a_fault_of_a_call_is_answered_and_nobody_leaves_for_it(served: Served) -> None:
    def fails() -> None:
        raise ZeroDivisionError("a bug")

    served.before[7] = fails
    with served.guest() as client, served.guest() as other:
        client.send(heartbeat(7))
        _, kind, refusal = client.answer()
        assert kind == TMessageType.EXCEPTION
        assert refusal.type == TApplicationException.INTERNAL_ERROR
        assert served.beat(other) == CROWD
        assert served.beat(client) == CROWD


def test_a_watch_that_fails_ends_the_connection_of_its_call_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served()
    fails = threading.Event()

    def watch(_: object) -> None:
        if fails.is_set():
            fails.clear()
            raise ZeroDivisionError("a bug of the watch")

    served.server._dispatcher._watch = watch
    with served.server, served.guest() as other, caplog.at_level(logging.ERROR):
        with served.guest() as client:
            fails.set()
            client.send(heartbeat())
            assert client.is_closed()
        assert "a call failed after it was made" in caplog.text
        wait_until(lambda: len(served.server._connections) == 1)
        assert served.beat(other) == CROWD
