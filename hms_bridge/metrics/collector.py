"""Asks for figures at the time of a scrape, and waits for none of them longer than allowed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from hms_bridge.metrics.metric import Sample, families
from hms_bridge.metrics.store_metrics import FIGURE_FAILURES
from hms_bridge.shared_numbers import shared_numbers

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Figure:
    """Figures, and who knows them."""

    name: str
    ask: Callable[[], Sequence[Sample]]


@dataclass(slots=True)
class _Inquiry:
    """One question on a thread of its own, which may take for ever."""

    figure: Figure
    answer: Sequence[Sample] | None = None
    error: Exception | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(
            target=self._run, name=f"metrics-{self.figure.name}", daemon=True
        )

    def _run(self) -> None:
        try:
            self.answer = self.figure.ask()
        except Exception as error:  # the border: one figure must not fail the others
            self.error = error


class FigureCollector(Collector):
    """Figures, and how often each could not be read.

    A scrape ends after ``timeout_ms``. What has not answered by then is left out of it, and is not
    asked again before it has answered: each figure has one thread at most. ``failures``: how often
    each has failed in an earlier process, at least as many numbers as there are figures.
    """

    def __init__(
        self,
        figures: Sequence[Figure],
        *,
        timeout_ms: int,
        failures: memoryview[float] | None = None,
    ) -> None:
        self._figures = figures
        self._timeout_seconds = timeout_ms / 1000
        self._places = {figure.name: number for number, figure in enumerate(figures)}
        self._failures = shared_numbers(len(figures)) if failures is None else failures
        self._is_failing: set[str] = set()
        self._slow: dict[str, _Inquiry] = {}
        self._lock = threading.Lock()

    def collect(self) -> Iterable[Family]:
        """What can be read now. Scrapes that come at the same time follow each other."""
        with self._lock:
            return families(self._samples())

    def _samples(self) -> list[Sample]:
        deadline = time.monotonic() + self._timeout_seconds
        asked = {figure.name: self._asked(figure) for figure in self._figures}
        samples: list[Sample] = []
        for name, inquiry in asked.items():
            if inquiry is None:
                samples += self._failed(name, "an earlier scrape's question is not answered yet")
            else:
                inquiry.thread.join(max(0.0, deadline - time.monotonic()))
                samples += self._answer(inquiry)
        failures = [(name, int(self._failures[place])) for name, place in self._places.items()]
        return samples + [FIGURE_FAILURES.at(count, name) for name, count in failures]

    def _asked(self, figure: Figure) -> _Inquiry | None:
        slow = self._slow.pop(figure.name, None)
        if slow is not None and slow.thread.is_alive():
            self._slow[figure.name] = slow
            return None
        inquiry = _Inquiry(figure)
        inquiry.thread.start()
        return inquiry

    def _answer(self, inquiry: _Inquiry) -> Sequence[Sample]:
        name = inquiry.figure.name
        if inquiry.thread.is_alive():
            self._slow[name] = inquiry
            return self._failed(name, f"no answer within {self._timeout_seconds:g} s")
        if inquiry.answer is None:
            return self._failed(name, str(inquiry.error) or type(inquiry.error).__name__)
        self._is_failing.discard(name)
        return inquiry.answer

    def _failed(self, name: str, why: str) -> Sequence[Sample]:
        self._failures[self._places[name]] += 1
        if name not in self._is_failing:  # once, not with every scrape
            _LOG.warning("metrics: the figures of %s cannot be read: %s", name, why)
        self._is_failing.add(name)
        return ()
