"""A file gets a second place, whole or not at all, and never in the place of another file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from changemanager.durable import settle_file
from changemanager.errors import ChangeManagerError, ChecksumMismatchError
from changemanager.filesystem.volume import Placement
from changemanager.location import Location

PART_PREFIX = ".cm-part-"
"""Begins the name of a copy that is not finished; such a file is never the only one."""


def give_new_name(
    source: Location, target: Location, checksum: str, new_token: Callable[[], str]
) -> Placement:
    """Bring a file to another place in the cheapest safe way; the source may or may not be gone.

    One step where the file system has one, else a verified copy. The bytes are on the disk when
    this returns (the directory of the target is not synced). FileExistsError if the target is
    there; ChecksumMismatchError if a copy went wrong.
    """
    volume = source.volume
    if volume is target.volume:
        settle_file(volume, source.path)
        placement = volume.place(source.path, target.path)
        if placement is Placement.COPIED:
            _require_checksum(target, checksum)
        if placement is not Placement.REFUSED:
            return placement
    copy_verified(source, target, checksum, new_token)
    return Placement.COPIED


def copy_verified(
    source: Location, target: Location, checksum: str, new_token: Callable[[], str]
) -> None:
    """Copy through an unfinished file, which gets its name once its bytes are read back and right.

    FileExistsError if the target is there; ChecksumMismatchError if the copy went wrong.
    """
    part = target.parent.child(PART_PREFIX + new_token())
    volume = part.volume
    try:
        volume.write_new(part.path, source.chunks())
        _require_checksum(part, checksum)
        placement = volume.place(part.path, target.path)
    except (OSError, ChangeManagerError):
        with suppress(OSError):
            volume.remove_file(part.path)
        raise
    if placement is not Placement.MOVED:
        volume.remove_file(part.path)


def _require_checksum(written: Location, checksum: str) -> None:
    """The copy that was just written is whole; a damaged one is removed."""
    found = written.checksum_like(checksum)
    if found != checksum:
        written.volume.remove_file(written.path)
        raise ChecksumMismatchError(
            f"{written.uri} does not have the checksum of its source ({found}, not {checksum}); "
            "the copy was removed, the source is in its place: try again",
            path=written.uri,
            expected=checksum,
            found=found,
        )
