"""Rows of COMPACTION_QUEUE and COMPLETED_COMPACTIONS as records, and back.

A newer Hive and people write there, too. An entry that cannot be read here has the fault as its
error message, no properties, the state UNKNOWN for a strange letter, and for a strange type the
one that changes most, REBALANCE. It is shown, and counts for its target. Who acts on entries asks
:func:`is_readable` first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any

from sqlalchemy import ColumnElement, Integer, bindparam, func

from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, COMPLETED_COMPACTIONS
from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.property_text import parse_properties
from hms_bridge.model.shortened import shortened
from hms_bridge.model.target import Target

_LOG = logging.getLogger(__name__)

FETCH_MAX = 1000
"""How many targets one query hands out (Hive's metastore.compactor.fetch.size)."""

QUEUE_COLUMNS = tuple(c for c in COMPACTION_QUEUE.c if c.name != "CQ_META_INFO")
HISTORY_COLUMNS = tuple(c for c in COMPLETED_COMPACTIONS.c if c.name != "CC_META_INFO")
"""What records are made of. What a worker of Hive's left besides, in bytes, nobody here reads."""

_QUEUE_NAMES = tuple(column.name for column in QUEUE_COLUMNS)
_HISTORY_NAMES = tuple(column.name for column in HISTORY_COLUMNS)
STATES = {state.stored: state for state in CompactionState if state is not CompactionState.UNKNOWN}
_TYPES = {kind.stored: kind for kind in CompactionType}
_SHARED = tuple(
    column.name.removeprefix("CC_")
    for column in COMPLETED_COMPACTIONS.c
    if f"CQ_{column.name.removeprefix('CC_')}" in COMPACTION_QUEUE.c
)
_SHOWN_MAX = 100
_ZERO_IN_HISTORY = (
    "START", "HIGHEST_WRITE_ID", "NEXT_TXN_ID", "TXN_ID", "COMMIT_TIME", "NUMBER_OF_BUCKETS",
)  # fmt: skip
_NUMBERS = {
    prefix: tuple(column.name for column in columns if isinstance(column.type, Integer))
    for prefix, columns in (("CQ_", QUEUE_COLUMNS), ("CC_", HISTORY_COLUMNS))
}


def is_readable(row: Mapping[Any, Any], prefix: str = "CQ_") -> bool:
    """Whether an entry can be acted on. One that cannot stays as it is, and is named in the log."""
    fault = _fault_of(prefix, row)
    if fault is not None:
        _report(row[f"{prefix}ID"], fault)
    return fault is None


@lru_cache(maxsize=1000)
def _report(compaction_id: int, fault: str) -> None:
    """Once a process: workers look every few seconds."""
    _LOG.warning("compaction %d is passed over: %s", compaction_id, fault)


def from_queue(row: Mapping[Any, Any]) -> Compaction:
    """An entry of the queue."""
    return _record("CQ_", row)


def queue_fields(values: Sequence[Any]) -> dict[str, Any]:
    """A row of :data:`QUEUE_COLUMNS` by their names."""
    return dict(zip(_QUEUE_NAMES, values, strict=True))


def history_fields(values: Sequence[Any]) -> dict[str, Any]:
    """A row of :data:`HISTORY_COLUMNS` by their names."""
    return dict(zip(_HISTORY_NAMES, values, strict=True))


def from_history(row: Mapping[Any, Any]) -> Compaction:
    """An entry of the history."""
    return _record("CC_", row)


def ended_columns(
    ended_ms: ColumnElement[int], *, is_success: bool, has_message: bool
) -> dict[str, ColumnElement[Any]]:
    """The history's columns of an entry that ends, by name, as they come of a row of the queue. The
    parameter ``state``, with ``has_message`` also ``message``, are to be given.

    Numbers that were never set are 0 there, as Hive writes them (CompactionInfo), but for what
    succeeded, whose row Hive copies.
    """
    columns: dict[str, ColumnElement[Any]] = {
        f"CC_{name}": COMPACTION_QUEUE.c[f"CQ_{name}"] for name in _SHARED
    }
    if not is_success:
        columns |= {
            f"CC_{name}": func.coalesce(COMPACTION_QUEUE.c[f"CQ_{name}"], 0)
            for name in _ZERO_IN_HISTORY
        }
    columns |= {"CC_STATE": bindparam("state", type_=LETTER), "CC_END": ended_ms}
    if has_message:
        columns["CC_ERROR_MESSAGE"] = bindparam(
            "message", type_=COMPLETED_COMPACTIONS.c.CC_ERROR_MESSAGE.type
        )
    return columns


def queue_row(history: Mapping[Any, Any]) -> dict[str, Any]:
    """The queue row of an entry of the history that is to be cleaned again, at once."""
    row = {f"CQ_{name}": history[f"CC_{name}"] for name in _SHARED}
    return row | {
        "CQ_STATE": CompactionState.READY_FOR_CLEANING.stored,
        "CQ_CLEANER_START": None,
        "CQ_RETRY_RETENTION": 0,
    }


def _fault_of(prefix: str, row: Mapping[Any, Any]) -> str | None:
    """What cannot be read of an entry: column, content, what to do; None if nothing."""
    properties = row[f"{prefix}TBLPROPERTIES"]
    if row[f"{prefix}STATE"] not in STATES:
        what = f"{prefix}STATE {row[f'{prefix}STATE']!r} is not known here"
    elif row[f"{prefix}TYPE"] not in _TYPES:
        what = f"{prefix}TYPE {row[f'{prefix}TYPE']!r} is not known here"
    else:
        try:
            parse_properties(properties)
            return None
        except MetaError:
            what = f"{prefix}TBLPROPERTIES {shortened(properties, _SHOWN_MAX)!r} is malformed"
    return (
        f"{what}: no worker or cleaner of hms-bridge touches this entry; leave it to the Hive that "
        f"wrote it, or end it with Hive's ABORT COMPACTIONS {row[f'{prefix}ID']}"
    )


def _record(prefix: str, row: Mapping[Any, Any]) -> Compaction:
    """Raises TypeError for a text where a number belongs: the database's transaction names it."""

    def get(name: str) -> Any:
        return row.get(f"{prefix}{name}")

    for name in _NUMBERS[prefix]:
        if (value := row.get(name)) is not None:
            index(value)
    fault = _fault_of(prefix, row)
    highest, txn_id, next_txn_id = get("HIGHEST_WRITE_ID"), get("TXN_ID"), get("NEXT_TXN_ID")
    # A worker sets both: with its transaction, 0 is a bound below every write.
    is_unset = highest is None or (highest == 0 and not txn_id)
    return Compaction(
        id=CompactionId(get("ID")),
        target=Target(get("DATABASE"), get("TABLE"), get("PARTITION")),
        type=_TYPES.get(get("TYPE"), CompactionType.REBALANCE),
        state=STATES.get(get("STATE"), CompactionState.UNKNOWN),
        properties=parse_properties(get("TBLPROPERTIES")) if fault is None else {},
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
        error_message=fault or get("ERROR_MESSAGE"),
        retry_retention_ms=get("RETRY_RETENTION") or 0,
        pool_name=get("POOL_NAME"),
        bucket_count=_positive(get("NUMBER_OF_BUCKETS")),
        order_by=get("ORDER_BY"),
    )


def _positive(value: int | None) -> int | None:
    """Hive writes 0 or -1 for "none" in places."""
    return value if value is not None and value > 0 else None
