"""COMPACTION_METRICS_CACHE: how many deltas tables and partitions have, where they are many.

Hive: UpdateCompactionMetricsDataFunction, RemoveCompactionMetricsDataCommand
(docs/hive/metastore.md §25).
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, insert, update

from hms_bridge.backend.schema.txn_tables import COMPACTION_METRICS_CACHE
from hms_bridge.model.compaction import DeltaCount
from hms_bridge.model.target import Target

_C = COMPACTION_METRICS_CACHE.c


def keep_delta_count(connection: Connection, target: Target, count: DeltaCount, value: int) -> None:
    """Replace what is known of exactly this target; its version counts how often."""
    is_target = _C.CMC_PARTITION.is_not_distinct_from(target.partition)
    where = (*_of_table(target, count), is_target)
    changed = connection.execute(
        update(COMPACTION_METRICS_CACHE)
        .where(*where)
        .values(CMC_METRIC_VALUE=value, CMC_VERSION=_C.CMC_VERSION + 1)
    )
    if changed.rowcount == 0:
        connection.execute(
            insert(COMPACTION_METRICS_CACHE).values(
                CMC_DATABASE=target.database,
                CMC_TABLE=target.table,
                CMC_PARTITION=target.partition,
                CMC_METRIC_TYPE=count.stored,
                CMC_METRIC_VALUE=value,
                CMC_VERSION=1,
            )
        )


def forget_delta_count(connection: Connection, target: Target, count: DeltaCount) -> None:
    """Of a partition; of a table and all its partitions without one."""
    where = _of_table(target, count)
    if target.partition is not None:
        where = (*where, _C.CMC_PARTITION == target.partition)
    connection.execute(delete(COMPACTION_METRICS_CACHE).where(*where))


def _of_table(target: Target, count: DeltaCount) -> tuple[ColumnElement[bool], ...]:
    return (
        _C.CMC_DATABASE == target.database,
        _C.CMC_TABLE == target.table,
        _C.CMC_METRIC_TYPE == count.stored,
    )
