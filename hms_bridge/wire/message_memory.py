"""What the messages of all connections take together, while they arrive and are worked on.

Each message has limits of its own; a thousand connections would take a thousand times as much.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from thrift.protocol.TProtocol import TProtocolException

FREE_BYTES = 64 * 1024
"""A message up to here is not counted: most are, and counting takes time."""
ELEMENT_BYTES = 150
"""Of each field and entry once it is an object."""


def never() -> bool:
    """Of a holder that nobody gives up."""
    return False


class MessageMemory:
    """A number of bytes that holders share. Used by many threads at once."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[object, tuple[int, Callable[[], bool]]] = {}
        self._sum = 0
        self._lock = threading.Lock()

    def hold(
        self, holder: object, size_bytes: int, end_if_idle: Callable[[], bool] = never
    ) -> None:
        """From now on the holder has so much. ``end_if_idle`` gives it up, if nothing was heard of
        it for long; whether it did. Such ones make room, the first that came first.

        Raises TProtocolException, and leaves it nothing, if it is too much all the same: waiting
        for others, who wait too, might never end. What a refused one had is free at once, or two
        that grow together would both be refused."""
        with self._lock:
            self._release(holder)
            for other, (_, end_other) in tuple(self._held.items()):
                if self._sum + size_bytes <= self._limit_bytes:
                    break
                if end_other():
                    self._release(other)
            if self._sum + size_bytes > self._limit_bytes:
                raise TProtocolException(
                    TProtocolException.SIZE_LIMIT,
                    f"messages of all clients would take more than {self._limit_bytes} bytes of "
                    "memory together (hms.bridge.server.messages.memory); try again, with less at "
                    "a time",
                )
            self._sum += size_bytes
            self._held[holder] = (size_bytes, end_if_idle)

    def release(self, holder: object) -> None:
        """The holder has nothing any more."""
        with self._lock:
            self._release(holder)

    def _release(self, holder: object) -> None:
        self._sum -= self._held.pop(holder, (0, never))[0]
