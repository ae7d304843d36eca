"""The steps that all cleanings of ACID directories share: plan, remove, look again, record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from changemanager.errors import ChangeManagerError, LeaseLostError
from cleaner.entry_work import CleaningError, EntryWork, going_on
from cleaner.errors import (
    CleanerError,
    CleaningRefusedError,
    TargetChangedError,
    TargetListedError,
)
from cleaner.plan import CleaningOutcome, CleaningState, CleaningTarget, EntryPlan
from cleaner.planner import CleaningPlanner
from cleaner.remover import RemovalReport, Remover
from hms_bridge.acid.obsolete import KeptReason
from hms_bridge.errors import HmsBridgeError, NoSuchCompactionError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction, CompactionType
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import NO_CLEANUP
from hms_bridge.model.target_mark import TargetMark

_LOG = logging.getLogger(__name__)
_NO_WRITE = WriteId(-1)
"""Below every write id: the abort records of all of them stay."""
_SHOWN_MAX = 3
_SMALL_VICTIMS_MAX = 16
"""So many directories of each entry go together with those of others."""
_SMALL_BYTES_MAX = 16 * 1024 * 1024
"""So much is read for the archive, while others wait."""
WhenGone = Callable[[Compaction], CleaningOutcome | None]


class AcidCleaning:
    """Cleans one entry to its end, or says why not."""

    def __init__(
        self, metastore: LocalMetastore, planner: CleaningPlanner, remover: Remover
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._remover = remover

    def clean(
        self,
        entry: Compaction,
        when_gone: WhenGone | None = None,
        recorded: Compaction | None = None,
    ) -> CleaningOutcome:
        """Remove what may go; the entry is cleaned only when a fresh look finds nothing left.
        ``when_gone``: what to do before the entry of a target that is not there ends; an outcome
        where that has ended it. ``recorded``: the entry that ends, where it is another one.

        Raises CleanerError if something could not be removed; errors of the metastore and of the
        file system pass through; PartlyCleanedError for each of them after which something has
        gone. What was not removed is in its place.
        """
        work = EntryWork(entry, recorded=recorded)
        self._clean([work], when_gone)
        if isinstance(work.result, CleaningOutcome):
            return work.result
        assert work.result is not None
        raise work.result

    def clean_together(
        self, entries: Sequence[Compaction], when_gone: WhenGone | None = None
    ) -> list[CleaningOutcome | CleaningError | None]:
        """As :meth:`clean` of entries of different targets, each step of all of them at once: what
        became of each, or what failed it, which is nothing to the others. None for what is to be
        cleaned by itself: much that goes, or whole tables of partitions, or what could be done for
        some only. Of those something may have gone already.

        Raises LeaseLostError, after which nothing more is changed.
        """
        works = [EntryWork(entry) for entry in entries]
        try:
            self._clean(works, when_gone)
        except LeaseLostError:
            raise
        except (HmsBridgeError, ChangeManagerError, OSError) as error:
            _LOG.info("%d entries are cleaned one by one: %s", len(going_on(works)), error)
        return [work.result for work in works]

    def _clean(self, works: Sequence[EntryWork], when_gone: WhenGone | None) -> None:
        self._look_up(works, when_gone)
        self._start(going_on(works))
        self._plan(going_on(works))
        self._require_alone(going_on(works))
        self._remove(going_on(works))
        for work in going_on(works):
            with work.failing():
                work.known_after = self._planner.plan(work.entry, work.target, work.lists)
        self._require_same(going_on(works))
        for work in going_on(works):
            if work.after.victims or work.after.leftovers:
                work.result = _waiting(work)
        self._record(going_on(works))
        for work in going_on(works):
            work.result = self._cleaned(work)
        self._excuse([work for work in works if work.known_target and work.has_failed])
        for work in works:
            work.note_what_went()

    def _look_up(self, works: Sequence[EntryWork], when_gone: WhenGone | None) -> None:
        targets = self._planner.targets([work.entry for work in works])
        for work, target in zip(works, targets, strict=True):
            with work.failing():
                if isinstance(target, NoSuchObjectError):
                    work.result = self._gone(work.entry, target, when_gone)
                elif isinstance(target, TargetChangedError):
                    raise target
                elif target.is_refused:
                    raise CleaningRefusedError(
                        f"{work.entry.target} has the property {NO_CLEANUP}=true; remove it to "
                        "have it cleaned"
                    )
                else:
                    work.known_target = target
                    is_whole = target.table.is_partitioned and work.entry.target.partition is None
                    work.goes_alone = is_whole and len(works) > 1

    def _gone(
        self, entry: Compaction, error: NoSuchObjectError, when_gone: WhenGone | None
    ) -> CleaningOutcome:
        outcome = None if when_gone is None else when_gone(entry)
        if outcome is not None:
            return outcome
        self.record(entry)
        return CleaningOutcome(entry=entry, state=CleaningState.GONE, message=str(error))

    def _start(self, works: Sequence[EntryWork]) -> None:
        queued = [work.entry.id for work in works if work.entry.id]
        if queued:
            self._metastore.mark_cleanings_started(queued)

    def _plan(self, works: Sequence[EntryWork]) -> None:
        lists = self._planner.lists_of([work.target for work in works]) if works else ()
        for work, of_table in zip(works, lists, strict=True):
            with work.failing():
                plan = self._planner.plan(work.entry, work.target, of_table)
                work.known_lists, work.known_plan = of_table, plan
                work.goes_alone = len(works) > 1 and not _is_small(plan)

    def _require_alone(self, works: Sequence[EntryWork]) -> None:
        """Those fail in whose directories that would go someone else lies."""
        asked = [work for work in works if work.plan.victims]
        places = [
            (
                work.target.table,
                [
                    f"{root.location}/{victim.path}"
                    for root in work.plan.roots
                    for victim in root.plan.victims
                ],
            )
            for work in asked
        ]
        strangers = self._metastore.strangers_in(places) if places else ()
        for work, others in zip(asked, strangers, strict=True):
            if others:
                place, why = next(iter(others.items()))
                work.result = CleanerError(
                    f"{work.entry.target}: {place} is not deleted: {why}; give that another "
                    "location"
                )

    def _remove(self, works: Sequence[EntryWork]) -> None:
        of_plan = {id(work.plan): work for work in works}

        def still_same(plans: Sequence[EntryPlan]) -> Sequence[CleanerError | None]:
            return self._changes([of_plan[id(plan)] for plan in plans])

        plans = [work.plan for work in works]
        reports = self._remover.remove_all(plans, still_same, self._readers)
        for work, report in zip(works, reports, strict=True):
            work.known_report = report
            if report.error is not None:
                work.result = report.error
            elif report.failures:
                work.result = CleanerError(_failure_text(work.entry, report))

    def _require_same(self, works: Sequence[EntryWork]) -> None:
        for work, error in zip(works, self._changes(works), strict=True):
            if error is not None:
                work.result = error

    def _excuse(self, works: Sequence[EntryWork]) -> None:
        """What fails as its table goes is no failure: of a table that was dropped the metastore
        has forgotten the write ids, before its directory is gone."""
        for work, change in zip(works, self._changes(works), strict=True):
            work.result = change or work.result

    def _changes(self, works: Sequence[EntryWork]) -> Sequence[TargetChangedError | None]:
        """Of each why it is not what it was when it was looked up."""
        marks = self._planner.marks([work.entry for work in works]) if works else ()
        return [
            _change(work.entry, work.target, mark) for work, mark in zip(works, marks, strict=True)
        ]

    def _readers(self, plans: Sequence[EntryPlan]) -> Sequence[TargetListedError | None]:
        """Of each whether its directories stay for the moment: readers may be listing them."""
        entries = [plan.entry for plan in plans]
        return [
            TargetListedError(
                f"{entry.target} is being read since a moment ago: its emptied directories go in a "
                "later pass, so that none goes while it is listed"
            )
            if is_listed
            else None
            for entry, is_listed in zip(entries, self._metastore.are_listed(entries), strict=True)
        ]

    def _record(self, works: Sequence[EntryWork]) -> None:
        """Report them to the metastore; what fails one of several fails all."""
        ended = [self._reached(work) for work in works]
        if len(ended) == 1:
            self.record(ended[0])
        elif ended:
            self._remover.lease.require()
            self._metastore.mark_all_cleaned(ended)

    def _cleaned(self, work: EntryWork) -> CleaningOutcome:
        entry, report = work.entry, work.report
        for location in {work.target.location, *(root.location for root in work.plan.roots)}:
            self._remover.finish(location)
        archived = (
            f", {counted(report.archived_count, 'file')} archived"
            if work.target.is_archived
            else ""
        )
        removed = f"{counted(report.victim_count, 'directory', 'directories')} removed{archived}"
        if not work.after.older:
            return _outcome(entry, CleaningState.CLEANED, removed, report)
        older = _older(work.after)
        _LOG.warning("%s: %s", entry.target, older)
        is_cleanup = entry.type is CompactionType.ABORT_TXN_CLEANUP
        state = CleaningState.WAITING if is_cleanup else CleaningState.CLEANED
        return _outcome(entry, state, f"{removed}; {older}", report)

    def _reached(self, work: EntryWork) -> Compaction:
        """The entry with what it has reached; abort records whose rows are still somewhere must
        stay.

        Without its abort record a write id counts as committed (HIVE-24481; docs/hive/compaction.md
        §18). So does one that the list of write ids, which ends at `judged`, did not know.
        """
        entry, judged = work.recorded or work.entry, work.lists.write_ids.high_watermark
        reached = entry.highest_write_id  # 0: below the table's first write, which is open
        highest = judged if reached is None else min(reached, judged)
        if work.after.has_uncompacted_aborts:
            forgettable = work.after.forgettable_write_ids
            if forgettable:
                self._metastore.forget_aborted_components(entry, forgettable)
            highest = _NO_WRITE
        return replace(entry, highest_write_id=highest or _NO_WRITE)

    def end(
        self, entry: Compaction, location: str, message: str, report: RemovalReport
    ) -> CleaningOutcome:
        """The entry is done with what was removed at a location that is no table's."""
        self.record(entry)
        self._remover.finish(location)
        return _outcome(entry, CleaningState.CLEANED, message, report)

    def leave(self, entry: Compaction, message: str) -> CleaningOutcome:
        """The end of an entry whose directory stays where it is."""
        _LOG.warning("%s", message)
        self.record(entry)
        return CleaningOutcome(entry=entry, state=CleaningState.CLEANED, message=message)

    def record(self, entry: Compaction) -> None:
        """The entry is done; it is fine if another cleaner has said so already."""
        self._remover.lease.require()
        try:
            self._metastore.mark_cleaned(entry)
        except NoSuchCompactionError:
            return


