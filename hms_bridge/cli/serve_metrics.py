"""The metrics of ``hms-bridge serve``."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hms_bridge.cli.output import say
from hms_bridge.config.settings import MetricsSettings
from hms_bridge.shared_numbers import shared_numbers

if TYPE_CHECKING:
    from changemanager.plausible_time import TimeJudgement
    from hms_bridge.connect import LocalStore
    from hms_bridge.metrics.call_times import CallTimes
    from hms_bridge.metrics.collector import Figure
    from hms_bridge.metrics.metric import Sample
    from hms_bridge.metrics.store_figures import WatchedArchive

_FIGURES_MAX = 32
_ROLES = ("background", "clients")


@dataclass(frozen=True, slots=True)
class SharedMetrics:
    """The port of a page of metrics (none without one), and what outlives the process that serves
    it: calls, failures of figures, and how often processes were started again."""

    listener: socket.socket | None
    calls: CallTimes | None
    failures: memoryview[float]
    restarts: memoryview[float] | None

    @staticmethod
    def listening(
        settings: MetricsSettings, port: int | None, calls: CallTimes | None, *, is_alone: bool
    ) -> SharedMetrics:
        """At a port, if there is one, for one process alone or for several. Raises ConfigError for
        an address that cannot be used."""
        listener = None
        if port is not None:
            from hms_bridge.metrics.endpoint import listen_for_scrapes

            listener = listen_for_scrapes(settings.host, port)
        restarts = None if is_alone else shared_numbers(len(_ROLES))
        return SharedMetrics(listener, calls, shared_numbers(_FIGURES_MAX), restarts)

    def note_restart(self, role: str) -> None:
        """Of a process of several has one of a role ended, and is started again."""
        assert self.restarts is not None
        self.restarts[_ROLES.index(role)] += 1

    def figures(self) -> list[Figure]:
        """Those that the database does not know."""
        from hms_bridge.metrics.collector import Figure

        figures = [] if self.calls is None else [Figure("calls", self.calls.samples)]
        if self.restarts is not None:
            figures.append(Figure("processes", self._restart_samples))
        return figures

    def _restart_samples(self) -> Sequence[Sample]:
        from hms_bridge.metrics.store_metrics import PROCESS_RESTARTS

        counts = [] if self.restarts is None else self.restarts.tolist()
        pairs = zip(_ROLES, counts, strict=False)
        return [PROCESS_RESTARTS.at(int(count), role) for role, count in pairs]


@contextmanager
def metrics_served(store: LocalStore, shared: SharedMetrics) -> Iterator[None]:
    """Metrics of a metastore over HTTP for the length of a block, if a port is given or set."""
    if shared.listener is None:
        yield
        return
    from hms_bridge.metrics.store_figures import store_figures

    metastore = store.metastore
    hook_lags = metastore.hook_positions.lags if metastore.is_heard else None
    archive = _watched_archive(store)
    figures = store_figures(metastore, store.clock, archive, hook_lags, _time(store))
    figures += shared.figures()
    with _told(figures, store.settings.metrics, shared.listener, shared.failures):
        yield


@contextmanager
def figures_served(
    figures: Sequence[Figure], settings: MetricsSettings, port: int
) -> Iterator[None]:
    """Any figures, in the same way. Raises ConfigError for an address that cannot be used."""
    from hms_bridge.metrics.endpoint import listen_for_scrapes

    with _told(figures, settings, listen_for_scrapes(settings.host, port), None):
        yield


@contextmanager
def _told(
    figures: Sequence[Figure],
    settings: MetricsSettings,
    listener: socket.socket,
    failures: memoryview[float] | None,
) -> Iterator[None]:
    from hms_bridge.metrics.collector import FigureCollector
    from hms_bridge.metrics.endpoint import MetricsEndpoint

    collector = FigureCollector(figures, timeout_ms=settings.timeout_ms, failures=failures)
    endpoint = MetricsEndpoint(collector, host=settings.host, listener=listener)
    endpoint.start()
    say(f"metrics at {endpoint.url}")
    try:
        yield
    finally:
        endpoint.stop()


def _time(store: LocalStore) -> Callable[[], TimeJudgement]:
    """What judges the clock, by gaps for which something may seem expired."""
    from hms_bridge.cli.archive_clock import judged_now

    keep_ms = max(store.settings.archive.retain_ms, store.settings.event_ttl_ms)
    return lambda: judged_now(store).within(keep_ms)


def _watched_archive(store: LocalStore) -> WatchedArchive | None:
    from hms_bridge.metrics.store_figures import WatchedArchive

    settings = store.settings
    if not settings.archive.is_enabled:
        return None
    return WatchedArchive(
        manifest=store.manifest,
        cmroot=store.archive().cmroot.uri,
        retain_ms=settings.archive.retain_ms,
    )
