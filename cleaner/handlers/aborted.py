"""Reason to delete: everything in a directory was aborted, so nobody will ever read it (Hive:
AbortedTxnCleaner; docs/hive/compaction.md §20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cleaner.entry_work import CleaningError
from cleaner.errors import TargetChangedError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.leftovers import Leftovers
from cleaner.plan import CleaningOutcome, CleaningState
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import NEVER_QUEUED, Compaction
from hms_bridge.model.target import Target


class AbortedHandler:
    """Targets with too many, or too old, aborted writes. They are no entries of the queue."""

    def __init__(
        self, metastore: LocalMetastore, cleaning: AcidCleaning, leftovers: Leftovers
    ) -> None:
        self._metastore = metastore
        self._cleaning = cleaning
        self._leftovers = leftovers

    def find(self, *, is_retried_now: bool = False) -> Sequence[Compaction]:
        """Targets that may be cleaned now, up to below every open write."""
        return self._metastore.find_ready_to_clean_aborts(is_retried_now=is_retried_now)

    def clean(self, entry: Compaction) -> CleaningOutcome:
        """Aborted directories go; a table without partition name: those of all its partitions; of
        a table that was never made, those where it would be; of a partition that is not there,
        those of the whole table."""
        return self._cleaning.clean(entry, self._clean_where_it_was)

    def clean_together(
        self, entries: Sequence[Compaction]
    ) -> list[CleaningOutcome | CleaningError | None]:
        """Several at once: see :meth:`AcidCleaning.clean_together`."""
        return self._cleaning.clean_together(entries, self._clean_where_it_was)

    def _clean_where_it_was(self, entry: Compaction) -> CleaningOutcome | None:
        """A writer may bring files to where a partition was that is dropped, and may be made there
        again. The record ends with what is found there, as if the partition were. Raises
        CleanerError, TargetChangedError and others, with which the record stays."""
        target = entry.target
        if target.partition is None:
            self._leftovers.remove_where_expected(entry)
            return None
        of_table = Target(target.database, target.table)
        whole = replace(entry, id=NEVER_QUEUED, target=of_table)
        outcome = self._cleaning.clean(whole, recorded=entry)
        if outcome.state is CleaningState.WAITING:
            raise TargetChangedError(outcome.message)
        return None if outcome.state is CleaningState.GONE else replace(outcome, entry=entry)
