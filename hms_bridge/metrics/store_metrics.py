"""What a metastore shows a monitor of itself: its figures as samples."""

from __future__ import annotations

from collections.abc import Sequence

from changemanager.figures import ArchiveFigures
from changemanager.plausible_time import TimeJudgement
from hms_bridge.metrics.call_times import CALL_DURATION
from hms_bridge.metrics.metric import Metric, Sample
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.figures import CompactionFigures, LockFigures, TxnFigures
from hms_bridge.model.hook import HookLag
from hms_bridge.model.ids import EventId

OPEN_TXNS = Metric(
    "hms_bridge_open_transactions",
    "Open transactions: our clients' own, and those replayed from a replication source.",
    ("origin",),
)
OLDEST_OPEN_TXN_AGE = Metric(
    "hms_bridge_oldest_open_transaction_age_seconds",
    "Age of the oldest open transaction, 0 if none is open. It holds up the cleaner.",
    ("origin",),
    "seconds",
)
ABORTED_TXNS = Metric(
    "hms_bridge_aborted_transactions", "Aborted transactions that are not cleaned up yet."
)
LOCKS = Metric("hms_bridge_locks", "Locks: acquired, or waiting for others.", ("state",))
COMPACTIONS = Metric(
    "hms_bridge_compactions",
    "Entries of the compaction queue that are not in its history yet: initiated, working, ready "
    "for cleaning.",
    ("state",),
)
OLDEST_INITIATED_AGE = Metric(
    "hms_bridge_oldest_initiated_compaction_age_seconds",
    "How long the oldest entry waits for a worker, 0 if none does.",
    unit="seconds",
)
NEWEST_EVENT = Metric(
    "hms_bridge_newest_event_id", "Id of the newest notification event, 0 before the first one."
)
EVENTS = Metric("hms_bridge_event_log_events", "Notification events that the log still has.")
OLDEST_EVENT_AGE = Metric(
    "hms_bridge_oldest_event_age_seconds",
    "Age of the oldest event that the log still has, 0 if it has none.",
    unit="seconds",
)
ARCHIVE_FILES = Metric(
    "hms_bridge_archive_files", "Files in the archive (hive.repl.cmrootdir) that the manifest has."
)
ARCHIVE_BYTES = Metric("hms_bridge_archive_bytes", "Their size.", unit="bytes")
PURGE_DUE = Metric(
    "hms_bridge_archive_purge_due_timestamp_seconds",
    "When hive.repl.cm.retain of the oldest file in the archive is over: the first purge after it "
    "takes the file, unless somebody pins it. Absent while nothing is archived.",
    unit="seconds",
)
PINS = Metric("hms_bridge_archive_pins", "Pins that forbid the purge of files.")
GIVEN_UP = Metric(
    "hms_bridge_archive_given_up_pins",
    "Pins that outlived hms.bridge.repl.archive.budget: files that a dump, or the next one of a "
    "database, needs may be purged; repl status says what to do.",
)
INTENTS = Metric(
    "hms_bridge_archive_intents",
    "Archive-then-deletes: open ones, and those that were abandoned (a file was lost, or had "
    "changed) and are not forgotten yet.",
    ("state",),
)
OLDEST_INTENT_AGE = Metric(
    "hms_bridge_archive_oldest_open_intent_age_seconds",
    "Age of the oldest archive-then-delete that has not come to its end, 0 if there is none.",
    unit="seconds",
)
CLOCK_DOUBTED = Metric(
    "hms_bridge_clock_doubted",
    "1 while not all of the time counts for the age of what is deleted: nothing is known to have "
    "happened for long, or the clock differs from the database's; 0 else. cm clock says more.",
)
HOOK_BEHIND = Metric(
    "hms_bridge_hook_behind_events",
    "Events, and points between them, that an event hook has not heard.",
    ("hook",),
)
HOOK_OLDEST_AGE = Metric(
    "hms_bridge_hook_oldest_unheard_age_seconds",
    "How long ago the first was committed that the hook has not heard, 0 if it has heard all.",
    ("hook",),
    "seconds",
)
HOOK_TOLD = Metric(
    "hms_bridge_hook_told", "1 while a process is there that tells the hook, 0 else.", ("hook",)
)
FIGURE_FAILURES = Metric(
    "hms_bridge_figure_failures_total",
    "How often figures could not be told to a scrape, or not in time.",
    ("figure",),
)
PROCESS_RESTARTS = Metric(
    "hms_bridge_process_restarts_total",
    "How often processes of this server ended and were started again, of those that answer clients "
    "and of the one in the background; absent where one process is all (serve --processes).",
    ("process",),
)

