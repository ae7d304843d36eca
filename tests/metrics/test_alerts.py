"""The alert rules ask for metrics, labels and values that are told."""

from __future__ import annotations

import re
from typing import Any

import pytest
import strictyaml

from hms_bridge.model.call import CallOutcome
from hms_bridge.model.figures import QUEUED_STATES
from hms_bridge.model.replication import CycleOutcome
from tests.support.golden import CHECKOUT
from tests.support.openmetrics import DECLARED, METRICS, labels_of

FILE = CHECKOUT / "conf" / "prometheus-alerts.yml"
WORDS = {
    "or", "and", "unless", "time", "increase", "rate", "delta", "absent", "max", "min",
    "last_over_time",
}  # fmt: skip
PROMETHEUS_OWN = {"up": {"job", "instance"}}
VALUES = {
    ("hms_bridge_open_transactions", "origin"): {"own", "replayed"},
    ("hms_bridge_oldest_open_transaction_age_seconds", "origin"): {"own", "replayed"},
    ("hms_bridge_locks", "state"): {"acquired", "waiting"},
    ("hms_bridge_compactions", "state"): {state.word for state in QUEUED_STATES},
    ("hms_bridge_archive_intents", "state"): {"open", "abandoned"},
    ("hms_bridge_call_duration_seconds_count", "outcome"): {one.value for one in CallOutcome},
    ("hms_bridge_policy_cycles_total", "outcome"): {one.value for one in CycleOutcome},
}
_SELECTOR = re.compile(r"\b([a-zA-Z_]\w*)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*=\s*"([^"]*)"')


def _rules() -> list[dict[str, Any]]:
    document = strictyaml.load(FILE.read_text()).data
    return [rule for group in document["groups"] for rule in group["rules"]]


RULES = _rules()


def _selectors(expression: str) -> list[tuple[str, dict[str, str]]]:
    """Metrics that an expression names, with what it asks of their labels."""
    without_spans = re.sub(r"\[\w+\]", "", expression)
    return [
        (name, dict(_MATCHER.findall(matchers)))
        for name, matchers in _SELECTOR.findall(without_spans)
        if name not in WORDS
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_what_is_told(rule: dict[str, Any]) -> None:
    selectors = _selectors(rule["expr"])
    assert selectors
    for name, wanted in selectors:
        labels = PROMETHEUS_OWN.get(name)
        if labels is None:
            assert name in DECLARED, name
            labels = set(labels_of(name))
        assert wanted.keys() <= labels
        for label, value in wanted.items():
            assert value in VALUES.get((name, label), {value})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "action"}
    told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    for name, _ in _selectors(rule["expr"]):
        own = labels_of(name) if name in DECLARED else ()
        assert told <= {*own, "instance", "job"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_each_alert_has_one_name_and_is_on_the_page() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))
    page = (CHECKOUT / "docs" / "howto" / "monitor.md").read_text()
    short = [name.removeprefix("HmsBridgeReplica") for name in names]
    assert [
        n for n, s in zip(names, short, strict=True) if n not in page and f"…{s}" not in page
    ] == []


@pytest.mark.parametrize(
    "text", ["hms_bridge_open_transaction > 1", 'hms_bridge_locks{kind="x"} > 1']
)
def test_a_metric_or_label_that_is_not_told_is_found(text: str) -> None:
    with pytest.raises(AssertionError):
        test_a_rule_asks_for_what_is_told({"expr": text})


def test_metrics_have_their_unit_last_and_one_prefix() -> None:
    for metric in METRICS:
        name = metric.name
        assert name.startswith("hms_bridge_")
        assert metric.doc.endswith(".")
        quantity = name.removesuffix("_total")
        units = [unit for unit in ("seconds", "bytes") if quantity.endswith(f"_{unit}")]
        assert [metric.unit] == (units or [""]), name
