"""The half of the port that no thrift method has: what the initiator, the cleaner, the housekeeper
and a monitor ask of the database beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hms_bridge.model.catalog import Table
from hms_bridge.model.cleaning_view import CleaningView
from hms_bridge.model.compaction import Compaction, PotentialCompaction, Readers
from hms_bridge.model.deletion import DeletionVerdict
from hms_bridge.model.event_block import EventBlock
from hms_bridge.model.figures import CompactionFigures, LockFigures, TxnFigures
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import TableName, Target
from hms_bridge.model.target_mark import TargetMark


def cleaning_lease(database: str, table: str) -> str:
    """The name of the lease that somebody holds who cleans a table, or moves its directories."""
    return f"clean {database}.{table}"


class CleaningStore(Protocol):
    """The initiator's and cleaner's queries; no thrift method has them."""

    def find_ready_to_clean(
        self, retention_ms: int = 0, *, is_retried_now: bool = False
    ) -> tuple[Compaction, ...]:
        """Entries whose compaction committed and whose inputs nobody may use (``readers``); of each
        target the one with the lowest highest_write_id. Others never come. ``is_retried_now``: also
        those that were postponed, before their wait is over."""

    def find_ready_to_clean_aborts(self, *, is_retried_now: bool = False) -> tuple[Compaction, ...]:
        """Targets with components of aborted transactions to clean up, as entries of type
        ABORT_TXN_CLEANUP; highest_write_id is below every open write of the target. For
        ``is_retried_now`` see :meth:`find_ready_to_clean`."""

    def default_location(self, database: str, table: str) -> str:
        """Where a managed table of that name lies if it says nothing else, there or not. Raises
        NoSuchObjectError without the database."""

    def may_be_deleted(self, location: str) -> DeletionVerdict:
        """Whether a directory that no table owns any more may be deleted: it lies below an allowed
        root, and nobody else at it, in it or around it, in any database or catalog."""

    def strangers_in(
        self, places: Sequence[tuple[Table, Sequence[str]]]
    ) -> tuple[Mapping[str, str], ...]:
        """For each table: of its directories those in which, or around which, others lie too, and
        who."""

    def target_marks(self, targets: Sequence[Target]) -> tuple[TargetMark | None, ...]:
        """By what tables or partitions are known again. Cheap: asked before each deletion. None for
        one that is gone, or has no directory."""

    def are_listed(self, entries: Sequence[Compaction]) -> tuple[bool, ...]:
        """Of each entry whether it gives way to a reader who may be listing its table just now. Of
        one that was compacted a while ago, never."""

    def mark_cleanings_started(self, compaction_ids: Sequence[CompactionId]) -> None:
        """Record the start of entries."""

    def mark_all_cleaned(self, compactions: Sequence[Compaction]) -> None:
        """As ``mark_cleaned``, of several entries: all or none of them."""

    def mark_cleaning_postponed(
        self, compaction: Compaction, *, reason: str, retry_retention_ms: int
    ) -> None:
        """Keep the entry ready for cleaning, with the reason, and wait before the next try."""

    def retry_failed_cleanings(self, after_ms: int) -> int:
        """Entries that failed in their cleaning so long ago are ready again; how many."""

    def forget_aborted_components(
        self, compaction: Compaction, write_ids: Sequence[WriteId]
    ) -> None:
        """Drop TXN_COMPONENTS rows of aborted write ids whose files are gone."""

    def cleaning_views(self, tables: Sequence[TableName]) -> tuple[CleaningView, ...]:
        """What of tables may be judged, in this order: whoever ends meanwhile stays as he was
        when he was looked at. Who is aborted in it stays so until its files are gone. Raises
        MetaError for a name that no table can have."""

    def min_open_txn_watermark(self, database: str | None = None) -> TxnId:
        """Every transaction below it (that may read of a database) has ended; none can appear."""

    def readers(self, entries: Sequence[Compaction]) -> Readers:
        """What decides whether somebody may read the inputs of these entries."""

    def find_potential_compactions(
        self, aborted_threshold: int, aborted_time_threshold_ms: int
    ) -> tuple[PotentialCompaction, ...]:
        """Targets with committed or aborted writes since they were compacted last."""

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        """Give entries of workers that started too long ago back to the queue; how many."""

    def run_housekeeping(self) -> None:
        """Time-outs, of workers too; purge of transactions, write sets, events and history."""


class FigureStore(Protocol):
    """Counts and ages for a monitor. The database sums up, so each is cheap enough to be asked
    every few seconds."""

    def txn_figures(self) -> TxnFigures:
        """How many transactions are open and aborted, and since when."""

    def lock_figures(self) -> LockFigures:
        """How many locks are held, and how many wait."""

    def compaction_figures(self) -> CompactionFigures:
        """How many entries the queue has, and how long the oldest waits for a worker."""

    def first_event_seconds(self, since_seconds: int) -> int | None:
        """When the first event from this time on happened; None if there is none."""

    def event_blocks(self) -> tuple[EventBlock, ...]:
        """How large the event log is, block by block, ascending. A block that has all its events is
        summed up once."""
