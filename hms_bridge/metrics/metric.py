"""What a monitor reads: metrics with their meaning, and samples of them as text.

Every metric is a gauge, unless its name ends in ``_total``, or it has buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

_COUNTER = "_total"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is the whole of it, and ends in its ``unit``, if it has one (before
    ``_total``). ``buckets`` make a histogram: the highest value of each, ascending."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()

    @property
    def is_counter(self) -> bool:
        """Whether it only grows, until the program ends."""
        return self.name.endswith(_COUNTER)

    @property
    def type(self) -> str:
        """As OpenMetrics calls it."""
        return "histogram" if self.buckets else "counter" if self.is_counter else "gauge"

    def at(self, value: float | Spread, *labels: str) -> Sample:
        """A value of it, for these values of its labels."""
        return Sample(self, value, labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread over buckets: each counts in the lowest whose limit it does not exceed;
    ``counts`` has one number more, of what is above."""

    buckets: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def series(self) -> list[tuple[str, float]]:
        """How many values there are up to each limit, as Prometheus has it."""
        limits = [*(str(float(limit)) for limit in self.buckets), "+Inf"]
        return list(zip(limits, accumulate(self.counts), strict=True))


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric; of a histogram, the spread of its values."""

    metric: Metric
    value: float | Spread
    labels: tuple[str, ...] = ()


_FAMILIES: dict[str, Callable[..., Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def families(samples: Iterable[Sample]) -> list[Family]:
    """Samples by metric, in the order in which metrics come first."""
    by_metric: dict[Metric, Any] = {}
    for sample in samples:
        metric, value = sample.metric, sample.value
        if metric not in by_metric:
            kind = _FAMILIES[metric.type]
            by_metric[metric] = kind(
                metric.name, metric.doc, labels=metric.labels, unit=metric.unit
            )
        family = by_metric[metric]
        if isinstance(value, Spread):
            family.add_metric(sample.labels, value.series, value.sum)
        else:
            family.add_metric(sample.labels, value)
    return list(by_metric.values())


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
    families: Sequence[Family]

    def collect(self) -> Iterable[Family]:
        return self.families
