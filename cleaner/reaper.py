"""Brings to an end what others left: a dead cleaner, a failed entry, an interrupted purge.

Nothing is deleted here that is not deleted elsewhere by the same rules: removals are given up or
finished, claims and failed entries are given back, history is forgotten, and temporary directories
of ours go whose transactions have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from changemanager.delete_protocol import DeleteProtocol
from changemanager.errors import ArchivedFileLostError, ChangeManagerConfigError, ChangeManagerError
from changemanager.lease import WorkLease
from changemanager.location import Resolver
from changemanager.manifest import (
    LEASE_MS,
    ArchiveCause,
    ArchiveIntent,
    ArchiveManifest,
    IntentState,
)
from changemanager.plausible_time import judge
from changemanager.purge import Purge
from cleaner.temporaries import TemporariesSweep
from hms_bridge.cleaning_store import cleaning_lease
from hms_bridge.clock import Clock
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import CompactionState, ShowCompactionsRequest

_LOG = logging.getLogger(__name__)

STRAY_AFTER_MS = 2 * LEASE_MS
"""How long nothing happened to a removal before it is looked at."""
_DAY_MS = 86_400_000
_FINISH_AFTER_MS = 3_600_000
REVIVE_AFTER_MS = _DAY_MS
"""So long after its last try a cleaning that failed is tried again."""
_SELDOM_MS = 300_000
_SWEEP_MS = 3_600_000
_CLEANERS = frozenset({ArchiveCause.OBSOLETE, ArchiveCause.ABORTED})
_OPEN = tuple(state for state in IntentState if state.is_open)


class Reaper:
    """One pass looks at everything; what costs more is looked at every few minutes."""

    def __init__(
        self,
        *,
        metastore: LocalMetastore,
        manifest: ArchiveManifest,
        protocol: DeleteProtocol,
        resolve: Resolver,
        lease: WorkLease,
        clock: Clock,
        history_retain_ms: int,
    ) -> None:
        self._metastore = metastore
        self._manifest = manifest
        self._protocol = protocol
        self._archive = protocol.archive
        self._resolve = resolve
        self._lease = lease
        self._clock = clock
        self._history_retain_ms = history_retain_ms
        self._seldom_at_ms: int | None = None
        self._swept_at_ms: int | None = None
        self._sweep = TemporariesSweep(metastore, resolve)

    def run_once(self) -> None:
        """Every step by itself: one that fails is logged, and tried again in the next pass."""
        steps: list[Callable[[], object]] = [self._close_strays, self._finish, self._note_time]
        now_ms = self._clock.now_ms()
        if self._seldom_at_ms is None or abs(now_ms - self._seldom_at_ms) >= _SELDOM_MS:
            self._seldom_at_ms = now_ms
            steps += [self._settle_purges, self._revive, self._forget]
        if self._swept_at_ms is None or abs(now_ms - self._swept_at_ms) >= _SWEEP_MS:
            self._swept_at_ms = now_ms
            steps.append(self._sweep.step)
        elif self._sweep.is_under_way:
            steps.append(self._sweep.step)
        for step in steps:
            try:
                step()
            except (HmsBridgeError, ChangeManagerError, OSError) as error:
                _LOG.warning("what others left could not be tidied up: %s", error)

    def _close_strays(self) -> None:
        """Removals that nobody goes on with: an open one keeps files in the archive for ever."""
        strays = [
            open_intent
            for open_intent in self._manifest.intents(_OPEN)
            if self._age_ms(open_intent) > STRAY_AFTER_MS
        ]
        if not strays:
            return
        ready = ShowCompactionsRequest(state=CompactionState.READY_FOR_CLEANING)
        queued = {entry.id for entry in self._metastore.show_compactions(ready)}
        for intent in strays:
            context = intent.context
            if context.cause not in _CLEANERS:
                # File work of the metastore, which takes its own rows up again; but one that was
                # written down when another process had already removed the victim is nobody's.
                is_gone = self._resolve(intent.victim).status() is None
                if is_gone or self._age_ms(intent) > _DAY_MS:
                    self._end(intent)
                continue
            if context.compaction_id in queued:
                continue
            name = cleaning_lease(context.database or "", context.table or "")
            with self._lease.over(name) as is_held:
                if is_held:
                    self._end(intent)

    def _end(self, intent: ArchiveIntent) -> None:
        """Finished if its victim is gone, else given up: the files are in their places."""
        try:
            report = self._protocol.settle(intent)
            if report is None:
                self._protocol.abandon(intent, "nobody went on with it; its files stay")
            elif report.intent is not None:
                self._protocol.finish([report.intent])
        except ArchivedFileLostError as error:
            _LOG.warning("the removal of %s was given up: %s", intent.victim, error)
        except ChangeManagerConfigError as error:
            if self._age_ms(intent) <= _DAY_MS:
                raise
            self._protocol.abandon(intent, str(error))
        except (ChangeManagerError, OSError) as error:
            _LOG.warning("the removal of %s stays open for now: %s", intent.victim, error)

    def _age_ms(self, intent: ArchiveIntent) -> int:
        # From the future (a clock that stepped back) is as good as old.
        return abs(self._clock.now_ms() - intent.updated_at_ms)

    def _finish(self) -> None:
        """Removals whose recording died."""
        deleted = self._manifest.intents((IntentState.DELETED,))
        self._protocol.finish(
            [
                intent
                for intent in deleted
                if self._age_ms(intent)
                > (_FINISH_AFTER_MS if intent.context.cause in _CLEANERS else _DAY_MS)
            ]
        )
        self._manifest.forget_intents(self._forget_before_ms())

    def _note_time(self) -> None:
        """A sign of life, by which a purge knows whether the clock has jumped."""
        self._manifest.note_time(self._clock.now_ms())

    def _forget_before_ms(self) -> int:
        time = judge(self._clock.now_ms(), self._manifest.known_times())
        return time.before_ms(max(self._history_retain_ms, _DAY_MS))

    def _settle_purges(self) -> None:
        if self._archive is not None:
            Purge(self._archive, self._manifest, self._clock).settle()

    def _revive(self) -> None:
        """Cleanings that failed for a time (the archive was down) begin anew."""
        self._metastore.retry_failed_cleanings(REVIVE_AFTER_MS)

    def _forget(self) -> None:
        before_ms = self._forget_before_ms()
        self._manifest.forget_leases(before_ms)
        if self._archive is not None:
            self._manifest.forget_purged(self._archive.cmroot.uri, before_ms)
