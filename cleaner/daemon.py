"""The cleaner: looks for what is ready, chooses the handler, records or postpones.

One entry that fails never stops the others. It is tried again after 300 s, 600 s, 1200 s … as in
Hive, and after `hive.compactor.cleaner.retry.maxattempts` tries it ends in the history as failed,
with its reason; its files stay, and the cleaning of a later compaction removes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from changemanager.errors import ChangeManagerError, LeaseLostError
from changemanager.journal import log_deed
from changemanager.lease import WorkLease
from cleaner.errors import CleaningRefusedError, TargetChangedError
from cleaner.explain import EntryExplanation, explain_entries
from cleaner.handlers.aborted import AbortedHandler
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.handlers.compacted import CompactedHandler
from cleaner.handlers.dropped import DroppedHandler
from cleaner.handlers.never_created import NeverCreatedHandler
from cleaner.leftovers import Leftovers
from cleaner.owners import is_dead, new_owner
from cleaner.plan import CleaningOutcome, CleaningState
from cleaner.planner import CleaningPlanner
from cleaner.reaper import Reaper
from cleaner.remover import Remover
from hms_bridge.cleaning_store import cleaning_lease
from hms_bridge.clock import Clock
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.connect import LocalStore
from hms_bridge.errors import HmsBridgeError, NoSuchCompactionError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction, CompactionType

_LOG = logging.getLogger(__name__)

_MESSAGE_LENGTH_MAX = 2000
_WAIT_INTERVALS = 6
"""So many rounds pass before an entry with leftovers is looked at again."""
_FIRST_WAIT_MS_MIN = 1000


def next_retry_ms(entry: Compaction, settings: CompactorSettings) -> int | None:
    """How long a failed entry waits; None if it has had all of its tries.

    The wait doubles each time (Hive's CompactionCleaner; docs/hive/compaction.md §19). A clean-up
    of aborts never gives up: its target would come back at once.
    """
    wait_ms = max(settings.cleaner_retry_retention_ms, _FIRST_WAIT_MS_MIN)
    tries = 0
    while entry.retry_retention_ms >= wait_ms:
        wait_ms *= 2
        tries += 1
    is_endless = entry.type is CompactionType.ABORT_TXN_CLEANUP
    return wait_ms if is_endless or tries < settings.cleaner_attempts_max else None


class Cleaner:
    """Removes what no reader can see."""

    def __init__(
        self,
        *,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        compacted: CompactedHandler,
        aborted: AbortedHandler,
        dropped: DroppedHandler,
        never_created: NeverCreatedHandler,
        remover: Remover,
        reaper: Reaper,
        settings: CompactorSettings,
        clock: Clock,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._compacted = compacted
        self._aborted = aborted
        self._dropped = dropped
        self._never_created = never_created
        self._remover = remover
        self._lease = remover.lease
        self._reaper = reaper
        self._settings = settings
        self._clock = clock

    def run_once(self) -> tuple[CleaningOutcome, ...]:
        """One pass over everything that is ready; what became of each."""
        outcomes = [self._clean(entry, self._clean_queued) for entry in self._compacted.find()]
        outcomes += [self._clean(entry, self._aborted.clean) for entry in self._aborted.find()]
        self._finish()
        self._reaper.run_once()
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def _finish(self) -> None:
        try:
            self._remover.finish_all()
        except HmsBridgeError as error:
            _LOG.warning("that removals were recorded could not be noted down: %s", error)

    def explain(self) -> tuple[EntryExplanation, ...]:
        """What a pass would do now, and what keeps it from doing more; nothing is changed."""
        return explain_entries(
            self._metastore,
            self._planner,
            ready=self._compacted.find(),
            aborted=self._aborted.find(),
            now_ms=self._clock.now_ms(),
            retention_ms=self._settings.cleaner_retention_ms,
        )

    def _clean_queued(self, entry: Compaction) -> CleaningOutcome:
        if entry.is_never_created:
            return self._never_created.clean(entry)
        handler = self._dropped if entry.is_soft_drop else self._compacted
        return handler.clean(entry)

    def _clean(
        self, entry: Compaction, handle: Callable[[Compaction], CleaningOutcome]
    ) -> CleaningOutcome | None:
        """None: another cleaner is at work on the table, or somebody who moves a directory."""
        name = cleaning_lease(entry.target.database, entry.target.table)
        try:
            with self._lease.over(name) as is_held:
                return self._clean_alone(entry, handle) if is_held else None
        except LeaseLostError as error:
            _LOG.warning("cleaning of %s was given up: %s", entry.target, error)
            return None
        except HmsBridgeError as error:
            _LOG.warning("the lease on %s could not be had: %s", entry.target, error)
            return None

    def _clean_alone(
        self, entry: Compaction, handle: Callable[[Compaction], CleaningOutcome]
    ) -> CleaningOutcome:
        try:
            outcome = handle(entry)
        except LeaseLostError:
            raise
        except TargetChangedError as change:
            outcome = CleaningOutcome(entry=entry, state=CleaningState.WAITING, message=str(change))
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            _LOG.warning("cleaning of %s failed: %s", entry.target, error)
            return self._postpone(entry, str(error), is_counted=True, error=error)
        if outcome.state is CleaningState.WAITING:
            self._postpone(entry, outcome.message, is_counted=False)
        log_deed(
            _LOG,
            outcome.state.value,
            entry=entry.id or None,
            transaction=entry.txn_id,
            database=entry.target.database,
            table=entry.target.table,
            partition=entry.target.partition,
            directories=outcome.victim_count,
            archived_files=outcome.archived_count,
            deleted_files=outcome.deleted_count,
            bytes=outcome.freed_bytes,
            reason=outcome.message,
        )
        return outcome

    def _postpone(
        self,
        entry: Compaction,
        reason: str,
        *,
        is_counted: bool,
        error: BaseException | None = None,
    ) -> CleaningOutcome:
        wait_ms: int | None = self._settings.cleaner_interval_ms * _WAIT_INTERVALS
        if is_counted and not isinstance(error, CleaningRefusedError):
            wait_ms = next_retry_ms(entry, self._settings)
        state = CleaningState.POSTPONED if wait_ms is not None else CleaningState.FAILED
        message = reason[:_MESSAGE_LENGTH_MAX]
        try:
            if wait_ms is None:
                self._metastore.mark_failed(replace(entry, error_message=message))
            else:
                self._metastore.mark_cleaning_postponed(
                    entry, reason=message, retry_retention_ms=wait_ms
                )
        except NoSuchCompactionError:
            message += " (another cleaner has ended the entry meanwhile)"
        except HmsBridgeError as problem:
            _LOG.warning("could not note down why %s is postponed: %s", entry.target, problem)
        return CleaningOutcome(entry=entry, state=state, message=message)


def make_cleaner(store: LocalStore) -> Cleaner:
    """The cleaner of a metastore and its archive."""
    protocol = store.delete_protocol()
    settings = store.settings.compactor
    planner = CleaningPlanner(store.metastore, store.resolver)
    lease = WorkLease(store.manifest, store.clock, new_owner, is_dead)
    remover = Remover(protocol, store.manifest, store.resolver, lease)
    cleaning = AcidCleaning(store.metastore, planner, remover)
    leftovers = Leftovers(store.metastore, planner, remover, store.resolver)
    return Cleaner(
        metastore=store.metastore,
        planner=planner,
        compacted=CompactedHandler(store.metastore, cleaning, settings.cleaner_retention_ms),
        aborted=AbortedHandler(store.metastore, cleaning, leftovers),
        dropped=DroppedHandler(store.metastore, planner, remover, cleaning, store.resolver),
        never_created=NeverCreatedHandler(
            store.metastore, planner, cleaning, leftovers, store.resolver
        ),
        remover=remover,
        reaper=Reaper(
            metastore=store.metastore,
            manifest=store.manifest,
            protocol=protocol,
            resolve=store.resolver,
            lease=lease,
            clock=store.clock,
        ),
        settings=settings,
        clock=store.clock,
    )


def cleaner_of(store: LocalStore) -> Callable[[], Sequence[CleaningOutcome]]:
    """The pass that a server repeats (entry point of the group `hms_bridge.daemons`)."""
    return make_cleaner(store).run_once
