"""What Hive offers to its own threads only: the initiator's, cleaner's, housekeeper's verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hms_bridge.archive import file_tasks
from hms_bridge.catalog.places import Owner
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import Compaction, PotentialCompaction, Readers
from hms_bridge.model.deletion import DeletionVerdict
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.notification import event_log, events
from hms_bridge.service.transactions import TransactionVerbs
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import (
    cleaning,
    compaction_history,
    compaction_queue,
    housekeeping,
    open_txns,
    valid_write_ids,
)

ROUNDS_MAX = 1000
"""How often a step of housekeeping that has a limit is repeated in one run."""


class CleaningVerbs(TransactionVerbs):
    """The CleaningStore."""

    def find_ready_to_clean(self, retention_ms: int = 0) -> tuple[Compaction, ...]:
        """Entries whose compaction committed and whose inputs no open transaction may use; of
        each target the one with the lowest highest_write_id."""
        return self._transactions.read(
            lambda c: cleaning.find_ready_to_clean(c, self._settings.txn, self._clock, retention_ms)
        )

    def find_ready_to_clean_aborts(self) -> tuple[Compaction, ...]:
        """Targets with components of aborted transactions to clean up, as entries of type
        ABORT_TXN_CLEANUP; highest_write_id is below every open write of the target."""
        return self._transactions.read(
            lambda c: cleaning.find_ready_to_clean_aborts(c, self._settings.compactor, self._clock)
        )

    def may_be_deleted(self, location: str) -> DeletionVerdict:
        """Whether a directory that no table owns any more may be deleted."""
        return self._transactions.read(lambda c: self._files.rule.verdicts(c, [location])[0])

    def strangers_in(self, table: Table, directories: Sequence[str]) -> Mapping[str, str]:
        """Of directories of a table those in which, or around which, others lie too, and who."""
        owner = Owner(table=table)
        return self._transactions.read(lambda c: self._files.rule.strangers(c, directories, owner))

    def find_moves(self, database: str, table: str) -> tuple[str, ...]:
        """Directories of a table that a rename moves: what lies in them is now there, now gone."""
        moves = self._transactions.read(lambda c: file_tasks.find_moves(c, database, table))
        return tuple(move.location for move in moves)

    def mark_cleaning_started(self, compaction_id: CompactionId) -> None:
        """Record the start."""
        self._transactions.write(
            lambda unit: cleaning.mark_cleaning_started(unit.connection, compaction_id, self._clock)
        )

    def mark_cleaning_postponed(
        self, compaction: Compaction, *, reason: str, retry_retention_ms: int
    ) -> None:
        """Keep the entry ready for cleaning, with the reason, and wait before the next try."""
        self._transactions.write(
            lambda unit: cleaning.mark_cleaning_postponed(
                unit.connection,
                compaction,
                self._clock,
                reason=reason,
                retry_retention_ms=retry_retention_ms,
            )
        )

    def retry_failed_cleanings(self, after_ms: int) -> int:
        """Entries that failed in their cleaning so long ago are ready again; how many."""
        return self._transactions.write(
            lambda unit: cleaning.retry_failed_cleanings(unit.connection, self._clock, after_ms)
        )

    def forget_aborted_components(
        self, compaction: Compaction, write_ids: Sequence[WriteId]
    ) -> None:
        """Drop TXN_COMPONENTS rows of aborted write ids whose files are gone."""
        self._transactions.write(
            lambda unit: cleaning.forget_aborted_components(unit.connection, compaction, write_ids)
        )

    def get_all_write_ids(self, full_table_name: str, valid_txns: ValidTxnList) -> ValidWriteIdList:
        """The write ids of a table under a snapshot, each of them told valid, open or aborted."""
        return self._transactions.read(
            lambda c: valid_write_ids.get_all_write_ids(c, full_table_name, valid_txns)
        )

    def min_open_txn_watermark(self, database: str | None = None) -> TxnId:
        """Every transaction below it has ended and none can appear below it any more; with a
        database: every one that may read something of it."""
        return self._transactions.read(
            lambda c: open_txns.min_open_txn_watermark(c, self._settings.txn, self._clock, database)
        )

    def readers(self, entries: Sequence[Compaction]) -> Readers:
        """What decides whether somebody may read the inputs of these entries."""
        return self._transactions.read(
            lambda c: cleaning.readers(c, entries, self._settings.txn, self._clock)
        )

    def find_potential_compactions(
        self, aborted_threshold: int, aborted_time_threshold_ms: int
    ) -> tuple[PotentialCompaction, ...]:
        """Targets with committed or aborted writes since they were compacted last."""
        return self._transactions.read(
            lambda c: cleaning.find_potential_compactions(
                c, self._clock, aborted_threshold, aborted_time_threshold_ms
            )
        )

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        """Give entries of workers that started too long ago back to the queue; how many."""
        return self._transactions.write(
            lambda unit: compaction_queue.revoke_timed_out_workers(
                unit.connection, timeout_ms, self._clock
            )
        )

    def run_housekeeping(self) -> None:
        """Time-outs, of workers too; purge of transactions, write sets, events and history.

        Each step is a transaction of its own; at last, file work that others left undone.
        """
        txn, clock = self._settings.txn, self._clock
        self._repeat(self._time_out_txns)
        self._repeat(lambda unit: housekeeping.time_out_locks(unit.connection, txn, clock))
        self._once(lambda unit: housekeeping.time_out_rebuild_locks(unit.connection, txn, clock))
        self._once(self._settle_compactions)
        self._once(self._give_back_abandoned)
        self._once(self._revoke_workers)
        self._once(lambda unit: housekeeping.forget_write_sets(unit.connection, txn, clock))
        self._once(lambda unit: housekeeping.forget_write_ids(unit.connection, txn, clock))
        self._once(lambda unit: housekeeping.forget_txns(unit.connection, txn, clock))
        self._once(lambda unit: compaction_history.purge_history(unit.connection, clock))
        self._repeat(self._purge_events)
        self._files.resume()

    def _once(self, step: Callable[[UnitOfWork], int]) -> int:
        return self._transactions.write(step)

    def _repeat(self, step: Callable[[UnitOfWork], int]) -> None:
        for _ in range(ROUNDS_MAX):
            if not self._once(step):
                return

    def _time_out_txns(self, unit: UnitOfWork) -> int:
        outcome = housekeeping.time_out_txns(unit.connection, self._settings.txn, self._clock)
        self._log_abort(unit, outcome)
        return len(outcome.aborted)

    def _revoke_workers(self, unit: UnitOfWork) -> int:
        timeout_ms = self._settings.compactor.worker_timeout_ms
        return compaction_queue.revoke_timed_out_workers(unit.connection, timeout_ms, self._clock)

    def _give_back_abandoned(self, unit: UnitOfWork) -> int:
        txn = self._settings.txn
        failed = housekeeping.give_back_abandoned(unit.connection, txn, self._clock)
        unit.events += [events.compaction_failed(one, unit.now_seconds) for one in failed]
        return len(failed)

    def _settle_compactions(self, unit: UnitOfWork) -> int:
        failed = housekeeping.settle_compactions(unit.connection, self._clock)
        unit.events += [events.compaction_failed(one, unit.now_seconds) for one in failed]
        return len(failed)

    def _purge_events(self, unit: UnitOfWork) -> int:
        before = unit.now_seconds - self._settings.event_ttl_ms // 1000
        return event_log.purge(unit.connection, before)
