"""Reason to delete: a compaction took the place of its inputs, and no reader is left on them."""

from __future__ import annotations

from collections.abc import Sequence

from cleaner.entry_work import CleaningError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.plan import CleaningOutcome
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction


class CompactedHandler:
    """Entries that are ready for cleaning; the gate is the metastore's.

    Handed out are only entries whose compaction committed and before whose commit no open
    transaction began; of each target the one that reaches least far.
    """

    def __init__(
        self, metastore: LocalMetastore, cleaning: AcidCleaning, retention_ms: int
    ) -> None:
        self._metastore = metastore
        self._cleaning = cleaning
        self._retention_ms = retention_ms

    def find(self, *, is_retried_now: bool = False) -> Sequence[Compaction]:
        """Entries that may be cleaned now."""
        return self._metastore.find_ready_to_clean(
            self._retention_ms, is_retried_now=is_retried_now
        )

    def clean(self, entry: Compaction) -> CleaningOutcome:
        """Obsolete directories go, and aborted ones up to what the compaction reached."""
        return self._cleaning.clean(entry)

    def clean_together(
        self, entries: Sequence[Compaction]
    ) -> list[CleaningOutcome | CleaningError | None]:
        """Several at once: see :meth:`AcidCleaning.clean_together`."""
        return self._cleaning.clean_together(entries)
