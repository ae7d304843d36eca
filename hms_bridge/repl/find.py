"""Where the bytes of a dumped file are now: at the source, in its ChangeManager, or nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from changemanager.errors import ChangeManagerError
from changemanager.filesystem.volume import FileKind, FileStatus
from changemanager.location import Location, Resolver
from changemanager.uri import archive_name
from hms_bridge.errors import ReplError
from hms_bridge.repl.untrusted import DumpedFile


class FilePlace(Enum):
    """Where a dumped file was found."""

    SOURCE = "at source"
    ARCHIVE = "in archive"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    """A dumped file and where its bytes are. ``location`` is None if they are nowhere.

    ``archived_at_ms`` is the clock of the archive's retention. ``reason``: why it is missing.
    """

    file: DumpedFile
    place: FilePlace
    location: Location | None = None
    size_bytes: int = 0
    archived_at_ms: int | None = None
    reason: str = ""


def find_file(resolve: Resolver, file: DumpedFile, *, is_quick: bool = False) -> FoundFile:
    """Look for a file: the source counts only with the checksum of the dump, then the archive.

    ``is_quick`` trusts names instead of reading bytes. A file without checksum is only looked for
    at its source. Raises ReplError if a file system cannot be asked.
    """
    try:
        return _find(resolve, file, is_quick)
    except (OSError, ChangeManagerError) as error:
        raise ReplError(
            f"cannot look for {file.uri}: {error}; check that both clusters can be reached"
        ) from error


def _find(resolve: Resolver, file: DumpedFile, is_quick: bool) -> FoundFile:
    source = resolve(file.uri)
    status = source.status()
    reason = "not at its source"
    if status is not None and status.kind is FileKind.FILE:
        if file.checksum is None or is_quick or _is_same(source, file.checksum):
            return _found(file, FilePlace.SOURCE, source, status)
        reason = "replaced by another file at its source"
    if file.checksum is None or file.cmroot is None:
        return FoundFile(
            file=file, place=FilePlace.MISSING, reason=f"{reason}, and the dump names no archive"
        )
    archived = resolve(file.cmroot).child(archive_name(file.name, file.checksum))
    status = archived.status()
    if status is None or status.kind is not FileKind.FILE:
        why = f"{reason}, and not in the archive (purged, or never archived)"
        return FoundFile(file=file, place=FilePlace.MISSING, reason=why)
    if not is_quick and not _is_same(archived, file.checksum):
        why = f"{reason}, and the archived file has other bytes"
        return FoundFile(file=file, place=FilePlace.MISSING, reason=why)
    return _found(file, FilePlace.ARCHIVE, archived, status)


def _found(file: DumpedFile, place: FilePlace, location: Location, status: FileStatus) -> FoundFile:
    return FoundFile(
        file=file,
        place=place,
        location=location,
        size_bytes=status.size_bytes,
        archived_at_ms=status.mtime_ms if place is FilePlace.ARCHIVE else None,
    )


def _is_same(location: Location, checksum: str) -> bool:
    try:
        return location.checksum_like(checksum) == checksum
    except FileNotFoundError:
        return False
