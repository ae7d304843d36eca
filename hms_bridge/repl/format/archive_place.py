"""Whether the archive of a dump can be one."""

from __future__ import annotations

from changemanager.archive_directory import hindrance
from changemanager.location import Location
from hms_bridge.errors import ReplError


def require_directory(archive: Location) -> None:
    """Raises ReplError if the archive is no directory and cannot become one.

    Nothing can be archived there, nor was: a cleaner keeps what it should archive, and a load
    misses what is gone.
    """
    why = hindrance(archive)
    if why is not None:
        raise ReplError(
            f"the archive {archive.uri} (hive.repl.cmrootdir) {why}, so nothing can be archived in "
            "it; set hive.repl.cmrootdir to the directory that the metastore of the source uses, "
            "or move away what is there. Nothing was changed"
        )
