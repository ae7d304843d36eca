"""Of large files only a few are copied at once where that takes the processor.

Small files mostly wait, so many of them go side by side. Between directories of one machine a large
one waits for nothing: more of them than the processor has hands for take turns at it, piece by
piece, and read and write the disk here and there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from changemanager.filesystem.volume import Durability
from changemanager.location import Location

LARGE_BYTES = 16 << 20
_FOR_EACH_CORE = 2
"""One reads or writes while another one is summed."""


class LargeFiles:
    """Gives copies their turns. ``count``: how many large files at once."""

    def __init__(self, count: int = _FOR_EACH_CORE * (os.cpu_count() or 1)) -> None:
        self._places = threading.Semaphore(count)

    @contextmanager
    def turn(self, size_bytes: int, target: Location) -> Iterator[None]:
        """The block copies a file of that size to the target. On file systems over a network copies
        wait for others, and for no turn."""
        is_here = target.volume.capabilities.durability is Durability.BY_SYNC
        if not is_here or size_bytes < LARGE_BYTES:
            yield
            return
        with self._places:
            yield
