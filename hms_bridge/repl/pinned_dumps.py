"""What became of the dumps that pin files of the archive: a dump that was loaded needs none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from changemanager.errors import ChangeManagerError
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver
from changemanager.manifest import ArchivePins, Pin, PinKind
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.pins import pinned_dump


class PinnedDumpState(Enum):
    """What is known of a dump that pins files."""

    WAITING = "waiting"
    """It is there and not loaded, or not finished."""
    LOADED = "loaded"
    GONE = "gone"
    """Its directory is not there, though the one above is: removed, or moved away."""
    UNKNOWN = "unknown"
    """Nobody can look at it now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PinnedDump:
    """One dump that pins files. ``reason`` says why nothing is known, if so."""

    holder: str
    database: str
    directory: str
    state: PinnedDumpState
    reason: str = ""


def pinned_dumps(resolve: Resolver, pins: Sequence[Pin]) -> tuple[PinnedDump, ...]:
    """Look at each dump that pins. Changes nothing, and raises nothing for a dump out of reach."""
    dumps = []
    for pin in pins:
        known = pinned_dump(pin.holder) if pin.kind is PinKind.DUMP else None
        if known is None:
            continue
        database, directory = known
        state, reason = _state_of(resolve, directory)
        dumps.append(
            PinnedDump(
                holder=pin.holder,
                database=database,
                directory=directory,
                state=state,
                reason=reason,
            )
        )
    return tuple(dumps)


def loaded_dumps(resolve: Resolver, manifest: ArchivePins) -> tuple[PinnedDump, ...]:
    """Those that pin files and are loaded."""
    return tuple(
        dump
        for dump in pinned_dumps(resolve, manifest.pins())
        if dump.state is PinnedDumpState.LOADED
    )


def release_loaded_dumps(resolve: Resolver, manifest: ArchivePins) -> tuple[PinnedDump, ...]:
    """Release the pins of loaded dumps; those whose pins went.

    A dump that is gone keeps its pin: it may have been moved to where it will be loaded. The next
    dump of its database releases it, or a person.
    """
    return tuple(
        dump for dump in loaded_dumps(resolve, manifest) if manifest.remove_pin(dump.holder)
    )


def _state_of(resolve: Resolver, directory: str) -> tuple[PinnedDumpState, str]:
    try:
        paths, place = DumpPaths(directory), resolve(directory)
        if is_there(resolve(paths.finished_dump)) and is_there(resolve(paths.finished_load)):
            return PinnedDumpState.LOADED, ""
        if _is_directory(place):
            return PinnedDumpState.WAITING, ""
        if _is_directory(place.parent):
            return PinnedDumpState.GONE, ""
    except (OSError, ChangeManagerError) as error:
        return PinnedDumpState.UNKNOWN, str(error) or type(error).__name__
    return PinnedDumpState.UNKNOWN, f"there is no {place.parent.uri}"


def _is_directory(place: Location) -> bool:
    status = place.status()
    return status is not None and status.kind is FileKind.DIRECTORY
