"""What making and ending a dump have in common: one source, one of them at a time, removals."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from changemanager.filesystem.volume import FileKind
from changemanager.journal import log_deed
from changemanager.location import Location, Resolver
from changemanager.manifest import ArchiveManifest
from changemanager.sharing import announce
from hms_bridge.clock import Clock
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import next_event
from hms_bridge.repl.dump.news import DumpNews
from hms_bridge.repl.format.layout import (
    HIVE_DIRECTORY,
    NON_RECOVERABLE,
    PROGRESS_DIRECTORY,
    DumpPaths,
)
from hms_bridge.repl.format.texts import remove_tree
from hms_bridge.repl.lease import Lease, LeaseHolder, LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.pins import DumpPins

_CLOCKS_APART_MS = 600_000

_LOG = logging.getLogger(__name__)
_ABOVE_HIVE = frozenset(
    {HIVE_DIRECTORY, NON_RECOVERABLE, f".{NON_RECOVERABLE}.crc", PROGRESS_DIRECTORY}
    | {"ranger", "atlas"}
)
"""Hive dumps Ranger's and Atlas' data beside its own; on local disks Hadoop writes a .crc beside
the mark of a failure."""
_IN_HIVE = re.compile(r"(\.cm-part-)?\.?_.*|\d+|events_batch_\d+|metadata|data|\..*\.crc")


class DumpVerb:
    """``new_name`` gives each dump a directory name of its own; ``on_waiting`` is given why this
    waits. Without a ``manifest`` nothing is pinned."""

    def __init__(
        self,
        source: Metastore,
        resolve: Resolver,
        clock: Clock,
        new_name: Callable[[], str],
        manifest: ArchiveManifest | None = None,
        *,
        on_waiting: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._clock = clock
        self._new_name = new_name
        self._manifest = manifest
        self._on_waiting = on_waiting

    def _alone(self, holder: LeaseHolder, database: str) -> AbstractContextManager[Lease]:
        """The lease of the database's dumps. Raises ReplError if another one is at work."""
        wanted = LeaseRequest.of(holder, LeaseKind.DUMP, database, self._on_waiting)
        return held_lease(self._source, self._clock, wanted)

    def _pins(self, database: str, root: str) -> DumpPins:
        return DumpPins(
            manifest=self._manifest,
            clock=self._clock,
            database=database,
            root=self._resolve(root).uri,
        )

    def _news(self, database: str, root: str) -> DumpNews:
        return DumpNews(
            manifest=self._manifest,
            resolve=self._resolve,
            database=database,
            root=self._resolve(root).uri,
        )

    def _needed_since_ms(self, after: EventId) -> int | None:
        """From when on files were archived that a dump from an event on may name; None if nothing
        happened after it."""
        event = next_event(self._source, after)
        return None if event is None else event.time_seconds * 1000 - _CLOCKS_APART_MS

    def _remove_older(self, database: str, directories: Sequence[str]) -> None:
        """Remove dumps that a newer one makes needless; what may be somebody else's stays."""
        for directory in directories:
            strange = what_is_strange(self._resolve(directory))
            if strange:
                _LOG.warning(
                    "%s is left alone: it does not look like a dump (%s)", directory, strange
                )
            else:
                self._remove(database, directory, reason="a newer one is finished")

    def _show_pins(self, cm_root: str | None) -> None:
        """Purges of other metastores that share the archive see that this one pins files there."""
        if self._manifest is None or cm_root is None:
            return
        try:
            announce(self._resolve(cm_root), self._manifest.store_id(self._new_name()))
        except OSError as error:
            _LOG.warning(
                "%s: no file of ours can be put there (%s); a purge by another metastore that "
                "shares this archive would not see what this one needs",
                cm_root,
                error,
            )

    def _remove(self, database: str, directory: str, *, reason: str) -> None:
        """Remove a dump's directory, and log it.

        Without its finish marker nobody reads what is left of it, whatever happens now.
        """
        marker = self._resolve(DumpPaths(directory).finished_dump)
        if marker.status() is not None:
            marker.volume.remove_file(marker.path)
        remove_tree(self._resolve(directory))
        log_deed(_LOG, "dump removed", database=database, path=directory, reason=reason)


def what_is_strange(place: Location) -> str:
    """What a directory holds that dumps do not, or that it has nothing of a dump; empty for a dump.

    An empty directory is one, too: a removal was killed just before its end.
    """
    above = {child.name: child.kind for child in place.volume.children(place.path)}
    if not above:
        return ""
    hive = place.child(HIVE_DIRECTORY)
    if above.get(HIVE_DIRECTORY) is not FileKind.DIRECTORY:
        return "it has no directory hive"
    strange = sorted(above.keys() - _ABOVE_HIVE)
    within = (child.name for child in hive.volume.children(hive.path))
    strange += sorted(f"{HIVE_DIRECTORY}/{name}" for name in within if not _IN_HIVE.fullmatch(name))
    return f"it holds {', '.join(strange[:3])}" if strange else ""
