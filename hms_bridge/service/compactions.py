"""Verbs of the compaction queue, as users and workers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import partitions, tables
from hms_bridge.errors import InvalidOperationError, NoSuchObjectError
from hms_bridge.model.compaction import (
    LOCATION,
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId
from hms_bridge.model.properties import IF_PURGE
from hms_bridge.model.target import Target
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.replica_gate import write_refusal
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import cleaning, compaction_history, compaction_queue


class CompactionVerbs(VerbFamily):
    """The CompactionStore."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        """Queue a compaction; refused if the same target is queued already, and in a replica
        unless the initiator asks. Writes the event REQUEST_COMPACTION. Raises NoSuchObjectError
        for an unknown table or partition, InvalidOperationError for properties with which a
        metastore names directories to delete."""
        asked = request.target
        target = Target(asked.database.lower(), asked.table.lower(), asked.partition)
        wanted = replace(request, target=target)
        reserved = sorted({LOCATION, IF_PURGE} & set(request.properties))
        if reserved:
            raise InvalidOperationError(
                f"{asked.name}: a compaction takes no property "
                f"{reserved[0]}; it is the metastore's own, for directories that were dropped"
            )

        def work(unit: UnitOfWork) -> CompactionResponse:
            _require_target(unit.connection, wanted)
            refusal = _replica_refusal(unit.connection, wanted)
            if refusal is not None:
                return CompactionResponse(
                    id=None,
                    is_accepted=False,
                    state=CompactionState.REFUSED.word,
                    error_message=refusal,
                )
            response = compaction_queue.enqueue(
                unit.connection, wanted, self._settings.txn, self._clock
            )
            if response.id is not None:
                queued = compaction_queue.get_queued(unit.connection, response.id)
                if queued is not None:
                    unit.events.append(events.compaction_requested(queued, unit.now_seconds))
            return response

        return self._transactions.write(work)

    def show_compactions(
        self, request: ShowCompactionsRequest | None = None
    ) -> tuple[Compaction, ...]:
        """The queue and its history, newest first."""
        return self._transactions.read(lambda c: compaction_history.show_compactions(c, request))

    def find_next_compaction(
        self, worker_id: str, worker_version: str, pool_name: str | None = None
    ) -> Compaction | None:
        """Claim the oldest initiated entry. No two workers get the same (I9)."""
        return self._transactions.write(
            lambda unit: compaction_queue.find_next_compaction(
                unit.connection, worker_id, worker_version, self._clock, pool_name
            )
        )

    def update_compactor_state(self, compaction: Compaction, txn_id: TxnId) -> None:
        """Record run_as, highest_write_id and the worker's transaction.

        Raises NoSuchCompactionError if the entry is not this worker's any more (I9).
        """
        self._transactions.write(
            lambda unit: compaction_queue.update_compactor_state(
                unit.connection, compaction, txn_id
            )
        )

    def set_hadoop_job_id(self, job_id: str, compaction_id: CompactionId) -> None:
        """Record which job does the work."""
        self._transactions.write(
            lambda unit: compaction_queue.set_hadoop_job_id(unit.connection, job_id, compaction_id)
        )

    def mark_compacted(self, compaction: Compaction) -> None:
        """Ready for cleaning. Raises NoSuchCompactionError if this worker lost the entry."""
        self._transactions.write(
            lambda unit: compaction_queue.mark_compacted(unit.connection, compaction)
        )

    def mark_failed(self, compaction: Compaction) -> None:
        """Into the history with its error_message; writes the event FAIL_COMPACTION."""

        def work(unit: UnitOfWork) -> None:
            ended = compaction_history.mark_failed(unit.connection, compaction, self._clock)
            if ended is not None:
                unit.events.append(events.compaction_failed(ended, unit.now_seconds))

        self._transactions.write(work)

    def mark_refused(self, compaction: Compaction) -> None:
        """Into the history as refused, with error_message."""
        self._transactions.write(
            lambda unit: compaction_history.mark_refused(unit.connection, compaction, self._clock)
        )

    def mark_cleaned(self, compaction: Compaction) -> None:
        """Into the history as succeeded; forgets transaction components up to highest_write_id."""
        self._transactions.write(
            lambda unit: cleaning.mark_cleaned(unit.connection, compaction, self._clock)
        )

    def abort_compactions(self, ids: Sequence[CompactionId]) -> Mapping[CompactionId, str]:
        """Abort entries that nobody works on yet; one word of outcome for each id."""
        return self._transactions.write(
            lambda unit: compaction_history.abort_compactions(unit.connection, ids, self._clock)
        )


def _require_target(connection: Connection, request: CompactionRequest) -> None:
    stored = tables.require_table(connection, request.target.database, request.target.table)
    name = request.target.partition
    if name is not None and not partitions.existing_names(connection, stored, [name]):
        raise NoSuchObjectError(
            f"partition {name} of {stored.table.full_name} not found; name it as SHOW PARTITIONS "
            "does"
        )


def _replica_refusal(connection: Connection, request: CompactionRequest) -> str | None:
    """The initiator compacts a replica without changing row ids; others are not let in."""
    if request.is_automatic and request.type in (CompactionType.MINOR, CompactionType.MAJOR):
        return None
    return write_refusal(connection, request.target.database)