STORE_METRICS = (
    OPEN_TXNS, OLDEST_OPEN_TXN_AGE, ABORTED_TXNS, LOCKS, COMPACTIONS, OLDEST_INITIATED_AGE,
    NEWEST_EVENT, EVENTS, OLDEST_EVENT_AGE, ARCHIVE_FILES, ARCHIVE_BYTES, PURGE_DUE, PINS, GIVEN_UP,
    INTENTS, OLDEST_INTENT_AGE, CLOCK_DOUBTED, HOOK_BEHIND, HOOK_OLDEST_AGE, HOOK_TOLD,
    CALL_DURATION, FIGURE_FAILURES, PROCESS_RESTARTS,
)  # fmt: skip
"""Everything that a scrape of a server may hold."""


def txn_samples(figures: TxnFigures) -> list[Sample]:
    """Counts and ages; own and replayed transactions apart."""
    kinds = (("own", figures.own), ("replayed", figures.replayed))
    return [
        *(OPEN_TXNS.at(open_txns.count, origin) for origin, open_txns in kinds),
        *(
            OLDEST_OPEN_TXN_AGE.at(open_txns.oldest_age_ms / 1000, origin)
            for origin, open_txns in kinds
        ),
        ABORTED_TXNS.at(figures.aborted_count),
    ]


def lock_samples(figures: LockFigures) -> list[Sample]:
    """How many are held, and how many are waited for."""
    return [
        LOCKS.at(figures.acquired_count, "acquired"),
        LOCKS.at(figures.waiting_count, "waiting"),
    ]


def compaction_samples(figures: CompactionFigures) -> list[Sample]:
    """Of the compaction queue: counts by state, and ages."""
    return [
        *(COMPACTIONS.at(count, state.word) for state, count in figures.counts.items()),
        OLDEST_INITIATED_AGE.at(figures.oldest_initiated_age_ms / 1000),
    ]


def event_samples(newest: EventId, oldest: NotificationEvent | None, now_ms: int) -> list[Sample]:
    """Of the event log, whose ids have no gaps."""
    count = 0 if oldest is None else newest - oldest.id + 1
    age = 0.0 if oldest is None else max(0.0, now_ms / 1000 - oldest.time_seconds)
    return [NEWEST_EVENT.at(newest), EVENTS.at(count), OLDEST_EVENT_AGE.at(age)]


def archive_samples(figures: ArchiveFigures, *, now_ms: int, retain_ms: int) -> list[Sample]:
    """Of the archive, and of what is on the way into it."""
    oldest_ms, intent_ms = figures.oldest_archived_at_ms, figures.oldest_open_intent_ms
    due = [] if oldest_ms is None else [PURGE_DUE.at((oldest_ms + retain_ms) / 1000)]
    intent_age_ms = 0 if intent_ms is None else max(0, now_ms - intent_ms)
    return [
        ARCHIVE_FILES.at(figures.file_count),
        ARCHIVE_BYTES.at(figures.size_bytes),
        *due,
        PINS.at(figures.pin_count),
        GIVEN_UP.at(figures.given_up_count),
        INTENTS.at(figures.open_intent_count, "open"),
        INTENTS.at(figures.abandoned_intent_count, "abandoned"),
        OLDEST_INTENT_AGE.at(intent_age_ms / 1000),
    ]


def clock_samples(time: TimeJudgement) -> list[Sample]:
    """Whether an administrator has to look at the clock."""
    return [CLOCK_DOUBTED.at(int(bool(time.doubt)))]


def hook_samples(lags: Sequence[HookLag]) -> list[Sample]:
    """Of each hook that is registered."""
    return [
        *(HOOK_BEHIND.at(lag.behind_count, lag.name) for lag in lags),
        *(HOOK_OLDEST_AGE.at(lag.oldest_age_ms / 1000, lag.name) for lag in lags),
        *(HOOK_TOLD.at(int(lag.is_told), lag.name) for lag in lags),
    ]
