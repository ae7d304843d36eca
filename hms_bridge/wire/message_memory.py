"""What the messages of all connections take together, while they arrive and are worked on.

Each message has limits of its own; a thousand connections would take a thousand times as much.
"""

from __future__ import annotations

import threading

from thrift.protocol.TProtocol import TProtocolException

FREE_BYTES = 64 * 1024
"""A message up to here is not counted: most are, and counting takes time."""
ELEMENT_BYTES = 150
"""Of each field and entry once it is an object."""


class MessageMemory:
    """A number of bytes that holders share. Used by many threads at once."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[object, int] = {}
        self._sum = 0
        self._lock = threading.Lock()

    def hold(self, holder: object, size_bytes: int) -> None:
        """From now on the holder has so much. Raises TProtocolException, and leaves it nothing, if
        that is too much: waiting for others, who wait too, might never end. What a refused one
        had is free at once, or two that grow together would both be refused."""
        with self._lock:
            self._sum -= self._held.pop(holder, 0)
            total = self._sum + size_bytes
            if total > self._limit_bytes:
                raise TProtocolException(
                    TProtocolException.SIZE_LIMIT,
                    f"messages of all clients would take more than {self._limit_bytes} bytes of "
                    "memory together (hms.bridge.server.messages.memory); try again, with less at "
                    "a time",
                )
            self._sum = total
            self._held[holder] = size_bytes

    def release(self, holder: object) -> None:
        """The holder has nothing any more."""
        with self._lock:
            self._sum -= self._held.pop(holder, 0)
