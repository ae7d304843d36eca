"""Figures that HiveServer2 writes down and reads again (docs/hive/metastore.md §36)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import MetastoreError
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.simulated_clock import SimulatedClock

DAY = 86_400


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def served(tmp_path: Path, clock: SimulatedClock) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path, clock) as served:
        yield served


def _add(served: ServedMetastore, *metrics: Struct) -> None:
    request = hive.ReplicationMetricList(replicationMetricList=list(metrics))
    served.call("add_replication_metrics", replicationMetricList=request)


def _metric(execution: int, policy: str = "p", **more: Any) -> Struct:
    fields = {"dumpExecutionId": 1, "metadata": "m", "progress": "a", "messageFormat": "json-0.2"}
    return hive.ReplicationMetrics(scheduledExecutionId=execution, policy=policy, **(fields | more))


def _executions(served: ServedMetastore, **wanted: Any) -> list[int]:
    request = hive.GetReplicationMetricsRequest(**wanted)
    found = served.call("get_replication_metrics", rqst=request).replicationMetricList
    return [metric.scheduledExecutionId for metric in found]


def test_metrics_are_found_by_policy_or_execution(served: ServedMetastore) -> None:
    _add(served, _metric(2), _metric(1), _metric(3, "other", dumpExecutionId=2))
    assert _executions(served, policy="p") == [2, 1]
    assert _executions(served, scheduledExecutionId=3) == [3]
    assert _executions(served, dumpExecutionId=1) == [2, 1]
    assert _executions(served) == _executions(served, policy="none") == []
    _add(served, hive.ReplicationMetrics(scheduledExecutionId=1, policy="p", progress="b"))
    request = hive.GetReplicationMetricsRequest(scheduledExecutionId=1)
    (metric,) = served.call("get_replication_metrics", rqst=request).replicationMetricList
    assert metric == _metric(1, progress="b")


def test_old_metrics_go(served: ServedMetastore, clock: SimulatedClock) -> None:
    _add(served, _metric(1))
    clock.sleep_seconds(7 * DAY + 1)
    _add(served, _metric(2))
    assert _executions(served, policy="p") == [2]


def test_metrics_are_bounded(served: ServedMetastore) -> None:
    unnumbered = hive.ReplicationMetrics(policy="p")
    for wrong in (_metric(1, "p" * 257), _metric(1, messageFormat="x" * 17), unnumbered):
        with pytest.raises(MetastoreError):
            _add(served, _metric(2), wrong)
    assert _executions(served, policy="p") == []
    with pytest.raises(MetastoreError, match="send at most 1000"):
        _add(served, *(_metric(number) for number in range(1001)))


def test_a_text_that_is_too_long_takes_no_other_with_it(served: ServedMetastore) -> None:
    _add(served, _metric(1, progress="x" * 10_001), _metric(2, metadata="m" * 4001, progress=None))
    request = hive.GetReplicationMetricsRequest(policy="p")
    second, first = served.call("get_replication_metrics", rqst=request).replicationMetricList
    assert (first.metadata, first.progress) == ("m", "RM_Progress limit exceeded to 10001")
    assert (second.metadata, second.progress) == (None, "RM_Metadata limit exceeded to 4001")


def _weights(served: ServedMetastore, weight: int, before: int = -1) -> list[int]:
    request = hive.GetRuntimeStatsRequest(maxWeight=weight, maxCreateTime=before)
    return [stat.weight for stat in served.call("get_runtime_stats", rqst=request)]


def test_the_newest_runtime_statistics_come_until_their_weight_is_reached(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    for weight in (1, 2, 3):
        stat = hive.RuntimeStat(createTime=7, weight=weight, payload=bytes([weight, 0, 255]))
        served.call("add_runtime_stats", stat=stat)
        clock.sleep_seconds(1)
    now = clock.now_ms() // 1000
    assert _weights(served, -1) == [3, 2, 1]
    assert _weights(served, 3) == [3]
    assert _weights(served, 4) == [3, 2]
    assert _weights(served, 3, now - 1) == [2, 1]
    (newest,) = served.call("get_runtime_stats", rqst=hive.GetRuntimeStatsRequest(maxWeight=1))
    assert newest == hive.RuntimeStat(createTime=now - 1, weight=3, payload=b"\x03\x00\xff")
    clock.sleep_seconds(3 * DAY)
    served.call("add_runtime_stats", stat=hive.RuntimeStat(weight=4, payload=b""))
    assert _weights(served, -1) == [4]
