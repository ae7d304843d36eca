"""One port, several doors: no client is lost between them, and the emptier one is first."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from hms_bridge.server.door import Door, Entrance, listen
from hms_bridge.server.peers import Peers


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as found:
        yield found


@pytest.fixture
def peers() -> Peers:
    return Peers(2)


@pytest.fixture
def doors(listener: socket.socket, peers: Peers) -> Iterator[list[Door]]:
    made = [Door(listener.dup(), Entrance(listener, peers, number, 1)) for number in (0, 1)]
    yield made
    for door in made:
        door.release()


def _connect(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname())


def test_who_has_more_lets_the_other_go_first(listener: socket.socket, doors: list[Door]) -> None:
    first, second = doors
    first.note(3)
    second.note(2)
    with ThreadPoolExecutor(2) as pool, _connect(listener):
        crowded = pool.submit(first.next_client)
        time.sleep(0.01)
        emptier = pool.submit(second.next_client)
        try:
            client = emptier.result(10)
        finally:
            first.close()
            second.close()
        assert client is not None
        client[0].close()
        assert crowded.result(10) is None


def test_nobody_is_waited_for_who_does_not_come(listener: socket.socket, doors: list[Door]) -> None:
    """As one that is stopped, or busy."""
    first, second = doors
    first.note(3)
    second.note(0)
    with _connect(listener):
        client = first.next_client()
        assert client is not None
        client[0].close()


def test_nobody_gives_way_to_who_is_not_there(peers: Peers, doors: list[Door]) -> None:
    first, second = doors
    first.note(3)
    second.note(0)
    assert peers.is_another_emptier(0)
    peers.leave(1)
    assert not peers.is_another_emptier(0)


def test_a_door_that_closes_leaves_the_port_to_the_others(
    listener: socket.socket, doors: list[Door]
) -> None:
    first, second = doors
    first.close()
    assert first.next_client() is None
    first.release()
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(_connect(listener))
            client = second.next_client()
            assert client is not None
            stack.enter_context(client[0])
