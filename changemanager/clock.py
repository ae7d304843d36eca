"""Time as a port; any clock that counts milliseconds since the epoch will do."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""
        ...
