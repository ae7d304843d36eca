"""Numbers in memory that a process shares with those that it forks later."""

from __future__ import annotations

import mmap

_BYTES = 8


def shared_numbers(count: int) -> memoryview[float]:
    """So many numbers, 0 at first: what a process writes there, all others read, and it outlives
    the one that wrote it. Each number has one writer at a time; no lock is held over them, which a
    process that is killed would never give back."""
    return memoryview(mmap.mmap(-1, max(1, count) * _BYTES)).cast("d")
