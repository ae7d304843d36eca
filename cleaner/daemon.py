"""The cleaner: looks for what is ready, and cleans it, tables side by side.

A few small entries take their steps together, so that the database is asked once for all of them.
Those of one table are cleaned by one thread; different threads share nothing, as if several
processes cleaned (each has the leases over the tables it is at).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from changemanager.lease import WorkLease
from cleaner.entry_cleaner import EntryCleaner
from cleaner.explain import EntryExplanation, explain_entries, explain_waiting
from cleaner.handlers.aborted import AbortedHandler
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.handlers.compacted import CompactedHandler
from cleaner.handlers.dropped import DroppedHandler
from cleaner.handlers.never_created import NeverCreatedHandler
from cleaner.leftovers import Leftovers
from cleaner.owners import is_dead, new_owner
from cleaner.plan import CleaningOutcome
from cleaner.planner import CleaningPlanner
from cleaner.reaper import Reaper
from cleaner.remover import Remover
from hms_bridge.clock import Clock
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.connect import LocalStore
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction

_LOG = logging.getLogger(__name__)
ENTRIES_AT_ONCE = 32
"""So many take their steps together: more would gain little, and hold more leases for longer."""
_Outcomes = dict[int, CleaningOutcome | None]
"""Of entries, by their places."""


class Cleaner:
    """Removes what no reader can see. `cleaners`: one a thread; the first is this thread's."""

    def __init__(
        self,
        *,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        cleaners: Sequence[EntryCleaner],
        reaper: Reaper,
        settings: CompactorSettings,
        clock: Clock,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._cleaners = tuple(cleaners)
        self._first = self._cleaners[0]
        self._reaper = reaper
        self._settings = settings
        self._clock = clock

    def run_once(self, *, is_retried_now: bool = False) -> tuple[CleaningOutcome, ...]:
        """One pass over everything that is ready; what became of each. ``is_retried_now``: what was
        postponed does not wait any longer; readers are waited for all the same."""
        compacted = self._first.compacted.find(is_retried_now=is_retried_now)
        outcomes = self._clean_all(compacted)
        aborted = self._first.aborted.find(is_retried_now=is_retried_now)
        outcomes += self._clean_all(aborted)
        self._finish()
        self._reaper.run_once()
        return tuple(outcomes)

    def _clean_all(self, entries: Sequence[Compaction]) -> list[CleaningOutcome]:
        """In the order of the entries; without those at whose tables somebody else is."""
        of_table: dict[tuple[str, str], list[int]] = {}
        for place, entry in enumerate(entries):
            name = (entry.target.database, entry.target.table)
            of_table.setdefault(name, []).append(place)
        groups = _groups(tuple(of_table.values()), len(self._cleaners))
        outcomes: _Outcomes = {}
        if len(groups) == 1 or len(self._cleaners) == 1:
            for group in groups:
                outcomes |= _clean(self._first, entries, group)
        elif groups:
            outcomes = self._clean_side_by_side(entries, groups)
        return [outcome for _, outcome in sorted(outcomes.items()) if outcome is not None]

    def _clean_side_by_side(
        self, entries: Sequence[Compaction], groups: Sequence[Sequence[int]]
    ) -> _Outcomes:
        """Each group, which has all of its tables, by whichever thread is free."""
        idle: SimpleQueue[EntryCleaner] = SimpleQueue()
        for cleaner in self._cleaners:
            idle.put(cleaner)

        def clean(group: Sequence[int]) -> _Outcomes:
            cleaner = idle.get_nowait()  # there are as many as threads
            try:
                return _clean(cleaner, entries, group)
            finally:
                idle.put(cleaner)

        outcomes: _Outcomes = {}
        with ThreadPoolExecutor(len(self._cleaners), "cleaner") as pool:
            cleanings = [pool.submit(clean, group) for group in groups]
            try:
                for cleaning in cleanings:
                    outcomes |= cleaning.result()
            except BaseException:  # what has begun comes to its end, the rest waits for a next pass
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return outcomes

    def _finish(self) -> None:
        for cleaner in self._cleaners:
            try:
                cleaner.remover.finish_all()
            except HmsBridgeError as error:
                _LOG.warning("that removals were recorded could not be noted down: %s", error)

    def passed_over(self, outcomes: Sequence[CleaningOutcome]) -> tuple[EntryExplanation, ...]:
        """Why each entry waits that a pass with these outcomes did not touch."""
        return explain_waiting(
            self._metastore,
            seen={outcome.entry.id for outcome in outcomes},
            ready=self._first.compacted.find(),
            now_ms=self._clock.now_ms(),
            retention_ms=self._settings.cleaner_retention_ms,
        )

    def explain(self, *, is_retried_now: bool = False) -> tuple[EntryExplanation, ...]:
        """What such a pass would do now, and what keeps it from doing more; nothing is changed."""
        return explain_entries(
            self._metastore,
            self._planner,
            ready=self._first.compacted.find(is_retried_now=is_retried_now),
            aborted=self._first.aborted.find(is_retried_now=is_retried_now),
            now_ms=self._clock.now_ms(),
            retention_ms=self._settings.cleaner_retention_ms,
        )


def _groups(of_tables: Sequence[Sequence[int]], threads: int) -> list[list[int]]:
    """Tables that are cleaned by one thread, together: with few entries, so that there are some
    for each thread, and none waits for long. A table is in one of them."""
    count = sum(len(places) for places in of_tables)
    size_max = min(ENTRIES_AT_ONCE, -(-count // threads))
    groups: list[list[int]] = []
    for places in of_tables:
        if groups and len(groups[-1]) + len(places) <= size_max:
            groups[-1] += places
        else:
            groups.append(list(places))
    return groups


def _clean(
    cleaner: EntryCleaner, entries: Sequence[Compaction], places: Sequence[int]
) -> _Outcomes:
    """A few at a time."""
    outcomes: _Outcomes = {}
    for start in range(0, len(places), ENTRIES_AT_ONCE):
        piece = places[start : start + ENTRIES_AT_ONCE]
        cleaned = cleaner.clean_all([entries[place] for place in piece])
        outcomes |= dict(zip(piece, cleaned, strict=True))
    return outcomes


def make_cleaner(store: LocalStore) -> Cleaner:
    """The cleaner of a metastore and its archive."""
    settings = store.settings.compactor
    planner = CleaningPlanner(store.metastore, store.resolver)
    return Cleaner(
        metastore=store.metastore,
        planner=planner,
        cleaners=[_entry_cleaner(store, planner) for _ in range(settings.cleaner_threads)],
        reaper=Reaper(
            metastore=store.metastore,
            manifest=store.manifest,
            protocol=store.delete_protocol(),
            resolve=store.resolver,
            lease=WorkLease(store.manifest, store.clock, new_owner, is_dead),
            clock=store.clock,
            history_retain_ms=store.settings.archive.history_retain_ms,
        ),
        settings=settings,
        clock=store.clock,
    )


def _entry_cleaner(store: LocalStore, planner: CleaningPlanner) -> EntryCleaner:
    metastore, settings = store.metastore, store.settings.compactor
    lease = WorkLease(store.manifest, store.clock, new_owner, is_dead)
    remover = Remover(store.delete_protocol(), store.manifest, store.resolver, lease)
    cleaning = AcidCleaning(metastore, planner, remover)
    leftovers = Leftovers(metastore, planner, remover, store.resolver)
    return EntryCleaner(
        metastore=metastore,
        compacted=CompactedHandler(metastore, cleaning, settings.cleaner_retention_ms),
        aborted=AbortedHandler(metastore, cleaning, leftovers),
        dropped=DroppedHandler(metastore, planner, remover, cleaning, store.resolver),
        never_created=NeverCreatedHandler(metastore, planner, cleaning, leftovers, store.resolver),
        remover=remover,
        settings=settings,
    )


def cleaner_of(store: LocalStore) -> Callable[[], Sequence[CleaningOutcome]]:
    """The pass that a server repeats (entry point of the group `hms_bridge.daemons`)."""
    return make_cleaner(store).run_once
