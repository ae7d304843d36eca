"""How many connections each of several processes has that accept on one port."""

from __future__ import annotations

from hms_bridge.shared_numbers import shared_numbers

_ABSENT = float("inf")


class Peers:
    """Made before the processes are. ``number``: which of them, from 0 on.

    A connection of Hive's clients lasts for hours, so who takes it matters. The figures may be old
    by a moment; nothing rests on them but who is first at the door.
    """

    def __init__(self, count: int) -> None:
        self._counts = shared_numbers(count)
        for number in range(count):
            self.leave(number)

    def note(self, number: int, connections: int) -> None:
        """A process has so many now."""
        self._counts[number] = float(connections)

    def leave(self, number: int) -> None:
        """A process is not there: nobody gives way to it."""
        self._counts[number] = _ABSENT

    def is_another_emptier(self, number: int) -> bool:
        """Whether one of the others has fewer than this one."""
        return min(self._counts) < self._counts[number]
