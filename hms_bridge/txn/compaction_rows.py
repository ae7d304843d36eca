"""Rows of COMPACTION_QUEUE and COMPLETED_COMPACTIONS as records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, COMPLETED_COMPACTIONS
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.property_text import parse_properties
from hms_bridge.model.target import Target

FETCH_MAX = 1000
"""How many targets one query hands out (Hive's metastore.compactor.fetch.size)."""

_STATES = {state.stored: state for state in CompactionState}
_TYPES = {kind.stored: kind for kind in CompactionType}
_SHARED = tuple(
    column.name.removeprefix("CC_")
    for column in COMPLETED_COMPACTIONS.c
    if f"CQ_{column.name.removeprefix('CC_')}" in COMPACTION_QUEUE.c
)
_ZERO_IN_HISTORY = (
    "START", "HIGHEST_WRITE_ID", "NEXT_TXN_ID", "TXN_ID", "COMMIT_TIME", "NUMBER_OF_BUCKETS",
)  # fmt: skip


def from_queue(row: Mapping[Any, Any]) -> Compaction:
    """An entry of the queue."""
    return _record("CQ_", row)


def from_history(row: Mapping[Any, Any]) -> Compaction:
    """An entry of the history."""
    return _record("CC_", row)


def history_row(
    queue_row: Mapping[Any, Any], state: CompactionState, ended_ms: int, **changes: Any
) -> dict[str, Any]:
    """The history row of a queue row that ended; ``changes`` are columns without their prefix.

    Numbers that were never set are 0 there, as Hive writes them (CompactionInfo), but for what
    succeeded, whose row Hive copies.
    """
    row = {f"CC_{name}": queue_row[f"CQ_{name}"] for name in _SHARED}
    if state is not CompactionState.SUCCEEDED:
        row |= {f"CC_{name}": 0 for name in _ZERO_IN_HISTORY if row[f"CC_{name}"] is None}
    row |= {"CC_STATE": state.stored, "CC_END": ended_ms}
    return row | {f"CC_{name}": value for name, value in changes.items()}


def queue_row(history: Mapping[Any, Any]) -> dict[str, Any]:
    """The queue row of an entry of the history that is to be cleaned again, at once."""
    row = {f"CQ_{name}": history[f"CC_{name}"] for name in _SHARED}
    return row | {
        "CQ_STATE": CompactionState.READY_FOR_CLEANING.stored,
        "CQ_CLEANER_START": None,
        "CQ_RETRY_RETENTION": 0,
    }


def _record(prefix: str, row: Mapping[Any, Any]) -> Compaction:
    def get(name: str) -> Any:
        return row.get(f"{prefix}{name}")

    highest, txn_id, next_txn_id = get("HIGHEST_WRITE_ID"), get("TXN_ID"), get("NEXT_TXN_ID")
    # A worker sets both: with its transaction, 0 is a bound below every write.
    is_unset = highest is None or (highest == 0 and not txn_id)
    return Compaction(
        id=CompactionId(get("ID")),
        target=Target(get("DATABASE"), get("TABLE"), get("PARTITION")),
        type=_TYPES[get("TYPE")],
        state=_STATES[get("STATE")],
        properties=parse_properties(get("TBLPROPERTIES")),
        worker_id=get("WORKER_ID"),
        worker_version=get("WORKER_VERSION"),
        initiator_id=get("INITIATOR_ID"),
        initiator_version=get("INITIATOR_VERSION"),
        enqueued_ms=get("ENQUEUE_TIME"),
        started_ms=_positive(get("START")),
        ended_ms=get("END"),
        committed_ms=_positive(get("COMMIT_TIME")),
        cleaner_started_ms=_positive(get("CLEANER_START")),
        run_as=get("RUN_AS"),
        highest_write_id=None if is_unset else WriteId(highest),
        txn_id=None if not txn_id else TxnId(txn_id),
        next_txn_id=None if not next_txn_id else TxnId(next_txn_id),
        hadoop_job_id=get("HADOOP_JOB_ID"),
        error_message=get("ERROR_MESSAGE"),
        retry_retention_ms=get("RETRY_RETENTION") or 0,
        pool_name=get("POOL_NAME"),
        bucket_count=_positive(get("NUMBER_OF_BUCKETS")),
        order_by=get("ORDER_BY"),
    )


def _positive(value: int | None) -> int | None:
    """Hive writes 0 or -1 for "none" in places."""
    return value if value is not None and value > 0 else None
