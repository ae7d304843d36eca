"""What may go wrong with connections that one thread reads: they end, or go on, each for itself."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from thrift.Thrift import TApplicationException, TMessageType

from hms_bridge.config.settings import ServerSettings
from hms_bridge.gathering import leave_gathering
from hms_bridge.server import crowd as crowd_of_server
from hms_bridge.server.crowd import STREAK
from tests.support.crowd import wait_until
from tests.support.guests import (
    CROWD,
    GET_DATABASE,
    OWN,
    Served,
    crowd_threads,
    heartbeat,
)
from tests.support.raw_thrift import RawClient
from tests.support.simulated_clock import SimulatedClock


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    with made.server:
        yield made


def test_what_is_no_message_ends_its_connection_only(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with served.guest() as other, caplog.at_level(logging.WARNING):
        answer = b"\x80\x01\x00\x02" + heartbeat()[4:]
        for broken in (b"GET / HTTP/1.1\r\n\r\n", heartbeat()[:-20] + b"\xff" * 40, answer):
            with served.guest() as client:
                client.send(broken)
                client.socket.settimeout(10)
                while client.socket.recv(1000):
                    pass
            assert served.beat(other) == CROWD
        assert caplog.text.count("connection closed: ") == 3
        assert "use a thrift:// address there" in caplog.text
        assert re.search(r"connection closed: 127\.0\.0\.1:\d+: this is thrift's", caplog.text)
        assert "a message of kind 2" in caplog.text
        wait_until(lambda: len(served.server._places.all) == 1)


def test_who_is_idle_in_the_crowd_makes_room() -> None:
    clock = SimulatedClock()
    limits = ServerSettings(connections_max=2, idle_timeout_ms=60_000)
    served = Served(limits, clock)
    with served.server, served.guest() as idle, served.guest() as busy:
        clock.advance_ms(40_000)
        with RawClient(served.server.port) as too_early:
            assert "2 connections are open" in too_early.refusal()
        assert served.beat(busy) == CROWD
        clock.advance_ms(30_000)
        with served.guest():
            assert idle.is_closed()
            assert served.beat(busy) == CROWD


def test_a_call_of_a_guest_is_no_idle_time() -> None:
    clock = SimulatedClock()
    served = Served(ServerSettings(connections_max=1, idle_timeout_ms=60_000), clock)
    with served.server, served.guest() as guest:
        held = served.held(guest)
        clock.advance_ms(3_600_000)
        with RawClient(served.server.port) as second:
            assert "1 connections are open" in second.refusal()
        held.go_on()
        guest.answer()
        clock.advance_ms(59_000)
        with RawClient(served.server.port) as third:
            assert "1 connections are open" in third.refusal()
        assert served.beat(guest) == CROWD


def _counts_of_guests(served: Served) -> Iterator[int]:
    """For as long as one would stay there at most."""
    assert served.server._crowd is not None
    deadline = time.monotonic() + 2 * crowd_of_server.PATIENCE_SECONDS
    while time.monotonic() < deadline:
        yield len(served.server._crowd._guests)
        time.sleep(0.002)


def test_a_crowd_that_is_held_up_lets_go_who_waits_for_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1.5 * crowd_of_server.PATIENCE_SECONDS <= 3, "as the page of safety says"
    monkeypatch.setattr(crowd_of_server, "PATIENCE_SECONDS", 0.2)
    with served.guest() as busy, served.guest() as idle, served.guest() as sending:
        held = served.held(busy)
        sending.send(heartbeat())
        assert sending.answer()[1] == TMessageType.REPLY
        assert served.threads[-1] == OWN
        assert [served.beat(idle) for _ in range(2 * STREAK)] == [OWN] * 2 * STREAK
        idle.send(GET_DATABASE)
        assert idle.answer()[2].success.name == "db"
        with RawClient(served.server.port) as new:
            for _ in range(2):
                assert [served.beat(new) for _ in range(STREAK)] == [OWN] * STREAK
                assert max(_counts_of_guests(served)) == 1, "nobody comes to one that is held up"
            held.go_on()
            assert busy.answer()[1] == TMessageType.REPLY
            for client in (busy, idle, sending, new):
                wait_until(lambda client=client: served.beat(client) == CROWD)  # type: ignore[misc]


def test_without_epoll_each_keeps_to_its_own_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd_of_server, "_HAS_EPOLL", False)
    before = crowd_threads()
    with RawClient(served.server.port) as client:
        assert [served.beat(client) for _ in range(2 * STREAK)] == [OWN] * (2 * STREAK)
    assert crowd_threads() == before


def test_who_is_idle_for_long_stays(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crowd's thread waits for its clients, as it should; nothing holds it up."""
    monkeypatch.setattr(crowd_of_server, "PATIENCE_SECONDS", 0.5)
    with served.guest() as client:
        time.sleep(1.5)
        assert served.beat(client) == CROWD


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
        assert served.server._places.all == {}
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
        wait_until(lambda: len(served.server._places.all) == 1)
        assert served.beat(other) == CROWD


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


def test_an_idle_one_that_was_given_up_is_not_served_any_more() -> None:
    """Though its message came before that: nobody would hear the answer."""
    clock = SimulatedClock()
    served = Served(ServerSettings(connections_max=2, idle_timeout_ms=60_000), clock)
    made: list[int] = []
    served.before[8] = lambda: made.append(8)
    with served.server, served.guest() as busy, served.guest() as idle:
        held = served.held(busy)
        clock.advance_ms(61_000)
        idle.send(heartbeat(8))
        known = set(served.server._places.all)
        with RawClient(served.server.port):
            wait_until(lambda: len(set(served.server._places.all) - known) == 1)
            held.go_on()
            busy.answer()
            assert idle.is_closed()
    assert made == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_the_crowds_thread_dies_each_goes_on_with_its_own(served: Served) -> None:
    class DeathError(BaseException):
        pass

    def dies() -> None:
        served.before.clear()
        raise DeathError

    served.before[7] = dies
    with served.guest() as client, served.guest() as other:
        client.send(heartbeat(7))
        assert client.is_closed(), "what became of its call nobody knows: it is not made again"
        wait_until(lambda: not crowd_threads())
        assert [served.beat(other) for _ in range(2 * STREAK)] == [OWN] * 2 * STREAK
