"""A deletion that was decided earlier removes what was there then; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile
from changemanager.manifest import ArchiveIntent


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


def names_only(intent: ArchiveIntent, seen: Sequence[ListedFile] | None) -> bool:
    """Whether a row names nothing but what was seen; everything may go if nothing is said."""
    if seen is None:
        return True
    return {file.path for file in intent.files} <= {file.path for file in seen}
