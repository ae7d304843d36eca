"""The directories above a file: who may not pass all of them cannot read it, whatever its mode."""

from __future__ import annotations

from functools import lru_cache
from pathlib import PurePosixPath

from changemanager.filesystem.permissions import Permissions
from changemanager.location import Location

_KNOWN_MAX = 4096
_CLOSED = Permissions(owner="", group="", mode=0)


class DirectoriesAbove:
    """Those of the files of one run, each looked at once. For several threads.

    A directory that is closed after the look counts as open until the run ends.
    """

    def __init__(self) -> None:
        self._look = lru_cache(maxsize=_KNOWN_MAX)(_look)
        self._above = lru_cache(maxsize=_KNOWN_MAX)(self._look_at_all)

    def of(self, file: Location) -> frozenset[Permissions]:
        """Owner, group and mode of each directory above a file that is there, up to the root; the
        file itself need not be. Empty where a file system has none. Raises OSError."""
        return self._above(file.parent)

    def _look_at_all(self, lowest: Location) -> frozenset[Permissions]:
        # Links are followed: who may not pass one may still go the way that it leads.
        real = PurePosixPath(lowest.volume.real_path(lowest.path))
        levels = map(str, (real, *real.parents))
        seen = {self._look(Location(level, level, lowest.volume)) for level in levels}
        return frozenset(known for known in seen if known is not None)


def _look(directory: Location) -> Permissions | None:
    """None for a directory that is gone, as that of an archived file mostly is."""
    try:
        return directory.volume.permissions(directory.path)
    except FileNotFoundError:
        return None
    except PermissionError:
        return _CLOSED
