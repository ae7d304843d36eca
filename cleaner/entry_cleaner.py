"""What becomes of one entry: the lease over its table, the handler for its reason, the record.

One entry that fails never stops the others. It is tried again after 300 s, 600 s, 1200 s … as in
Hive, and after `hive.compactor.cleaner.retry.maxattempts` tries it ends in the history as failed,
with its reason; what was not removed stays, and the cleaning of a later compaction removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.errors import ChangeManagerError, LeaseLostError
from changemanager.journal import log_deed
from cleaner.entry_work import CleaningError, PartlyCleanedError
from cleaner.errors import CleaningRefusedError, TargetChangedError, TargetListedError
from cleaner.handlers.aborted import AbortedHandler
from cleaner.handlers.compacted import CompactedHandler
from cleaner.handlers.dropped import DroppedHandler
from cleaner.handlers.never_created import NeverCreatedHandler
from cleaner.plan import CleaningOutcome, CleaningState
from cleaner.remover import RemovalReport, Remover
from hms_bridge.cleaning_store import cleaning_lease
from hms_bridge.config.settings import CompactorSettings
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


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryCleaner:
    """Cleans entries: of one thread, as its remover holds their leases."""

    metastore: LocalMetastore
    compacted: CompactedHandler
    aborted: AbortedHandler
    dropped: DroppedHandler
    never_created: NeverCreatedHandler
    remover: Remover
    settings: CompactorSettings

    def clean(self, entry: Compaction) -> CleaningOutcome | None:
        """None: another cleaner is at work on the table, or somebody who moves a directory."""
        (outcome,) = self.clean_all([entry])
        return outcome

    def clean_all(self, entries: Sequence[Compaction]) -> list[CleaningOutcome | None]:
        """As :meth:`clean` of entries of different targets; those of one kind together."""
        outcomes: dict[int, CleaningOutcome] = {}
        names = {cleaning_lease(entry.target.database, entry.target.table) for entry in entries}
        try:
            with self.remover.lease.over_each(names) as held:
                mine = {
                    place: entry
                    for place, entry in enumerate(entries)
                    if cleaning_lease(entry.target.database, entry.target.table) in held
                }
                self._clean_held(mine, outcomes)
        except LeaseLostError as error:
            _LOG.warning("cleaning of %s was given up: %s", _shown(entries), error)
        except HmsBridgeError as error:
            _LOG.warning("the leases on %s could not be had: %s", _shown(entries), error)
        return [outcomes.get(place) for place in range(len(entries))]

    def _clean_held(
        self, entries: Mapping[int, Compaction], outcomes: dict[int, CleaningOutcome]
    ) -> None:
        """By their places; what does not go with others, by itself."""
        handlers = {place: self._handler(entry) for place, entry in entries.items()}
        for handler in (self.compacted, self.aborted):
            places = [place for place, clean in handlers.items() if clean == handler.clean]
            if len(places) < 2:
                continue
            results = handler.clean_together([entries[place] for place in places])
            for place, result in zip(places, results, strict=True):
                if result is not None:
                    outcomes[place] = self._ended(entries[place], result)
        for place, entry in entries.items():
            if place not in outcomes:
                outcomes[place] = self._clean_alone(entry, handlers[place])

    def _handler(self, entry: Compaction) -> Callable[[Compaction], CleaningOutcome]:
        if entry.type is CompactionType.ABORT_TXN_CLEANUP:
            return self.aborted.clean
        if entry.is_never_created:
            return self.never_created.clean
        return self.dropped.clean if entry.is_soft_drop else self.compacted.clean

    def _clean_alone(
        self, entry: Compaction, handle: Callable[[Compaction], CleaningOutcome]
    ) -> CleaningOutcome:
        try:
            return self._ended(entry, handle(entry))
        except LeaseLostError:
            raise
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            return self._ended(entry, error)

    def _ended(self, entry: Compaction, result: CleaningOutcome | CleaningError) -> CleaningOutcome:
        """What is noted of its end."""
        removed: RemovalReport | None = None
        if isinstance(result, PartlyCleanedError):
            removed, result = result.removed, result.cause
        if isinstance(result, CleaningOutcome):
            outcome = result
        elif isinstance(result, (TargetChangedError, TargetListedError)):
            outcome = _outcome(entry, CleaningState.WAITING, str(result), removed)
        else:
            _LOG.warning("cleaning of %s failed: %s", entry.target, result)
            state, message = self._postpone(entry, str(result), is_counted=True, error=result)
            return _outcome(entry, state, message, removed)
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
    ) -> tuple[CleaningState, str]:
        """The state that the entry has from now on, and why."""
        wait_ms: int | None = self.settings.cleaner_interval_ms * _WAIT_INTERVALS
        if is_counted and not isinstance(error, CleaningRefusedError):
            wait_ms = next_retry_ms(entry, self.settings)
        state = CleaningState.POSTPONED if wait_ms is not None else CleaningState.FAILED
        message = reason[:_MESSAGE_LENGTH_MAX]
        try:
            if wait_ms is None:
                self.metastore.mark_failed(replace(entry, error_message=message))
            else:
                self.metastore.mark_cleaning_postponed(
                    entry, reason=message, retry_retention_ms=wait_ms
                )
        except NoSuchCompactionError:
            message += " (another cleaner has ended the entry meanwhile)"
        except HmsBridgeError as problem:
            _LOG.warning("could not note down why %s is postponed: %s", entry.target, problem)
        return state, message


def _outcome(
    entry: Compaction, state: CleaningState, message: str, removed: RemovalReport | None
) -> CleaningOutcome:
    """Of an entry that did not come to its end, with what has gone all the same."""
    outcome = CleaningOutcome(entry=entry, state=state, message=message)
    if removed is None:
        return outcome
    return replace(
        outcome,
        victim_count=removed.victim_count,
        archived_count=removed.archived_count,
        deleted_count=removed.deleted_count,
        freed_bytes=removed.freed_bytes,
    )


def _shown(entries: Sequence[Compaction]) -> str:
    return ", ".join(str(entry.target) for entry in entries)
