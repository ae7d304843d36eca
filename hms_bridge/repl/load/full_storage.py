"""A storage that is full: which one, what is free there, and what a load needs yet.

The operating system says no more than that no space is left, of a path that it does not name.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from changemanager.filesystem.space import Space, local_space
from changemanager.location import Location

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class StorageFullError(OSError):
    """No space is left for what goes to a place, or its owner's quota is used up."""

    def __init__(self, cause: OSError, place: Location) -> None:
        super().__init__(cause.errno, cause.strerror, place.uri)
        self.place = place


class CopiedBytes:
    """How many bytes of a load are there, counted by several threads, each of which passes on what
    it adds; a negative number where a copy begins again."""

    def __init__(self, on_copied: Callable[[int], None]) -> None:
        self._on_copied = on_copied
        self._lock = threading.Lock()
        self.total = 0

    def add(self, size_bytes: int) -> None:
        """Some more, or less."""
        with self._lock:
            self.total += size_bytes
        self._on_copied(size_bytes)


@contextmanager
def naming_full_storage(place: Location) -> Iterator[None]:
    """Raises StorageFullError where no space is left for what is written to a place."""
    try:
        yield
    except StorageFullError:
        raise
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StorageFullError(error, place) from error


def full_text(error: StorageFullError, needed_bytes: int | None) -> str:
    """What is full, and what a load that ended there needs yet; None: nobody knows."""
    place = error.place
    space = local_space(place.path) if place.uri.startswith(("file:", "/")) else None
    needed = "" if needed_bytes is None else f"; this load needs {needed_bytes:,} bytes more"
    return f"{place.uri} cannot be written, {_why(error, space)}{needed}"


def _why(error: StorageFullError, space: Space | None) -> str:
    if space is None and error.errno == errno.EDQUOT:
        return f"as a quota there is used up ({error.strerror})"
    if space is None:
        return f"as its file system is full ({error.strerror})"
    free = f"{space.free_bytes:,} of {space.size_bytes:,} bytes are free"
    if error.errno == errno.EDQUOT:
        what = "its owner's quota is used up"
    elif space.free_files == 0:
        what = "there is no inode left, so small files are to go,"
    else:
        what = "there is no space left"
    return f"as {what} in {space.device} at {space.mount} ({free})"
