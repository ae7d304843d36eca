"""The metrics of ``hms-bridge serve``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hms_bridge.cli.output import say

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.metrics.store_figures import WatchedArchive


@contextmanager
def metrics_served(store: LocalStore, given_port: int | None) -> Iterator[None]:
    """Metrics of a metastore over HTTP for the length of a block, if a port is given or set.

    Raises ConfigError for an address that cannot be used.
    """
    settings = store.settings.metrics
    port = settings.port if given_port is None else given_port
    if port is None:
        yield
        return
    from hms_bridge.metrics.collector import FigureCollector
    from hms_bridge.metrics.endpoint import MetricsEndpoint
    from hms_bridge.metrics.store_figures import store_figures

    figures = store_figures(store.metastore, store.clock, _watched_archive(store))
    collector = FigureCollector(figures, timeout_ms=settings.timeout_ms)
    endpoint = MetricsEndpoint(collector, host=settings.host, port=port)
    endpoint.start()
    say(f"metrics at {endpoint.url}")
    try:
        yield
    finally:
        endpoint.stop()


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
