"""The page that lists the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_bridge.metrics.cycle_metrics import CYCLE_METRICS
from hms_bridge.metrics.metric import Metric
from hms_bridge.metrics.replica_metrics import REPLICA_METRICS
from hms_bridge.metrics.store_metrics import STORE_METRICS


def metrics_page() -> str:
    """The whole text of docs/reference/metrics.md."""
    return "\n".join(
        [
            "# Metrics",
            "",
            "OpenMetrics; how to collect them, and alerts: [monitor](../howto/monitor.md).",
            "A figure that is not known is absent, never 0.",
            "",
            "## Of a server: hms-bridge serve --metrics-port",
            "",
            *_table(STORE_METRICS),
            "",
            "## Of a replica: hms-bridge repl lag --metrics",
            "",
            *_table(REPLICA_METRICS),
            "",
            "## Of policies: hms-bridge repl run --metrics, --metrics-port",
            "",
            *_table(CYCLE_METRICS),
            "",
        ]
    )


def _table(metrics: Sequence[Metric]) -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "|---|---|---|---|"
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.type} | {labels} | {metric.doc} |"
