"""Whether an archive can be one: where it is named, a directory is, or can be made."""

from __future__ import annotations

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location
from hms_bridge.errors import ReplError


def require_directory(archive: Location) -> None:
    """Raises ReplError if a file is in the archive's place, or above it.

    Nothing can be archived there, nor was: a cleaner keeps what it should archive, and a load
    misses what is gone. Links are followed. Where there are no directories, a name hinders nothing.
    """
    if not archive.volume.capabilities.has_directories:
        return
    place = archive
    while (kind := _kind(place)) is None and place.parent != place:
        place = place.parent
    if kind in {FileKind.FILE, FileKind.OTHER}:
        where = "is" if place == archive else f"lies below {place.uri}, which is"
        raise ReplError(
            f"the archive {archive.uri} (hive.repl.cmrootdir) {where} a file, no directory, so "
            "nothing can be archived in it; set hive.repl.cmrootdir to the directory that the "
            "metastore of the source uses, or move the file away. Nothing was changed"
        )


def _kind(place: Location) -> FileKind | None:
    try:
        status = place.volume.status(place.volume.real_path(place.path))
    except NotADirectoryError:
        return None  # what is above says more
    return None if status is None else status.kind
