"""A deletion that was decided earlier removes what was there then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile, Location
from changemanager.manifest import ArchiveIntent, ArchiveIntents, IntentState

_NOT_ENDED = (IntentState.PLANNED, IntentState.ARCHIVED, IntentState.ABANDONED)


def files_as_seen(
    listing: Iterable[ListedFile],
    seen: Iterable[ListedFile],
    is_same: Callable[[ListedFile], bool],
) -> tuple[ListedFile, ...]:
    """The files that are still what they were when they were seen, and all directories.

    ``is_same`` is asked of a file that has another time, and nothing else of another.
    """
    known = {file.path: file for file in seen if file.kind is FileKind.FILE}

    def is_as_seen(found: ListedFile) -> bool:
        before = known.get(found.path)
        if before is None or (before.kind, before.size_bytes) != (found.kind, found.size_bytes):
            return False
        return before == found or is_same(found)

    return tuple(
        found for found in listing if found.kind is FileKind.DIRECTORY or is_as_seen(found)
    )


def archived_before(
    intents: ArchiveIntents, place: Location, seen: Sequence[ListedFile]
) -> Callable[[ListedFile], bool]:
    """Whether somebody has archived a file with the content that it has: an earlier try, or who
    was to remove one of the directories in the place. Where there are links, that gave the file the
    time of its copy."""
    contents = cache(lambda: _named_contents(intents, place, seen))

    def is_archived(file: ListedFile) -> bool:
        current = place.child(file.path)
        checksums = contents().get(file.path, ())
        return any(current.checksum_like(checksum) == checksum for checksum in checksums)

    return is_archived


def _named_contents(
    intents: ArchiveIntents, place: Location, seen: Sequence[ListedFile]
) -> Mapping[str, Collection[str]]:
    """The checksums, by path below the place, of files that rows name that did not come to their
    end."""
    within = {str(above) for file in seen for above in PurePosixPath(file.path).parents} - {"."}
    victims = {place.child(path).uri: path for path in ("", *within)}
    contents: defaultdict[str, set[str]] = defaultdict(set)
    for row in intents.intents(_NOT_ENDED, victims=victims.keys()):
        for file in row.archived_files:
            if file.checksum is not None:
                parts = (victims[row.victim], file.path)
                contents["/".join(part for part in parts if part)].add(file.checksum)
    return contents


def names_only(intent: ArchiveIntent, seen: Sequence[ListedFile] | None) -> bool:
    """Whether a row names nothing but what was seen; everything may go if nothing is said."""
    if seen is None:
        return True
    return {file.path for file in intent.files} <= {file.path for file in seen}
