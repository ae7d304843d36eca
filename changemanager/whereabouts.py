"""Where a file that a dump names can be read: at its source, in the archive, or nowhere.

As ReplChangeManager.getFileInfo (docs/hive/replication.md §9), with the two checks that it leaves
out: a file in the archive must be there, and its bytes must be what its name says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from changemanager.checksum import is_checksum
from changemanager.config import NAME_LENGTH_MAX
from changemanager.errors import LocationError, OutsideRootsError
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver
from changemanager.uri import EncodedUri, archive_name


class Whereabouts(Enum):
    """Where a file can be read."""

    AT_SOURCE = "at source"
    IN_CM = "in CM"
    MISSING = "missing"
    NOT_LOOKED_FOR = "not looked for"
    """Nowhere that may be looked at; `locate` itself calls such a file missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocatedFile:
    """A file that was looked for. `location` and `size_bytes` are None if it is missing.

    `reason` says why it is not at its source, and why it is missing; empty if it is at its source.
    `is_unreadable`: it is missing, and a place where it may be could not be looked at.
    `outside`: it is missing, and may be at these places, which may not be looked at.
    """

    file: EncodedUri
    whereabouts: Whereabouts
    location: Location | None
    size_bytes: int | None
    reason: str = ""
    is_unreadable: bool = False
    outside: tuple[str, ...] = ()


def _why_not(place: Location, checksum: str | None) -> str | None:
    """Why a place does not have the file; None if it does. Raises OSError."""
    status = place.status()
    if status is None:
        return f"{place.uri} is not there"
    if status.kind is not FileKind.FILE:
        return f"{place.uri} is no file"
    if checksum is not None and place.checksum_like(checksum) != checksum:
        return f"{place.uri} has other content"
    return None


def _missing(
    file: EncodedUri, reason: str, *, is_unreadable: bool, outside: tuple[str, ...]
) -> LocatedFile:
    return LocatedFile(
        file=file, whereabouts=Whereabouts.MISSING, location=None, size_bytes=None, reason=reason,
        is_unreadable=is_unreadable, outside=outside,
    )  # fmt: skip


def locate(
    file: EncodedUri,
    resolve: Resolver,
    *,
    name_length_max: int = NAME_LENGTH_MAX,
    is_content_checked: bool = True,
) -> LocatedFile:
    """Look for one file of a dump; nothing is changed, nothing is raised for a file that is gone.

    Without a checksum only the source is tried, and only for being there. `is_content_checked`
    False takes a file of the right name for the right one: fast, for a first look.
    """
    checksum = file.checksum
    if checksum is not None and not is_checksum(checksum):
        reason = f"{checksum!r} is no checksum that can be compared"
        return LocatedFile(
            file=file,
            whereabouts=Whereabouts.MISSING,
            location=None,
            size_bytes=None,
            reason=reason,
        )
    places = [(Whereabouts.AT_SOURCE, file.uri)]
    if checksum is not None and file.cmroot is not None:
        name = archive_name(file.base_name, checksum, name_length_max)
        places.append((Whereabouts.IN_CM, f"{file.cmroot.rstrip('/')}/{name}"))
    reasons: list[str] = []
    outside: list[str] = []
    is_unreadable = False
    for whereabouts, text in places:
        try:
            place = resolve(text)
        except LocationError as error:
            reasons.append(str(error))
            outside += [error.place] if isinstance(error, OutsideRootsError) else []
            continue
        try:
            why_not = _why_not(place, checksum if is_content_checked else None)
        except OSError as error:
            why_not, is_unreadable = f"{place.uri} cannot be read: {error}", True
        status = place.status() if why_not is None else None
        if status is not None:
            return LocatedFile(
                file=file,
                whereabouts=whereabouts,
                location=place,
                size_bytes=status.size_bytes,
                reason="; ".join(reasons),
            )
        reasons.append(why_not or f"{place.uri} vanished")
    return _missing(file, "; ".join(reasons), is_unreadable=is_unreadable, outside=tuple(outside))
