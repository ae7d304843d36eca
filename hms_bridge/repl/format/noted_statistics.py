"""Alterations of transactional tables that note statistics, and nothing else.

A Hive's INSERT into one alters it twice beside its commit: once for the time, once for the counted
rows and files (docs/hive/replication.md §35). Nobody who reads sees that. Into a table without
transactions there is no commit, and often nothing but such an alteration shows that files came.
"""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.properties import (
    ERASURE_CODED_COUNT,
    FILE_BYTES,
    FILE_COUNT,
    LAST_DDL_TIME,
    ROW_BYTES,
    ROW_COUNT,
    STATISTICS_BY,
)
from hms_bridge.model.statistics_state import ACCURATE
from hms_bridge.repl.format.event_payload import Payload

_NOTED = frozenset(
    {
        ACCURATE,
        STATISTICS_BY,
        f"{STATISTICS_BY}_VIA_STATS_TASK",
        FILE_COUNT,
        ERASURE_CODED_COUNT,
        ROW_COUNT,
        ROW_BYTES,
        FILE_BYTES,
        LAST_DDL_TIME,
    }
)


def notes_statistics_alone(event: NotificationEvent) -> bool:
    """Whether an event alters a transactional table, or a partition of one, in what was counted of
    it alone. False for what its message does not say, as one of many partitions
    (ALTER_PARTITIONS). Raises ReplError for a message that is damaged."""
    if event.type not in (EventType.ALTER_TABLE.value, EventType.ALTER_PARTITION.value):
        return False
    return counts_alone(Payload.of(event), is_table=event.type == EventType.ALTER_TABLE.value)


def counts_alone(payload: Payload, *, is_table: bool) -> bool:
    """The same of the payload of an ALTER_TABLE, else of an ALTER_PARTITION."""
    if payload.is_true("isTruncateOp"):
        return False
    altered = payload.altered(is_table=is_table)
    if altered is None:
        return False
    table, before, after = altered
    return table.is_transactional and _rest_of(before) == _rest_of(after)


def _rest_of(altered: Table | Partition) -> Table | Partition:
    kept = {name: value for name, value in altered.parameters.items() if name not in _NOTED}
    return replace(altered, parameters=kept, write_id=-1)
