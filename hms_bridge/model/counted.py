"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 file``, ``2 files``; ``many`` where an s is not enough."""
    return f"{number} {one if number == 1 else many or one + 's'}"
