"""Directories of removed victims: those that are empty go while nobody lists them, and stay away
after a loss of power."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from changemanager.clock import Clock
from changemanager.durable import settle_names
from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile, Location, list_tree
from changemanager.removal import RemovalWork, SameCheck, fail_changed

QUIET_MS = 3
"""Who begins to read after the question does not list directories before that."""
_ASKED_MAX = 2
"""So often before a victim, where each answer comes later than that."""


def while_quiet(
    works: Sequence[RemovalWork], clock: Clock, require_quiet: SameCheck
) -> Iterator[RemovalWork]:
    """Those whose directories may go at this moment, one after the other; the others have failed.
    It is asked again as soon as the last answer is no longer fresh."""
    asked_ms = -QUIET_MS
    for place, work in enumerate(works):
        if work.error is not None:
            continue
        for _ in range(_ASKED_MAX):
            if 0 <= clock.now_ms() - asked_ms < QUIET_MS:
                break
            asked_ms = clock.now_ms()
            left = [later for later in works[place:] if later.error is None]
            fail_changed([later for later in left if _is_listed(later.place)], require_quiet)
        if work.error is None:
            yield work


def _is_listed(place: Location) -> bool:
    """Whether there is a directory that can be missing."""
    return place.volume.capabilities.has_directories


def remove_directories(
    place: Location, found: Sequence[ListedFile], seen: Sequence[ListedFile] | None
) -> None:
    """Remove directories that must be empty now, the deepest first, then the victim itself;
    with ``seen`` those of them in which nothing is left."""
    volume = place.volume
    if not volume.capabilities.has_directories:
        if seen is None and list_tree(place):
            raise FileExistsError(f"{place.uri} still has files")
        return
    going = {file.path for file in found if file.kind is FileKind.DIRECTORY} | {""}
    if seen is not None:
        going &= {file.path for file in seen if file.kind is FileKind.DIRECTORY} | {""}
        left = [file.path for file in list_tree(place) if file.path not in going]
        going -= _directories_above(left)
    for below in sorted(going - {""}, reverse=True):
        with suppress(FileNotFoundError):
            volume.remove_empty_directory(place.child(below).path)
    if "" in going and place.status() is not None:
        volume.remove_empty_directory(place.path)


def settle_removals(works: Iterable[RemovalWork]) -> None:
    """No loss of power brings back what went: each directory that lost a name, and stands still
    because somebody else has put something there, is on the disk without it."""
    settled: set[str] = set()
    for work in works:
        place = work.place
        within = sorted(_directories_above(work.gone) - {""})
        for directory in (place.parent, place, *map(place.child, within)):
            if directory.uri in settled:
                continue
            with work.failing(), suppress(FileNotFoundError):
                settle_names(place.volume, directory.path)
                settled.add(directory.uri)


def _directories_above(paths: Iterable[str]) -> set[str]:
    """Every directory in which one of the relative paths lies; the empty text is the victim."""
    above: set[str] = set()
    for path in paths:
        levels = path.split("/")[:-1]
        above.update("/".join(levels[:count]) for count in range(len(levels) + 1))
    return above
