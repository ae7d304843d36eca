"""Which metastores keep what they need in a cmroot: each says so with a file there.

Pins stand in the database of their metastore, so a purge sees its own only. Where the cmroot shows
of another metastore everything is held for that one, until somebody says that it is not needed.
"""

from __future__ import annotations

from contextlib import suppress

from changemanager.archive_directory import make_archive
from changemanager.location import Location

SHARER_PREFIX = ".cm-metastore-"
"""Begins the name of the empty file that stands for a metastore; its id follows."""

_HOLDER = "metastore:"


def announce(cmroot: Location, store_id: str) -> None:
    """From now on purges of others see that this metastore pins files here. Raises OSError."""
    place = cmroot.child(SHARER_PREFIX + store_id)
    if place.status() is None:
        make_archive(cmroot)
        with suppress(FileExistsError):
            place.volume.write_new(place.path, [])


def holders_of_others(cmroot: Location, store_id: str) -> tuple[str, ...]:
    """Holders of everything in a cmroot: the metastores beside this one."""
    if cmroot.status() is None:
        return ()
    names = (status.name for status in cmroot.volume.children(cmroot.path))
    ids = (name.removeprefix(SHARER_PREFIX) for name in names if name.startswith(SHARER_PREFIX))
    return tuple(sorted(f"{_HOLDER}{sharer}" for sharer in ids if sharer != store_id))
