"""Connections with short calls only are read by one thread, and lose nothing by it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from thrift.Thrift import TMessageType

from hms_bridge.config.settings import ServerSettings
from hms_bridge.gathering import do_in_gathering
from hms_bridge.server import crowd as crowd_of_server
from hms_bridge.server.crowd import STREAK
from tests.support.crowd import wait_until
from tests.support.guests import (
    CROWD,
    GET_DATABASE,
    OWN,
    Served,
    heartbeat,
    opened,
    opening,
)
from tests.support.raw_thrift import RawClient

SOON_SECONDS = 10.0
"""Less than after which a message is given up that does not move on."""
MANY = 700_000
"""Ids that have no room between server and client."""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is held up stays so, on however busy a machine."""
    monkeypatch.setattr(crowd_of_server, "PATIENCE_SECONDS", 60.0)


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    with made.server:
        yield made


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
            streak = [served.beat(client) for _ in range(STREAK)]
            assert streak == [OWN] * (STREAK - 1) + [CROWD], "it was one of its own"


@pytest.mark.parametrize("more", [-1, 0, 1, 4096, 200_000])
def test_messages_about_as_long_as_what_is_read_at_once(served: Served, more: int) -> None:
    user = "u" * (4096 - len(opening(user="")) + more)
    assert len(opening(user=user)) == 4096 + more
    with served.guest() as client, served.guest() as other:
        for _ in range(3):
            client.send(opening(user=user))
            assert len(opened(client)) == 1
            assert served.beat(other) == CROWD
        served.settle(client)
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
    with served.guest() as client, served.guest() as other:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(opening(MANY))
        assert [served.beat(other) for _ in range(10)] == [CROWD] * 10
        ids = _long_answer(client)
        assert (ids[0], ids[-1], len(ids)) == (1, MANY, MANY)
        client.send(opening())
        assert opened(client) == [MANY + 1]
        for _ in range(STREAK - 1):
            assert served.beat(client) == OWN
        client.send(GET_DATABASE)
        assert client.answer()[2].success.name == "db", "nothing is sent twice"


def test_who_took_a_long_answer_has_all_time_for_its_next_call() -> None:
    served = Served(ServerSettings(message_timeout_ms=2000))
    with served.server, served.guest() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(opening(MANY))
        assert len(_long_answer(client)) == MANY
        time.sleep(2.2)
        client.send(opening())
        assert opened(client) == [MANY + 1]


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


def test_who_leaves_is_forgotten(served: Served) -> None:
    with served.guest() as stays:
        with served.guest():
            assert len(served.server._places.all) == 2
        wait_until(lambda: len(served.server._places.all) == 1)
        assert served.beat(stays) == CROWD


def test_who_leaves_while_its_call_is_made_is_forgotten(served: Served) -> None:
    with served.guest() as stays:
        with served.guest() as client:
            held = served.held(client)
        held.go_on()
        wait_until(lambda: len(served.server._places.all) == 1)
        wait_until(lambda: served.beat(stays) == CROWD)


@pytest.mark.parametrize("count", [1, 2])
def test_who_says_no_more_with_its_last_call_is_answered_and_forgotten(
    served: Served, count: int
) -> None:
    """Message and end come at once, of which the kernel tells once."""
    with served.guest() as busy, served.guest() as client:
        held = served.held(busy)
        client.send(heartbeat() * count)
        client.socket.shutdown(socket.SHUT_WR)
        held.go_on()
        for _ in range(count):
            assert client.answer()[1] == TMessageType.REPLY
        assert client.is_closed()
        wait_until(lambda: len(served.server._places.all) == 1)


class _Slow:
    """Waits for company for ever, until there are as many as are expected."""

    size_max = 8

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.batches: list[int] = []

    def take_all(self, works: Sequence[object]) -> None:
        self.batches.append(len(works))

    def seconds_for_company(self, count: int) -> float:
        return 0.0 if count >= self.expected else 10.0


def test_what_comes_while_a_call_of_it_waits_is_answered_after_it(served: Served) -> None:
    slow = _Slow(expected=2)
    served.before[7] = lambda: do_in_gathering(slow, 7)
    with served.guest() as first, served.guest() as second, served.guest() as other:
        first.send(heartbeat(7))
        time.sleep(0.1)
        first.send(opening() * 2)
        for _ in range(5):
            assert served.beat(other) == CROWD
        assert slow.batches == []
        second.send(heartbeat(7))
        assert first.answer()[0] == second.answer()[0] == "heartbeat"
        assert [opened(first), opened(first)] == [[1], [2]]
        assert slow.batches == [2]
        assert served.beat(second) == CROWD


def test_company_is_waited_for_only_so_long(served: Served) -> None:
    slow = _Slow(expected=99)
    slow.seconds_for_company = lambda count: 0.2  # type: ignore[method-assign]
    served.before[7] = lambda: do_in_gathering(slow, 7)
    with served.guest() as first, served.guest() as other:
        before = time.monotonic()
        first.send(heartbeat(7))
        served.beat(other)
        assert first.answer()[0] == "heartbeat"
        assert 0.2 <= time.monotonic() - before < SOON_SECONDS
