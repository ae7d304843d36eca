"""REPLICATION_METRICS and RUNTIME_STATS (Hive: ObjectStore.addReplicationMetrics, addRuntimeStat;
docs/hive/metastore.md §36)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.report_tables import REPLICATION_METRICS, RUNTIME_STATS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.model.report import ReplicationMetric, RuntimeStatistics

_RUNTIME_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MRuntimeStat"
_M = REPLICATION_METRICS.c
_R = RUNTIME_STATS.c
_METRIC = Columns(
    ReplicationMetric,
    execution_id="RM_SCHEDULED_EXECUTION_ID",
    policy="RM_POLICY",
    dump_execution_id="RM_DUMP_EXECUTION_ID",
    metadata="RM_METADATA",
    progress="RM_PROGRESS",
    message_format="MESSAGE_FORMAT",
)
_RUNTIME = Columns(RuntimeStatistics, weight="WEIGHT", payload="PAYLOAD", create_time="CREATE_TIME")


def put_metric(connection: Connection, metric: ReplicationMetric, now_seconds: int) -> None:
    """Write down one; of an execution that is known, only the texts that are given."""
    here = _M.RM_SCHEDULED_EXECUTION_ID == metric.execution_id
    if connection.execute(select(_M.RM_POLICY).where(here)).first() is None:
        values = {"RM_START_TIME": now_seconds, **_METRIC.values(metric)}
        connection.execute(insert(REPLICATION_METRICS).values(**values))
        return
    texts = {
        _M.RM_METADATA: metric.metadata,
        _M.RM_PROGRESS: metric.progress,
        _M.MESSAGE_FORMAT: metric.message_format,
    }
    given = {column: text for column, text in texts.items() if text}
    if given:
        connection.execute(update(REPLICATION_METRICS).where(here).values(given))


def find_metrics(
    connection: Connection,
    policy: str | None = None,
    execution: int | None = None,
    dump_execution: int | None = None,
) -> tuple[ReplicationMetric, ...]:
    """Of a policy, or an execution, or the executions that dumped for others; the newest first."""
    if policy is not None:
        where = _M.RM_POLICY == policy
    elif execution is not None:
        where = _M.RM_SCHEDULED_EXECUTION_ID == execution
    elif dump_execution is not None:
        where = _M.RM_DUMP_EXECUTION_ID == dump_execution
    else:
        return ()
    newest_first = _M.RM_SCHEDULED_EXECUTION_ID.desc()
    rows = connection.execute(select(REPLICATION_METRICS).where(where).order_by(newest_first))
    return tuple(_METRIC.read(row) for row in rows)


def forget_metrics(connection: Connection, before_seconds: int) -> None:
    """Remove those of executions that began before."""
    connection.execute(delete(REPLICATION_METRICS).where(_M.RM_START_TIME < before_seconds))


def insert_runtime(connection: Connection, statistics: RuntimeStatistics) -> None:
    """Write down one."""
    key = next_sequence_values(connection, _RUNTIME_SEQUENCE, 1)
    connection.execute(insert(RUNTIME_STATS).values(RS_ID=key, **_RUNTIME.values(statistics)))


def find_runtime(
    connection: Connection, weight_max: int = -1, before_seconds: int = -1
) -> tuple[RuntimeStatistics, ...]:
    """The newest first, until their weight is reached; a negative one means all. ``before_seconds``
    counts if it is positive."""
    query = select(RUNTIME_STATS).order_by(_R.CREATE_TIME.desc(), _R.RS_ID.desc())
    if before_seconds > 0:
        query = query.where(_R.CREATE_TIME < before_seconds)
    chosen: list[RuntimeStatistics] = []
    weight = 0
    for row in connection.execute(query):
        chosen.append(_RUNTIME.read(row))
        weight += row.WEIGHT
        if 0 <= weight_max <= weight:
            break
    return tuple(chosen)


def forget_runtime(connection: Connection, before_seconds: int) -> None:
    """Remove what was written down before."""
    connection.execute(delete(RUNTIME_STATS).where(_R.CREATE_TIME < before_seconds))


def put_metrics(
    connection: Connection, metrics: Sequence[ReplicationMetric], now_seconds: int
) -> None:
    """Write down several, in one order, whoever does."""
    for metric in sorted(metrics, key=lambda metric: metric.execution_id):
        put_metric(connection, metric, now_seconds)
