"""Whether an archive can be where it is named: a directory is there, or can be made.

One rule for whoever writes there, purges, dumps or loads. Links are followed: an administrator may
have moved the archive to another disk. Where there are no directories, a name hinders nothing.
"""

from __future__ import annotations

import logging

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location

_MODE = 0o770
"""Of a cmroot that is made here: ReplChangeManager.createCmRoot and setCmRootPermissions."""

_LOG = logging.getLogger(__name__)


def make_archive(archive: Location) -> None:
    """Make the cmroot, for its owner and group alone; one that is there stays as it is, as with
    Hive. Raises OSError."""
    archive.volume.make_directory(archive.path, _MODE)


def warn_if_open(archive: Location) -> None:
    """A line if all others may look into a cmroot: what is moved there leaves the directory of its
    table, which may have kept them out. Raises OSError."""
    permissions = archive.volume.permissions(archive.path)
    if permissions is not None and not permissions.keeps_others_out:
        _LOG.warning(
            "%s: all users may enter the archive (mode %04o), and replaced files of every table "
            "come there; close it: chmod 770 %s (on HDFS: hdfs dfs -chmod 770 %s)",
            archive.uri,
            permissions.mode,
            archive.path,
            archive.path,
        )


def hindrance(archive: Location) -> str | None:
    """What keeps a place from being a directory, now or later, to be read after its name; None if
    nothing does. Raises OSError if nobody can look there."""
    if not archive.volume.capabilities.has_directories:
        return None
    place = archive
    while (kind := _kind(place)) is None and not _is_link(place) and place.parent != place:
        place = place.parent
    if kind is FileKind.DIRECTORY:
        return None
    where = "is" if place == archive else f"lies below {place.uri}, which is"
    if kind is not None:
        return f"{where} a file, no directory"
    return f"{where} a link that leads nowhere" if _is_link(place) else None


def _kind(place: Location) -> FileKind | None:
    """Of what is there, or where its links lead; None if nothing is."""
    try:
        status = place.volume.status(place.volume.real_path(place.path))
    except NotADirectoryError:
        return None  # what is above says more
    return None if status is None else status.kind


def _is_link(place: Location) -> bool:
    try:
        return place.volume.is_link(place.path)
    except NotADirectoryError:
        return False
