"""What ``repl run`` shows a monitor: the sums of its policies' cycles as samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hms_bridge.metrics.collector import Figure
from hms_bridge.metrics.metric import Metric, Sample
from hms_bridge.metrics.store_metrics import FIGURE_FAILURES
from hms_bridge.model.replication import CycleOutcome, PolicyTotals
from hms_bridge.policy_store import PolicyStore

_POLICY = ("policy",)
_COUNTED = tuple(outcome for outcome in CycleOutcome if outcome is not CycleOutcome.RUNNING)

CYCLES = Metric(
    "hms_bridge_policy_cycles_total",
    "Cycles of the policy that are over: replicated, nothing new, failed (repl history says why), "
    "interrupted (its process was killed, or told to stop).",
    ("policy", "outcome"),
)
LAST_SUCCESS = Metric(
    "hms_bridge_policy_last_success_timestamp_seconds",
    "When the last cycle ended that left the replica with what its source had; absent before the "
    "first one.",
    _POLICY,
    "seconds",
)
LAST_DURATION = Metric(
    "hms_bridge_policy_last_cycle_duration_seconds",
    "How long the last cycle took, whatever became of it.",
    _POLICY,
    "seconds",
)
EVENTS_APPLIED = Metric(
    "hms_bridge_policy_applied_events_total", "Events that cycles applied to the replica.", _POLICY
)
BYTES_COPIED = Metric(
    "hms_bridge_policy_copied_bytes_total",
    "Bytes of files that cycles copied to the replica.",
    _POLICY,
    "bytes",
)
PAUSED = Metric(
    "hms_bridge_policy_paused",
    "Whether the policy is paused, 1 or 0; a paused one has no cycles.",
    _POLICY,
)

CYCLE_METRICS = (
    CYCLES, LAST_SUCCESS, LAST_DURATION, EVENTS_APPLIED, BYTES_COPIED, PAUSED, FIGURE_FAILURES,
)  # fmt: skip
"""Everything that ``repl run`` may show."""


def cycle_figure(store: PolicyStore, policies: Collection[str] | None) -> Figure:
    """Of these policies, or of all that there are when it is asked."""
    return Figure("cycles", lambda: cycle_samples(store, policies))


def cycle_samples(store: PolicyStore, policies: Collection[str] | None) -> Sequence[Sample]:
    """Of the policies of these names, or of all (None); reads the store once."""
    return [
        sample
        for totals in store.get_totals()
        if policies is None or totals.policy in policies
        for sample in _samples(totals)
    ]


def _samples(totals: PolicyTotals) -> Iterator[Sample]:
    name = totals.policy
    for outcome in _COUNTED:  # also of what never happened: the first failure is an increase
        yield CYCLES.at(totals.cycle_counts.get(outcome, 0), name, outcome.value)
    yield EVENTS_APPLIED.at(totals.event_count, name)
    yield BYTES_COPIED.at(totals.byte_count, name)
    yield PAUSED.at(int(totals.is_paused), name)
    if totals.last_success_ms is not None:
        yield LAST_SUCCESS.at(totals.last_success_ms / 1000, name)
    if totals.last_duration_ms is not None:
        yield LAST_DURATION.at(totals.last_duration_ms / 1000, name)
