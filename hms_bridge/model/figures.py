"""What a monitor asks of a metastore: counts, and ages by the clock that made the times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_bridge.model.compaction import CompactionState

QUEUED_STATES = (
    CompactionState.INITIATED,
    CompactionState.WORKING,
    CompactionState.READY_FOR_CLEANING,
)
"""Those that an entry has before it goes into the history."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenFigures:
    """Open transactions of one kind; the age is of the oldest, 0 if none is open."""

    count: int = 0
    oldest_age_ms: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnFigures:
    """Transactions that are open, our clients' ``own`` and those ``replayed`` from a source (which
    are open as long as they are there), and how many are aborted and not cleaned up yet."""

    own: OpenFigures
    replayed: OpenFigures
    aborted_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LockFigures:
    """Locks that are held, and those that wait for one."""

    acquired_count: int
    waiting_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionFigures:
    """The queue without its history: entries by state, and the age of the oldest that no worker
    has taken yet, 0 if there is none."""

    counts: Mapping[CompactionState, int]
    oldest_initiated_age_ms: int
