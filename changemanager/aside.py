"""A file that is being purged first gets a name that only its purge knows.

A purge may stand still at any place, for longer than its claim lasts. Another one then claims and
deletes the file, and a cleaner may archive the same content under the same name again: now the only
copy. So a purge never deletes under a name that others use. It moves the file aside, looks whether
the claim is still its own, and only then deletes, under the name that nobody else touches; else it
puts the file back. Where a move is a copy (object stores) the same holds: content and name belong
together, so what is put back is what was there.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from contextlib import suppress

from changemanager.clock import Clock
from changemanager.filesystem.volume import FileStatus, Placement
from changemanager.journal import log_deed
from changemanager.location import Location
from changemanager.manifest import ArchiveRecords, EntryState

_LOG = logging.getLogger(__name__)

ASIDE_PREFIX = ".cm-gone-"
"""Begins the name of a file that is being purged."""
_DIGEST_LENGTH = 32


def aside_name(name: str, owner: str) -> str:
    """Short, and known by the file's own name: `.cm-gone-<digest of the name>-<owner>`."""
    return f"{ASIDE_PREFIX}{_digest(name)}-{owner}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]


def moved_aside(names: Iterable[str], files: Iterable[str]) -> frozenset[str]:
    """Those of the names whose files are among the files that were moved aside."""
    begun = {_digest_in(file) for file in files if file.startswith(ASIDE_PREFIX)}
    return frozenset(name for name in names if begun and _digest(name) in begun)


def _digest_in(aside: str) -> str:
    return aside[len(ASIDE_PREFIX) :][:_DIGEST_LENGTH]


def put_back(aside: Location, place: Location) -> None:
    """Give a file its name in the archive again; one that has it already is the same content."""
    placement: Placement | None = None
    with suppress(FileNotFoundError, FileExistsError):
        placement = aside.volume.place(aside.path, place.path)
    if placement is not Placement.MOVED and place.status() is not None:
        with suppress(FileNotFoundError):
            aside.volume.remove_file(aside.path)


def settle_asides(
    cmroot: Location, records: ArchiveRecords, clock: Clock, before_ms: int
) -> tuple[str, ...]:
    """Put back what purges that died, or lost their claims, had moved aside; the names.

    What a purge is at work on stays. So does a file whose name nobody knows (the manifest was
    lost), until its own time is from before `before_ms`.
    """
    statuses = cmroot.volume.children(cmroot.path) if cmroot.status() is not None else ()
    asides = [child for child in statuses if child.name.startswith(ASIDE_PREFIX)]
    if not asides:
        return ()
    now_ms = clock.now_ms()
    entries = records.entries(cmroot.uri)
    names = {_digest(name): name for name in entries}
    live = records.live_purges(cmroot.uri, now_ms)
    done = []
    for status in asides:
        aside = cmroot.child(status.name)
        name = names.get(_digest_in(status.name))
        if name is None:
            _remove_old(aside, status, before_ms)
        elif name not in live:
            put_back(aside, cmroot.child(name))
            if entries[name].state is EntryState.PURGING:
                records.release_purge(cmroot.uri, name, owner=None, now_ms=now_ms)
            log_deed(
                _LOG, "put back", name=name, cmroot=cmroot.uri, reason="its purge was interrupted"
            )
            done.append(name)
    return tuple(done)


def _remove_old(aside: Location, status: FileStatus, before_ms: int) -> None:
    if status.mtime_ms is not None and status.mtime_ms < before_ms:
        with suppress(FileNotFoundError):
            aside.volume.remove_file(aside.path)