def _is_small(plan: EntryPlan) -> bool:
    """Whether it is soon carried out: others wait for it."""
    is_quick = not plan.target.is_archived or plan.size_bytes <= _SMALL_BYTES_MAX
    return is_quick and len(plan.victims) <= _SMALL_VICTIMS_MAX


def _change(
    entry: Compaction,
    target: CleaningTarget,
    now: TargetMark | NoSuchObjectError | TargetChangedError,
) -> TargetChangedError | None:
    if isinstance(now, NoSuchObjectError):
        return TargetChangedError(f"{entry.target} was dropped meanwhile: {now}")
    if isinstance(now, TargetChangedError):
        return now
    if now != target.mark:
        return TargetChangedError(
            f"{entry.target} was made anew, moved, or became a replication source meanwhile; "
            "it is looked at again in the next pass"
        )
    return None


def _waiting(work: EntryWork) -> CleaningOutcome:
    """Something is left, or came just now."""
    after = work.after
    paths = [victim.path for victim in after.victims]
    paths += [leftover.path for leftover in after.leftovers]
    why = after.leftovers[0].reason.value if after.leftovers else "it came just now"
    message = f"{', '.join(paths[:_SHOWN_MAX])} may go later: {why}"
    return _outcome(work.entry, CleaningState.WAITING, message, work.report)


