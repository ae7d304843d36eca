"""Figures of replications and of queries, which HiveServer2 writes down and reads."""

from __future__ import annotations

from hms_bridge.errors import MetaError
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import limit_of
from hms_bridge.server.served_reports import ServedReports
from hms_bridge.wire.convert_report import (
    metric_from_struct,
    metric_to_struct,
    runtime_from_struct,
    runtime_to_struct,
)
from hms_bridge.wire.structs import Struct, hive

METRICS_MAX = 1000
"""In a call."""


class ReportCalls(Calls[ServedReports]):
    """Texts and bytes that mean nothing here."""

    @answers("add_replication_metrics", of="replicationMetricList")
    def add_metrics(self, request: Struct) -> None:
        structs = request.replicationMetricList or ()
        if len(structs) > METRICS_MAX:
            raise MetaError(f"{len(structs)} metrics were sent; send at most {METRICS_MAX}")
        self._store.add_replication_metrics([metric_from_struct(struct) for struct in structs])

    @answers("get_replication_metrics", of="rqst")
    def get_metrics(self, request: Struct) -> Struct:
        metrics = self._store.get_replication_metrics(
            request.policy, request.scheduledExecutionId, request.dumpExecutionId
        )
        return hive.ReplicationMetricList(
            replicationMetricList=[metric_to_struct(metric) for metric in metrics]
        )

    @answers("add_runtime_stats", of="stat")
    def add_runtime(self, struct: Struct) -> None:
        self._store.add_runtime_statistics(runtime_from_struct(struct))

    @answers("get_runtime_stats", of="rqst")
    def get_runtime(self, request: Struct) -> list[Struct]:
        """The newest, by weight."""
        statistics = self._store.get_runtime_statistics(
            limit_of(request.maxWeight), limit_of(request.maxCreateTime)
        )
        return list(map(runtime_to_struct, statistics))
