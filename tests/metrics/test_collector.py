"""Each figure by itself: what fails or is slow takes no other with it, and is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import pytest

from hms_bridge.errors import BackendError
from hms_bridge.metrics.collector import Figure, FigureCollector
from hms_bridge.metrics.metric import Sample, collected_text
from hms_bridge.metrics.store_metrics import ABORTED_TXNS, LOCKS, PINS
from tests.support.openmetrics import Exposition, read_exposition

FAILURES = "hms_bridge_figure_failures_total"


def _collector(*figures: tuple[str, Callable[[], Sequence[Sample]]]) -> FigureCollector:
    return FigureCollector([Figure(name, ask) for name, ask in figures], timeout_ms=300)


def _scrape(collector: FigureCollector) -> Exposition:
    return read_exposition(collected_text(collector).decode())


def _refuse() -> Sequence[Sample]:
    raise BackendError("the database is gone")


def test_what_was_told_is_in_the_text() -> None:
    found = _scrape(
        _collector(
            ("a", lambda: [LOCKS.at(2, "acquired"), PINS.at(1)]),
            ("b", lambda: [ABORTED_TXNS.at(7)]),
        )
    )
    assert found.of("hms_bridge_locks") == {("acquired",): 2}
    assert found.one("hms_bridge_archive_pins") == 1
    assert found.one("hms_bridge_aborted_transactions") == 7
    assert found.of(FAILURES) == {("a",): 0, ("b",): 0}


def test_a_figure_that_fails_is_counted_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = iter([_refuse, _refuse, lambda: [PINS.at(1)], _refuse])
    collector = _collector(
        ("bad", lambda: list(next(asked)())), ("good", lambda: [LOCKS.at(1, "waiting")])
    )
    with caplog.at_level(logging.WARNING):
        for count, pins in ((1, {}), (2, {}), (2, {(): 1.0}), (3, {})):
            found = _scrape(collector)
            assert found.of(FAILURES) == {("bad",): count, ("good",): 0}
            assert found.of("hms_bridge_archive_pins") == pins
            assert found.one("hms_bridge_locks", "waiting") == 1
    told = [record.getMessage() for record in caplog.records]
    assert told == ["metrics: the figures of bad cannot be read: the database is gone"] * 2


def test_a_slow_figure_is_left_out_and_not_asked_again_before_it_has_answered() -> None:
    go_on, asked = threading.Event(), []

    def slow() -> Sequence[Sample]:
        asked.append(1)
        assert go_on.wait(60)
        return [PINS.at(len(asked))]

    collector = _collector(("slow", slow), ("good", lambda: [LOCKS.at(1, "waiting")]))
    for count in (1, 2, 3):
        found = _scrape(collector)
        assert found.of(FAILURES) == {("slow",): count, ("good",): 0}
        assert found.of("hms_bridge_archive_pins") == {}
        assert found.one("hms_bridge_locks", "waiting") == 1
    assert len(asked) == 1
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "metrics-slow":
            thread.join(60)
    # What it was asked first is old by now: it is asked anew.
    assert _scrape(collector).one("hms_bridge_archive_pins") == 2


def test_label_values_of_any_text_can_be_read_back() -> None:
    name = 'a "quoted\\ name\nin two lines, ä'
    assert _scrape(_collector(("a", lambda: [LOCKS.at(1, name)]))).of("hms_bridge_locks") == {
        (name,): 1
    }
