"""Time as a port; any clock that counts milliseconds since the epoch will do. How spans read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00:00 UTC."""
        ...


def moment_text(milliseconds: int) -> str:
    """``2026-03-01 09:30 UTC``."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def span_text(milliseconds: int) -> str:
    """``1.8 s``, ``2 min 5 s``, ``9 d 23 h``: the two largest units."""
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    left, parts = milliseconds // 1000, list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
