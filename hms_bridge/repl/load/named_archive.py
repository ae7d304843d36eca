"""The archive that a dump names: where files come from that are gone at their source."""

from __future__ import annotations

from contextlib import suppress

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.archive_place import require_directory
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.untrusted import require_allowed_uri


def require_archive(resolve: Resolver, sources: Resolver, reader: DumpReader) -> None:
    """Raises ReplError if the archive that the dump names is a file. ``sources`` resolves what the
    load may read.

    Only where the dump itself lies: another cluster, and a place that the load may not read, is
    looked at no earlier than a file needs it.
    """
    named = reader.metadata.cm_root
    if named is None:
        return
    try:
        require_allowed_uri(named, reader.rules)
        archive = sources(named)
    except (ReplError, ChangeManagerError):
        return  # each file that names it is refused by name
    if resolve(named).volume is resolve(reader.paths.root).volume:
        with suppress(OSError):  # who may not look there may still read every file at its source
            require_directory(archive)
