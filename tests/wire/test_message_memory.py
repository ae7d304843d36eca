"""The memory that messages of all clients share."""

from __future__ import annotations

from functools import partial

import pytest
from thrift.protocol.TProtocol import TProtocolException

from hms_bridge.wire.message_memory import MessageMemory


def test_of_two_that_grow_together_one_is_refused() -> None:
    """Byte by byte in turn: the one that is refused makes room for the other at once."""
    memory = MessageMemory(1_000)
    memory.hold("one", 500)
    memory.hold("other", 500)
    with pytest.raises(TProtocolException, match="more than 1000 bytes of memory together"):
        memory.hold("other", 600)
    memory.hold("one", 1_000)
    memory.release("other")
    with pytest.raises(TProtocolException):
        memory.hold("third", 1)
    memory.release("one")
    memory.hold("third", 1_000)


def test_a_holder_counts_once() -> None:
    memory = MessageMemory(1_000)
    for size_bytes in range(100, 1_001, 100):
        memory.hold("one", size_bytes)


def test_who_is_idle_makes_room_and_nobody_else() -> None:
    """The one that was heard of first goes first, and no more than have to."""
    memory = MessageMemory(1_000)
    ended: list[str] = []

    def end(name: str, *, is_idle: bool) -> bool:
        ended.extend([name] * is_idle)
        return is_idle

    for name, is_idle in (("busy", False), ("first", True), ("second", True)):
        memory.hold(name, 300, partial(end, name, is_idle=is_idle))
    memory.hold("first", 400, partial(end, "first", is_idle=True))
    memory.hold("next", 300)
    assert ended == ["second"]
    with pytest.raises(TProtocolException):
        memory.hold("too long", 800)
    assert ended == ["second", "first"]