def _older(plan: EntryPlan) -> str:
    """What stays because it may be rows that were committed before, and what a person can do."""
    shown = ", ".join(plan.older[:_SHOWN_MAX])
    more = len(plan.older) - _SHOWN_MAX
    return (
        f"left where it is: {shown}{f' and {more} more' if more > 0 else ''}, which "
        f"{KeptReason.OLDER.value}. If the metastore was restored from an older backup, these are "
        "rows that were committed since: adopt the table into a new one (table adopt). If they are "
        "of the aborted write (LOAD DATA moves older files in), delete the directory"
    )


def _failure_text(entry: Compaction, report: RemovalReport) -> str:
    shown = "; ".join(f"{path}: {reason}" for path, reason in report.failures[:_SHOWN_MAX])
    more = len(report.failures) - _SHOWN_MAX
    return f"{entry.target}: {shown}" + (f"; and {more} more" if more > 0 else "")


def _outcome(
    entry: Compaction, state: CleaningState, message: str, report: RemovalReport
) -> CleaningOutcome:
    return CleaningOutcome(
        entry=entry,
        state=state,
        message=message,
        victim_count=report.victim_count,
        archived_count=report.archived_count,
        deleted_count=report.deleted_count,
        freed_bytes=report.freed_bytes,
    )
