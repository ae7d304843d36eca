"""The archive that a dump names for its files: in full, and where the files are."""

from __future__ import annotations

from changemanager.location import Location, Resolver
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database


def named_archive(
    resolve: Resolver, cm_root: str | None, database: Database, *, is_elsewhere_allowed: bool
) -> str | None:
    """The archive's full URI; None without one.

    A path without file system would be one of the reader's default file system: a load there finds
    nothing and may not even say so. Raises ReplError for an archive on another file system than the
    database, which is mostly another cluster's, unless that is allowed.
    """
    if cm_root is None:
        return None
    archive = resolve(cm_root)
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


def absent_archive(archive: Location) -> str | None:
    """What to tell before a dump names an archive that is not there; None if it is.

    On a cluster a metastore makes it at its start, so that a wrong name is likely; here it appears
    with the first archived file.
    """
    is_local = archive.uri.startswith("file:")
    is_expected = archive.volume.capabilities.has_directories and not is_local
    if not is_expected or archive.status() is not None:
        return None
    return (
        f"note: the archive {archive.uri} (hive.repl.cmrootdir) is not there. A load finds what "
        "was replaced since then only if the metastore of the source archives into that directory"
    )


def _hint(archive: str) -> str:
    """What mostly is forgotten where an archive turns out to be on this machine."""
    is_local = archive.startswith("file:")
    return " (a path without hdfs:// is of this machine if HADOOP_CONF_DIR is not set)" * is_local
