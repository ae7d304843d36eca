"""What other services write down: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.model.report import ReplicationMetric, RuntimeStatistics
from hms_bridge.wire.fields import both_ways, filled, or_else, required
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

metric_to_struct, metric_from_struct = both_ways(
    ReplicationMetric,
    "ReplicationMetrics",
    execution_id=required("scheduledExecutionId"),
    policy=filled("policy"),
    dump_execution_id=or_else("dumpExecutionId", 0),
    metadata="metadata",
    progress="progress",
    message_format="messageFormat",
)


def runtime_to_struct(statistics: RuntimeStatistics) -> Struct:
    """RuntimeStat."""
    return hive.RuntimeStat(
        createTime=statistics.create_time, weight=statistics.weight, payload=statistics.payload
    )


def runtime_from_struct(struct: Struct) -> RuntimeStatistics:
    """Raises MetaError if weight or payload is missing; the time is the metastore's."""
    return RuntimeStatistics(
        weight=given(struct.weight, "RuntimeStat.weight"),
        payload=given(struct.payload, "RuntimeStat.payload"),
    )
