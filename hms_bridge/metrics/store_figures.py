"""Which figures a scrape of a metastore asks for, and of whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from changemanager.figures import ArchiveFigureStore
from changemanager.plausible_time import TimeJudgement
from hms_bridge.clock import Clock
from hms_bridge.metastore import LocalMetastore
from hms_bridge.metrics.collector import Figure
from hms_bridge.metrics.metric import Sample
from hms_bridge.metrics.store_metrics import (
    archive_samples,
    clock_samples,
    compaction_samples,
    event_samples,
    hook_samples,
    lock_samples,
    txn_samples,
)
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.hook import HookLag
from hms_bridge.model.ids import EventId


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedArchive:
    """An archive whose figures are shown."""

    manifest: ArchiveFigureStore
    cmroot: str
    retain_ms: int


def store_figures(
    metastore: LocalMetastore,
    clock: Clock,
    archive: WatchedArchive | None,
    hook_lags: Callable[[], Sequence[HookLag]] | None,
    time: Callable[[], TimeJudgement],
) -> list[Figure]:
    """Each of them is asked for by itself, so that one that fails takes no other with it.
    ``hook_lags``: what knows how far hooks are; None where there are none. ``time``: what judges
    the clock."""

    def events() -> list[Sample]:
        # The oldest first: with a newer one logged meanwhile there are more, never fewer.
        first = NotificationRequest(last_event_id=EventId(0), max_events=1)
        oldest = metastore.get_next_notification(first)
        newest = metastore.get_current_event_id()
        return event_samples(newest, oldest[0] if oldest else None, clock.now_ms())

    figures = [
        Figure("transactions", lambda: txn_samples(metastore.txn_figures())),
        Figure("locks", lambda: lock_samples(metastore.lock_figures())),
        Figure("compactions", lambda: compaction_samples(metastore.compaction_figures())),
        Figure("events", events),
        Figure("clock", lambda: clock_samples(time())),
    ]
    if archive is not None:
        figures.append(Figure("archive", lambda: _archive(archive, clock.now_ms())))
    if hook_lags is not None:
        figures.append(Figure("hooks", lambda: hook_samples(hook_lags())))
    return figures


def _archive(archive: WatchedArchive, now_ms: int) -> list[Sample]:
    figures = archive.manifest.figures(archive.cmroot, now_ms)
    return archive_samples(figures, now_ms=now_ms, retain_ms=archive.retain_ms)
