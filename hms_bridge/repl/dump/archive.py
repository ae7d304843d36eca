"""The archive that a dump names for its files: in full, and where the files are."""

from __future__ import annotations

from changemanager.location import Location, Resolver, is_below
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.format.archive_place import require_directory


def named_archive(
    resolve: Resolver, cm_root: str | None, database: Database, *, is_elsewhere_allowed: bool
) -> str | None:
    """The archive's full URI; None without one.

    A path without file system would be one of the reader's default file system: a load there finds
    nothing and may not even say so. Raises ReplError for an archive that is not there or no
    directory, and for one on another file system than the database, which is mostly another
    cluster's, unless that is allowed.
    """
    if cm_root is None:
        return None
    archive = resolve(cm_root)
    require_directory(archive)
    _require_there(archive)
    location = database.managed_location or database.location
    if is_elsewhere_allowed or not location:
        return archive.uri
    home = resolve(location)
    if home.volume is not archive.volume:
        raise ReplError(
            f"the archive {archive.uri} (hive.repl.cmrootdir) is on another file system than "
            f"{home.uri} of database {database.name}{_hint(archive.uri)}; set it to the "
            "archive of that database's own metastore, or hms.bridge.cm.other.file.system to "
            "true if it is meant"
        )
    return archive.uri


def require_dumps_beside(resolve: Resolver, root: str, archive: str) -> None:
    """Raises ReplError where dumps would lie in the archive, whose purge looks at each file."""
    if is_below(resolve(root).uri, archive):
        raise ReplError(
            f"dumps below {root} would lie in the archive {archive} (hive.repl.cmrootdir), which a "
            "purge goes through; set hive.repl.rootdir to a directory beside it"
        )


def _require_there(archive: Location) -> None:
    """A wrong name would only show when a load misses a file. On a cluster every metastore makes
    its archive at its start; on local disks and object stores it appears with its first file."""
    is_local = archive.uri.startswith("file:")
    is_expected = archive.volume.capabilities.has_directories and not is_local
    if is_expected and archive.status() is None:
        raise ReplError(
            f"the archive {archive.uri} (hive.repl.cmrootdir) is not there, and no load would find "
            "in it what was replaced; name the one that the metastore of the source uses (each "
            "makes its own when it starts), or set hive.repl.cm.enabled to false if it has none"
        )


def _hint(archive: str) -> str:
    """What mostly is forgotten where an archive turns out to be on this machine."""
    is_local = archive.startswith("file:")
    return " (a path without hdfs:// is of this machine if HADOOP_CONF_DIR is not set)" * is_local
