"""Verbs of what other services write down. What is old goes when something new comes; Hive has a
task for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hms_bridge.backend.work import sql
from hms_bridge.catalog import reports
from hms_bridge.catalog.limits import METRIC_PROGRESS_LENGTH_MAX, TEXT_LENGTH_MAX, check_metric
from hms_bridge.model.report import ReplicationMetric, RuntimeStatistics
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes


def _add_metrics(unit: UnitOfWork, metrics: Sequence[ReplicationMetric]) -> None:
    for metric in metrics:
        check_metric(metric)
    now = unit.now_seconds
    reports.put_metrics(unit.connection, list(map(_fitting, metrics)), now)
    reports.forget_metrics(unit.connection, now - unit.settings.reports.metric_age_max_ms // 1000)


def _fitting(metric: ReplicationMetric) -> ReplicationMetric:
    """A text that is too long is replaced by how long it was, as Hive does: HiveServer2 sends those
    of several replications together, and would lose all of them."""
    metadata, progress = metric.metadata or "", metric.progress or ""
    if len(progress) > METRIC_PROGRESS_LENGTH_MAX:
        metric = replace(metric, progress=f"RM_Progress limit exceeded to {len(progress)}")
    if len(metadata) > TEXT_LENGTH_MAX:
        text = f"RM_Metadata limit exceeded to {len(metadata)}"
        metric = replace(metric, metadata=None, progress=metric.progress or text)
    return metric


def _add_runtime(unit: UnitOfWork, statistics: RuntimeStatistics) -> None:
    now = unit.now_seconds
    reports.insert_runtime(unit.connection, replace(statistics, create_time=now))
    age_max = unit.settings.reports.runtime_statistics_age_max_ms // 1000
    reports.forget_runtime(unit.connection, now - age_max)


class ReportVerbs(VerbFamily):
    """The ServedReports."""

    add_replication_metrics = writes(_add_metrics)
    get_replication_metrics = reads(sql(reports.find_metrics))
    add_runtime_statistics = writes(_add_runtime)
    get_runtime_statistics = reads(sql(reports.find_runtime))
