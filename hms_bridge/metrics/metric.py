"""What is told to a monitor: metrics with their meaning, and samples of them as text.

Every metric is a gauge, unless its name ends in ``_total``: readers of the older text format
(node_exporter's textfile collector) know no more types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

_COUNTER = "_total"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is the whole of it, and ends in its ``unit``, if it has one."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    unit: str = ""

    @property
    def is_counter(self) -> bool:
        """Whether it only grows, until the program ends."""
        return self.name.endswith(_COUNTER)

    def at(self, value: float, *labels: str) -> Sample:
        """A value of it, for these values of its labels."""
        return Sample(self, value, labels)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


def families(samples: Iterable[Sample]) -> list[Family]:
    """Samples by metric, in the order in which metrics come first."""
    found: dict[Metric, GaugeMetricFamily | CounterMetricFamily] = {}
    for sample in samples:
        metric = sample.metric
        if metric not in found:
            kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            found[metric] = kind(metric.name, metric.doc, labels=metric.labels, unit=metric.unit)
        found[metric].add_metric(sample.labels, sample.value)
    return list(found.values())


def openmetrics_text(samples: Sequence[Sample]) -> bytes:
    """A whole exposition, to its ``# EOF``."""
    return collected_text(_Given(families(samples)))


def collected_text(collector: Collector) -> bytes:
    """The same of what a collector finds now."""
    registry = CollectorRegistry()
    registry.register(collector)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # it has no types
    return text


@dataclass(frozen=True, slots=True, eq=False)
class _Given(Collector):
    found: Sequence[Family]

    def collect(self) -> Iterable[Family]:
        return self.found
