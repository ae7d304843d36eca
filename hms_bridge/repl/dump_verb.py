"""What making and ending a dump have in common: one source, one of them at a time, removals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from changemanager.journal import tell
from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from changemanager.sharing import tell_of
from hms_bridge.clock import Clock
from hms_bridge.metastore import Metastore
from hms_bridge.repl.layout import DumpPaths
from hms_bridge.repl.lease import Lease, LeaseKind, LeaseRequest, LeaseRules, held_lease
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.texts import remove_tree

_LOG = logging.getLogger(__name__)


class DumpWork(Protocol):
    """What is asked of one of the two, as far as both are asked the same."""

    @property
    def database_name(self) -> str:
        """The source database, in lower case."""
        ...

    @property
    def user(self) -> str:
        """Who asks, for SHOW LOCKS."""
        ...

    @property
    def host(self) -> str:
        """From where."""
        ...

    @property
    def lease(self) -> LeaseRules:
        """When another one at work counts as dead."""
        ...


class DumpVerb:
    """``new_name`` gives each dump a directory name of its own; ``on_waiting`` is told why this
    waits for another one. Without a ``manifest`` nothing is pinned."""

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

    def _alone(self, work: DumpWork) -> AbstractContextManager[Lease]:
        """The lease of the database's dumps. Raises ReplError if another one is at work."""
        wanted = LeaseRequest(
            kind=LeaseKind.DUMP,
            database_name=work.database_name,
            user=work.user,
            host=work.host,
            rules=work.lease,
            on_waiting=self._on_waiting,
        )
        return held_lease(self._source, self._clock, wanted)

    def _pins(self, database: str) -> DumpPins:
        return DumpPins(manifest=self._manifest, clock=self._clock, database=database)

    def _show_pins(self, cm_root: str | None) -> None:
        """Purges of other metastores that share the archive see that this one pins files there."""
        if self._manifest is None or cm_root is None:
            return
        try:
            tell_of(self._resolve(cm_root), self._manifest.store_id(self._new_name()))
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
        tell(_LOG, "dump removed", database=database, path=directory, reason=reason)
