"""The steps that all cleanings of ACID directories share: plan, remove, look again, record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from cleaner.errors import CleanerError, CleaningRefusedError, TargetChangedError
from cleaner.plan import CleaningOutcome, CleaningState, CleaningTarget, EntryPlan
from cleaner.planner import CleaningPlanner
from cleaner.remover import RemovalReport, Remover
from hms_bridge.acid.obsolete import KeptReason
from hms_bridge.errors import NoSuchCompactionError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import Compaction, CompactionType
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import NO_CLEANUP

_LOG = logging.getLogger(__name__)
_NO_WRITE = WriteId(-1)
"""Below every write id: the abort records of all of them stay."""
_SHOWN_MAX = 3


class AcidCleaning:
    """Cleans one entry to its end, or says why not."""

    def __init__(
        self, metastore: LocalMetastore, planner: CleaningPlanner, remover: Remover
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._remover = remover

    def clean(
        self, entry: Compaction, when_gone: Callable[[Compaction], None] | None = None
    ) -> CleaningOutcome:
        """Remove what may go; the entry is cleaned only when a fresh look finds nothing left.
        ``when_gone``: what to do before the entry of a table that is not there ends.

        Raises CleanerError if something could not be removed; errors of the metastore and of the
        file system pass through. In each case what was not removed is in its place.
        """
        try:
            target = self._planner.target(entry)
        except NoSuchObjectError as error:
            if when_gone is not None:
                when_gone(entry)
            self.record(entry)
            return CleaningOutcome(entry=entry, state=CleaningState.GONE, message=str(error))
        if target.is_refused:
            raise CleaningRefusedError(
                f"{entry.target} has the property {NO_CLEANUP}=true; remove it to have it cleaned"
            )
        if entry.id:
            self._metastore.mark_cleaning_started(entry.id)
        lists = self._planner.lists(target)
        plan = self._planner.plan(entry, target, lists)
        self._require_alone(plan)
        report = self._remover.remove(plan, lambda: self._require_same(entry, target))
        if report.failures:
            raise CleanerError(_failure_text(entry, report))
        after = self._planner.plan(entry, target, lists)
        self._require_same(entry, target)
        if after.victims or after.leftovers:
            paths = [victim.path for victim in after.victims] + [
                leftover.path for leftover in after.leftovers
            ]
            return _outcome(
                entry,
                CleaningState.WAITING,
                f"{', '.join(paths[:_SHOWN_MAX])} may go later: "
                + (after.leftovers[0].reason.value if after.leftovers else "it came just now"),
                report,
            )
        self._record(entry, after, lists.write_ids.high_watermark)
        for location in {target.location, *(root.location for root in plan.roots)}:
            self._remover.finish(location)
        archived = (
            f", {counted(report.archived_count, 'file')} archived" if target.is_archived else ""
        )
        removed = f"{counted(report.victim_count, 'directory', 'directories')} removed{archived}"
        if not after.older:
            return _outcome(entry, CleaningState.CLEANED, removed, report)
        older = _older(after)
        _LOG.warning("%s: %s", entry.target, older)
        is_cleanup = entry.type is CompactionType.ABORT_TXN_CLEANUP
        state = CleaningState.WAITING if is_cleanup else CleaningState.CLEANED
        return _outcome(entry, state, f"{removed}; {older}", report)

    def _require_alone(self, plan: EntryPlan) -> None:
        """Raises CleanerError if someone else lies in a directory that would go."""
        victims = [
            f"{root.location}/{victim.path}" for root in plan.roots for victim in root.plan.victims
        ]
        strangers = self._metastore.strangers_in(plan.target.table, victims) if victims else {}
        for place, why in strangers.items():
            raise CleanerError(
                f"{plan.entry.target}: {place} is not deleted: {why}; give that another location"
            )

    def _require_same(self, entry: Compaction, target: CleaningTarget) -> None:
        try:
            now = self._planner.mark(entry)
        except NoSuchObjectError as error:
            raise TargetChangedError(f"{entry.target} was dropped meanwhile: {error}") from error
        if now != target.mark:
            raise TargetChangedError(
                f"{entry.target} was made anew, moved, or became a replication source meanwhile; "
                "it is looked at again in the next pass"
            )

    def _record(self, entry: Compaction, after: EntryPlan, judged: WriteId) -> None:
        """Report it to the metastore; abort records whose rows are still somewhere must stay.

        Without its abort record a write id counts as committed (HIVE-24481; docs/hive/compaction.md
        §18). So does one that the list of write ids, which ends at `judged`, did not know.
        """
        reached = entry.highest_write_id  # 0: below the table's first write, which is open
        highest = judged if reached is None else min(reached, judged)
        if after.has_uncompacted_aborts:
            forgettable = after.forgettable_write_ids
            if forgettable:
                self._metastore.forget_aborted_components(entry, forgettable)
            highest = _NO_WRITE
        self.record(replace(entry, highest_write_id=highest or _NO_WRITE))

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
