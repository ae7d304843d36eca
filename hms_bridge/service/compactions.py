"""Verbs of the compaction queue, as users and workers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import partitions, tables
from hms_bridge.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hms_bridge.hooks import points
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import (
    DONE_HERE,
    LOCATION,
    AbortOutcome,
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    DeltaCount,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.properties import IF_PURGE
from hms_bridge.model.target import Target
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.replica_gate import compaction_refusal, write_refusal
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes
from hms_bridge.txn import (
    cleaning,
    compaction_history,
    compaction_queue,
    delta_counts,
    never_created,
)


def _compact(unit: UnitOfWork, request: CompactionRequest) -> CompactionResponse:
    """Refused too: in a replica unless the initiator asks, and InvalidOperationError for properties
    with which a metastore names directories to delete."""
    asked = request.target
    target = Target(asked.database.lower(), asked.table.lower(), asked.partition)
    wanted = replace(request, target=target)
    reserved = sorted({LOCATION, IF_PURGE} & set(request.properties))
    if reserved:
        raise InvalidOperationError(
            f"{asked.name}: a compaction takes no property "
            f"{reserved[0]}; it is the metastore's own, for directories that were dropped"
        )
    stored = _require_target(unit.connection, target)
    refusal = _replica_refusal(unit.connection, wanted)
    if refusal is None and not unit.settings.compactor.has_hive_workers:
        refusal = _worker_refusal(stored, wanted)
    if refusal is not None:
        return CompactionResponse(
            id=None,
            is_accepted=False,
            state=CompactionState.REFUSED.word,
            error_message=refusal,
        )
    response = compaction_queue.enqueue(unit, wanted)
    if response.id is not None:
        queued = compaction_queue.get_queued(unit.connection, response.id)
        if queued is not None:
            unit.events.append(events.compaction_requested(queued, unit.now_seconds))
    return response


def _submit_for_cleanup(
    unit: UnitOfWork, request: CompactionRequest, write_id: WriteId, txn_id: TxnId
) -> bool:
    """Refused too: what names no directory, or says more than which."""
    if not request.properties.get(LOCATION) or set(request.properties) - {LOCATION, IF_PURGE}:
        raise MetaError(
            f"{request.target.name}: give the directory to clean as property {LOCATION}, and "
            f"nothing else but {IF_PURGE}"
        )
    return never_created.submit_for_cleanup(unit, request, write_id, txn_id)


def _mark_compacted(unit: UnitOfWork, compaction: Compaction) -> None:
    """Refused too: a rebalance that began before the database became a replica, or is fenced."""
    if compaction.type is CompactionType.REBALANCE:
        refusal = write_refusal(unit.connection, compaction.target.database)
        if refusal is not None:
            raise MetaError(f"{compaction.target.name} keeps the row ids that it has: {refusal}")
    compaction_queue.mark_compacted(unit.connection, compaction)


def _find_next_compaction(
    unit: UnitOfWork,
    worker_id: str,
    worker_version: str | None,
    pool_name: str | None = None,
    *,
    is_selective: bool = False,
) -> Compaction | None:
    entry = compaction_queue.find_next_compaction(
        unit, worker_id, worker_version, pool_name, is_selective=is_selective
    )
    if entry is not None:
        unit.points.append(points.compaction_started(entry))
    return entry


def _mark_cleaned(unit: UnitOfWork, compaction: Compaction) -> None:
    _mark_all_cleaned(unit, [compaction])


def _mark_all_cleaned(unit: UnitOfWork, compactions: Sequence[Compaction]) -> None:
    cleaning.mark_all_cleaned(unit, compactions)
    unit.points += [points.compaction_cleaned(compaction) for compaction in compactions]


def _mark_failed(unit: UnitOfWork, compaction: Compaction) -> None:
    ended = compaction_history.mark_failed(unit, compaction)
    if ended is not None:
        unit.events.append(events.compaction_failed(ended, unit.now_seconds))


def _mark_refused(unit: UnitOfWork, compaction: Compaction) -> None:
    ended = compaction_history.mark_refused(unit, compaction)
    if ended is not None:
        unit.points.append(points.compaction_stopped(ended))


def _abort_compactions(
    unit: UnitOfWork, ids: Sequence[CompactionId]
) -> Mapping[CompactionId, AbortOutcome]:
    outcome, aborted = compaction_history.abort_compactions(unit, ids)
    unit.points += map(points.compaction_stopped, aborted)
    return outcome


def _put_delta_count(connection: Connection, target: Target, count: DeltaCount, value: int) -> None:
    _require_target(connection, target)
    delta_counts.keep_delta_count(connection, target, count, value)


def _require_target(connection: Connection, target: Target) -> Table:
    stored = tables.require_table(connection, target.database, target.table)
    name = target.partition
    if name is not None and name not in partitions.existing_names(connection, stored, [name]):
        raise NoSuchObjectError(
            f"partition {name} of {stored.table.full_name} not found; name it as SHOW PARTITIONS "
            "does"
        )
    return stored.table


def _worker_refusal(table: Table, request: CompactionRequest) -> str | None:
    """Workers of hms-bridge never take such an entry; whoever names a pool knows its workers."""
    if request.pool_name or (request.type in DONE_HERE and not table.is_insert_only):
        return None
    what = (
        "insert-only tables"
        if request.type in DONE_HERE
        else f"{request.type.name.lower().replace('_', ' ')} compactions"
    )
    return (
        f"{request.target.name}: workers of hms-bridge do no {what}. If a Hive's workers take "
        "compactions here, name their pool (ALTER TABLE ... COMPACT '...' POOL 'name'), or set "
        "hms.bridge.compactor.hive.workers=true"
    )


def _replica_refusal(connection: Connection, request: CompactionRequest) -> str | None:
    """The initiator compacts a replica without changing row ids; others are not let in."""
    if request.is_automatic and request.type in DONE_HERE:
        return None
    if request.type in DONE_HERE:
        return compaction_refusal(connection, request.target.database)
    return write_refusal(connection, request.target.database)


class CompactionVerbs(VerbFamily):
    """ServedCompactions."""

    compact = writes(_compact)
    show_compactions = reads(sql(compaction_history.show_compactions))
    find_next_compaction = writes(_find_next_compaction)
    update_compactor_state = writes(sql(compaction_queue.update_compactor_state))
    set_hadoop_job_id = writes(sql(compaction_queue.set_hadoop_job_id))
    mark_compacted = writes(_mark_compacted)
    mark_failed = writes(_mark_failed)
    mark_refused = writes(_mark_refused)
    mark_cleaned = writes(_mark_cleaned)
    mark_all_cleaned = writes(_mark_all_cleaned)
    abort_compactions = writes(_abort_compactions)
    submit_for_cleanup = writes(_submit_for_cleanup)
    put_delta_count = writes(sql(_put_delta_count))
    remove_delta_count = writes(sql(delta_counts.forget_delta_count))
