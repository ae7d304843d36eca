"""What a monitor reads of a replica: its status as samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hms_bridge.metrics.metric import Metric, Sample
from hms_bridge.repl.status.report import StatusReport

_REPLICA = ("database", "metastore")

STATE = Metric(
    "hms_bridge_replica_state",
    "Verdict on the replica, as the exit codes of Nagios plugins: 0 well, 1 warning, 2 critical, "
    "3 unknown.",
    _REPLICA,
)
LOOKED = Metric(
    "hms_bridge_replica_looked_timestamp_seconds",
    "When repl lag looked. An old time means that it does not run.",
    _REPLICA,
    "seconds",
)
RPO = Metric(
    "hms_bridge_replica_rpo_seconds",
    "Age of the oldest commit or change that the replica lacks, 0 if it lacks none; absent if that "
    "is unknown.",
    _REPLICA,
    "seconds",
)
COMMITS_BEHIND = Metric(
    "hms_bridge_replica_behind_commits", "Commits that the replica lacks.", _REPLICA
)
CHANGES_BEHIND = Metric(
    "hms_bridge_replica_behind_changes", "Other changes that it lacks.", _REPLICA
)
TO_COPY = Metric(
    "hms_bridge_replica_to_copy_bytes",
    "What is still to be copied to it; absent without --bytes.",
    _REPLICA,
    "bytes",
)
HEADROOM = Metric(
    "hms_bridge_replica_headroom_seconds",
    "How long the replica can still follow before a limit, the event log, the archive or the "
    "archive's budget, ends that; negative: since when it may be lost. Absent for a limit that "
    "does not threaten it.",
    (*_REPLICA, "limit"),
    "seconds",
)
TROUBLES = Metric(
    "hms_bridge_replica_troubles",
    "Reasons why the replica cannot follow as it is; repl status names them.",
    _REPLICA,
)
LAST_LOADED = Metric(
    "hms_bridge_replica_last_loaded_timestamp_seconds",
    "When the last dump was loaded, of those that are still there.",
    _REPLICA,
    "seconds",
)

REPLICA_METRICS = (
    STATE, LOOKED, RPO, COMMITS_BEHIND, CHANGES_BEHIND, TO_COPY, HEADROOM, TROUBLES, LAST_LOADED,
)  # fmt: skip
"""Everything that ``repl lag --metrics`` may write."""


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """One replica: its database, its metastore, and how it was found at a time; no ``report``
    where nothing is known."""

    database: str
    metastore: str
    state: int
    looked_ms: int
    report: StatusReport | None


def known_replicas(path: Path) -> list[tuple[str, str]]:
    """Database and metastore of the replicas that an earlier file names; none where there is none
    that can be read."""
    try:
        text = path.read_text(encoding="utf-8")
        families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    except (OSError, ValueError):
        return []
    states = [family for family in families if family.name == STATE.name]
    return [
        (sample.labels["database"], sample.labels["metastore"])
        for family in states
        for sample in family.samples
        if sample.labels.keys() >= set(_REPLICA)
    ]


def replica_samples(replicas: Iterable[ReplicaFigures]) -> list[Sample]:
    """Of all of them; what is not known is left out."""
    return [sample for replica in replicas for sample in _samples(replica)]


def _samples(replica: ReplicaFigures) -> Iterator[Sample]:
    labels = (replica.database, replica.metastore)
    yield STATE.at(replica.state, *labels)
    yield LOOKED.at(replica.looked_ms / 1000, *labels)
    report = replica.report
    if report is None:
        return
    yield TROUBLES.at(len(report.troubles), *labels)
    backlog, loaded_ms = report.backlog, report.last_loaded_ms
    known = (
        (RPO, report.rpo_seconds),
        (COMMITS_BEHIND, backlog.commits if backlog else None),
        (CHANGES_BEHIND, backlog.changes if backlog else None),
        (TO_COPY, report.bytes_to_copy),
        (LAST_LOADED, None if loaded_ms is None else loaded_ms / 1000),
    )
    for metric, value in known:
        if value is not None:
            yield metric.at(value, *labels)
    for headroom in report.headrooms:
        yield HEADROOM.at(headroom.seconds, *labels, headroom.limit)
