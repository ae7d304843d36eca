"""Expositions, read by Prometheus' own parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hms_bridge.metrics.cycle_metrics import CYCLE_METRICS
from hms_bridge.metrics.replica_metrics import REPLICA_METRICS
from hms_bridge.metrics.store_metrics import STORE_METRICS

METRICS = (*STORE_METRICS, *REPLICA_METRICS, *CYCLE_METRICS)
_HISTOGRAM_SERIES = ("_bucket", "_count", "_sum")
DECLARED = {
    name: metric
    for metric in METRICS
    for name in (
        [metric.name + series for series in _HISTOGRAM_SERIES] if metric.buckets else [metric.name]
    )
}
"""Metrics by the names of their series."""


def labels_of(name: str) -> tuple[str, ...]:
    """The labels that a series has."""
    own = DECLARED[name].labels
    return (*own, "le") if DECLARED[name].buckets and name.endswith("_bucket") else own


@dataclass(frozen=True)
class Exposition:
    """Values by metric, and by the values of its labels (in its own order)."""

    values: Mapping[str, Mapping[tuple[str, ...], float]]

    def of(self, name: str) -> Mapping[tuple[str, ...], float]:
        """Those of one metric; none if it is absent."""
        return self.values.get(name, {})

    def one(self, name: str, *labels: str) -> float:
        return self.values[name][labels]


def read_exposition(text: str) -> Exposition:
    """Every sample is of a metric that is declared, with its type, unit and labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            metric = DECLARED[sample.name]
            assert family.type == metric.type
            assert (family.unit, family.documentation) == (metric.unit, metric.doc)
            names = labels_of(sample.name)
            assert sample.labels.keys() == set(names)
            assert sample.timestamp is None  # node_exporter refuses them
            labels = tuple(sample.labels[label] for label in names)
            values = found.setdefault(sample.name, {})
            assert labels not in values
            values[labels] = sample.value
    return Exposition(found)


def get(url: str) -> tuple[int, str, str]:
    """Status, content type and text."""
    place = urlsplit(url)
    assert place.hostname is not None
    connection = HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        connection.request("GET", place.path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


def scrape(url: str) -> Exposition:
    status, kind, text = get(url)
    assert status == 200, text
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    return read_exposition(text)
