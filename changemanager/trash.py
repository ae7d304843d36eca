"""What a purge moves to Hadoop's trash instead of deleting it, and takes out of there in time.

What was archived by a MOVE without PURGE goes there (docs/hive/replication.md §4), so that a person
can take it out again. The trash is everybody's: only files with names of the archive are touched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from changemanager.archive import ChangeManager
from changemanager.directories_above import DirectoriesAbove
from changemanager.filesystem.volume import FileKind
from changemanager.journal import log_deed
from changemanager.location import Location
from changemanager.plausible_time import TimeJudgement
from changemanager.retention import is_expired
from changemanager.transfer import give_new_name
from changemanager.uri import parse_archive_name

_LOG = logging.getLogger(__name__)


def trash_place(archive: ChangeManager) -> Location | None:
    """As Hadoop's trash: the cmroot's own path below the trash directory; None without a trash."""
    trash = archive.trash
    return None if trash is None else trash.child(archive.cmroot.path.strip("/"))


def move_to_trash(
    aside: Location, target: Location, new_token: Callable[[], str], above: DirectoriesAbove
) -> None:
    """Give a file that was moved aside its place in the trash.

    Raises FileExistsError if other content is there, and leaves both where they are.
    """
    target.volume.make_directory(target.parent.path)
    checksum = aside.checksum()
    if target.status() is not None:
        if target.checksum_like(checksum) != checksum:
            raise FileExistsError(f"{target.uri} is there with other content; move it away")
        # Of an earlier drop, whose time ends earlier.
        target.volume.remove_file(target.path)
    give_new_name(aside, target, checksum, new_token, above.of(aside))
    if aside.status() is not None:
        aside.volume.remove_file(aside.path)


def empty_trash(archive: ChangeManager, time: TimeJudgement) -> tuple[str, ...]:
    """Delete what a purge moved there and nobody took out again in time; its names."""
    place, config = trash_place(archive), archive.config
    if place is None or place.status() is None:
        return ()
    retain_ms = config.retain_ms + config.trash_retain_ms
    gone = []
    for status in place.volume.children(place.path):
        # It is the trash of Hadoop: what people moved there is not ours to delete.
        is_ours = status.kind is FileKind.FILE and parse_archive_name(status.name) is not None
        if not is_ours or status.mtime_ms is None:
            continue
        if is_expired(status.mtime_ms, time, retain_ms):
            with suppress(FileNotFoundError):
                place.volume.remove_file(place.child(status.name).path)
            gone.append(status.name)
            log_deed(_LOG, "left the trash", name=status.name, trash=place.uri)
    return tuple(gone)
