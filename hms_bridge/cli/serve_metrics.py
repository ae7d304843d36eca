"""The metrics of ``hms-bridge serve``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hms_bridge.cli.output import say
from hms_bridge.config.settings import MetricsSettings

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.metrics.call_times import CallTimes
    from hms_bridge.metrics.collector import Figure
    from hms_bridge.metrics.store_figures import WatchedArchive


def counted_calls(settings: MetricsSettings, given_port: int | None) -> CallTimes | None:
    """What counts the calls of a server; None where nobody would read it."""
    if _port(settings, given_port) is None:
        return None
    from hms_bridge.metrics.call_times import CallTimes

    return CallTimes()


@contextmanager
def metrics_served(
    store: LocalStore, given_port: int | None, calls: CallTimes | None
) -> Iterator[None]:
    """Metrics of a metastore over HTTP for the length of a block, if a port is given or set.

    Raises ConfigError for an address that cannot be used.
    """
    settings = store.settings.metrics
    port = _port(settings, given_port)
    if port is None:
        yield
        return
    from hms_bridge.metrics.collector import Figure
    from hms_bridge.metrics.store_figures import store_figures

    metastore = store.metastore
    hook_lags = metastore.hook_positions.lags if metastore.is_heard else None
    figures = store_figures(metastore, store.clock, _watched_archive(store), hook_lags)
    if calls is not None:
        figures.append(Figure("calls", calls.samples))
    with figures_served(figures, settings, port):
        yield


@contextmanager
def figures_served(
    figures: Sequence[Figure], settings: MetricsSettings, port: int
) -> Iterator[None]:
    """Any figures, in the same way."""
    from hms_bridge.metrics.collector import FigureCollector
    from hms_bridge.metrics.endpoint import MetricsEndpoint

    collector = FigureCollector(figures, timeout_ms=settings.timeout_ms)
    endpoint = MetricsEndpoint(collector, host=settings.host, port=port)
    endpoint.start()
    say(f"metrics at {endpoint.url}")
    try:
        yield
    finally:
        endpoint.stop()


def _port(settings: MetricsSettings, given_port: int | None) -> int | None:
    return settings.port if given_port is None else given_port


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
