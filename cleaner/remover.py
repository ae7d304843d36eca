"""The one place from which the cleaner deletes: path guard, archive, delete, in one protocol.

In Hive these are two calls (FSRemover.removeFiles; docs/hive/compaction.md §22).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from changemanager.delete_protocol import DeleteProtocol
from changemanager.errors import ChangeManagerError, LeaseLostError
from changemanager.lease import WorkLease
from changemanager.location import Resolver, is_below
from changemanager.manifest import (
    ArchiveCause,
    ArchiveContext,
    ArchiveIntent,
    ArchiveIntents,
    IntentState,
)
from changemanager.removal import DeletionReport, Removal
from cleaner.errors import CleanerError
from cleaner.plan import CleaningTarget, EntryPlan, RootPlan
from cleaner.replacement import require_whole
from hms_bridge.acid.obsolete import Victim, VictimReason
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.properties import IF_PURGE

_CAUSES = {
    VictimReason.OBSOLETE: ArchiveCause.OBSOLETE,
    VictimReason.ABORTED_WRITES: ArchiveCause.ABORTED,
    VictimReason.ABORTED_COMPACTION: ArchiveCause.ABORTED,
}
VICTIMS_AT_ONCE = 200
"""So many rows are written, and moved on, in one step: nothing of a table may have millions."""
_RECORDED_AT_ONCE = 100
_OPEN = tuple(state for state in IntentState if state.is_open)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovalReport:
    """What was removed. `failures` has path and reason of what was not; `error` says why nothing
    more of it was tried."""

    victim_count: int
    archived_count: int
    deleted_count: int
    freed_bytes: int
    failures: tuple[tuple[str, str], ...]
    error: CleanerError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was archived or deleted."""
        return not (self.archived_count or self.deleted_count)


Question = Callable[[Sequence[EntryPlan]], Sequence[CleanerError | None]]
"""Of each plan why nothing more of it may go now."""


@dataclass(eq=False, slots=True)
class _Carried:
    """A plan that is being carried out. ``error``: nothing more of it goes."""

    plan: EntryPlan
    reports: list[DeletionReport] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    error: CleanerError | None = None


def _ask_once_for_each(works: Sequence[_Carried], question: Question) -> None:
    asked = [work for work in dict.fromkeys(works) if work.error is None]
    errors = question([work.plan for work in asked]) if asked else ()
    for work, error in zip(asked, errors, strict=True):
        work.error = error


class Remover:
    """Removes what plans name, a root at a time; a victim that fails does not stop the others."""

    def __init__(
        self,
        protocol: DeleteProtocol,
        intents: ArchiveIntents,
        resolve: Resolver,
        lease: WorkLease,
    ) -> None:
        self.lease = lease
        self._protocol = protocol
        self._intents = intents
        self._resolve = resolve
        self._recorded: set[str] = set()

    def remove_all(
        self, plans: Sequence[EntryPlan], still_same: Question, quiet: Question
    ) -> list[RemovalReport]:
        """Carry plans out, of each the first root first. Before victims are touched it is asked
        whether their plans' tables are `still_same`, and before emptied directories are removed
        whether they are `quiet`; of a plan whose table is not, nothing more goes.

        Rows of an interrupted run that a plan no longer names are brought to an end first.
        """
        works = [_Carried(plan) for plan in plans]
        begun = self._intents.intents(_OPEN) if any(plan.roots for plan in plans) else ()
        wanted = {
            self._resolve(root.location).child(victim.path).uri
            for plan in plans
            for root in plan.roots
            for victim in root.plan.victims
        }
        for work in works:
            work.failures += self._close_strays(work.plan.roots, begun, wanted)
        for roots in zip_longest(*(plan.roots for plan in plans)):
            going = [
                (work, root, victim)
                for work, root in zip(works, roots, strict=True)
                if root is not None
                for victim in self._going(work, root)
            ]
            for start in range(0, len(going), VICTIMS_AT_ONCE):
                self._remove(going[start : start + VICTIMS_AT_ONCE], begun, still_same, quiet)
        return [_summed(work.reports, work.failures, work.error) for work in works]

    def _remove(
        self,
        piece: Sequence[tuple[_Carried, RootPlan, Victim]],
        begun: Sequence[ArchiveIntent],
        still_same: Question,
        quiet: Question,
    ) -> None:
        going = [entry for entry in piece if entry[0].error is None]
        removals = [self._removal(work.plan, root, victim) for work, root, victim in going]
        of_removal = {
            id(removal): work for removal, (work, _, _) in zip(removals, going, strict=True)
        }

        def asking(question: Question, asked: Sequence[Removal]) -> list[ChangeManagerError | None]:
            works = [of_removal[id(removal)] for removal in asked]
            _ask_once_for_each(works, question)
            return [
                None if work.error is None else ChangeManagerError(str(work.error))
                for work in works
            ]

        outcomes = self._protocol.remove_all(
            removals,
            begun=begun,
            require_lease=self.lease.require,
            require_same=partial(asking, still_same),
            require_quiet=partial(asking, quiet),
        )
        for (work, _, victim), outcome in zip(going, outcomes, strict=True):
            if isinstance(outcome, DeletionReport):
                work.reports.append(outcome)
            else:
                work.failures.append((victim.path, str(outcome)))

    def _going(self, work: _Carried, root: RootPlan) -> Sequence[Victim]:
        """Victims whose replacements are there and whole; the others are failures."""
        if work.error is not None:
            return ()
        faults: dict[str, str | None] = {}
        going = []
        for victim in root.plan.victims:
            if victim.by is not None and victim.by not in faults:
                faults[victim.by] = self._fault_of(work.plan, root, victim.by)
            fault = None if victim.by is None else faults[victim.by]
            if fault is None:
                going.append(victim)
            else:
                work.failures.append((victim.path, fault))
        return going

    def _fault_of(self, plan: EntryPlan, root: RootPlan, directory: str) -> str | None:
        is_full_acid = plan.target.table.is_full_acid
        try:
            require_whole(self._resolve(root.location).child(directory), is_full_acid=is_full_acid)
        except LeaseLostError:
            raise
        except (ChangeManagerError, CleanerError, OSError) as error:
            return str(error)
        return None

    def _removal(self, plan: EntryPlan, root: RootPlan, victim: Victim) -> Removal:
        return Removal(
            victim=self._resolve(root.location).child(victim.path).uri,
            root=root.location,
            context=_context(plan.entry, plan.target, root, victim),
            is_archived=plan.target.is_archived,
        )

    def remove_whole(
        self,
        entry: Compaction,
        victims: Sequence[str],
        *,
        location: str,
        root: str,
        is_archived: bool,
    ) -> RemovalReport:
        """Remove whole directories below `root` that no table owns, of an entry about `location`.
        Raises CleanerError for the first that cannot be removed."""
        is_partition = entry.target.partition is not None
        context = ArchiveContext(
            cause=ArchiveCause.DROP_PARTITION if is_partition else ArchiveCause.DROP_TABLE,
            location=location,
            database=entry.target.database,
            table=entry.target.table,
            partition=entry.target.partition,
            txn_id=entry.txn_id,
            compaction_id=entry.id or None,
        )
        reports = []
        for victim in victims:
            try:
                report = self._protocol.remove(
                    victim,
                    root=root,
                    context=context,
                    is_archived=is_archived,
                    is_purge=entry.properties.get(IF_PURGE, "").lower() == "true",
                    require_lease=self.lease.require,
                )
            except LeaseLostError:
                raise
            except (ChangeManagerError, OSError) as error:
                raise CleanerError(str(error)) from error
            reports.append(report)
        return _summed(reports, [])

    def finish(self, location: str) -> None:
        """The metastore has recorded what was removed below a location; noted down with others."""
        self._recorded.add(location)
        if len(self._recorded) >= _RECORDED_AT_ONCE:
            self.finish_all()

    def finish_all(self) -> None:
        """Note down what was recorded. Where that fails, or nobody comes to it, rows stay DELETED:
        the reaper, or the next cleaning of the table, finishes them."""
        recorded, self._recorded = self._recorded, set()
        if recorded:
            self._protocol.finish_below(recorded)

    def _close_strays(
        self, roots: Sequence[RootPlan], begun: Sequence[ArchiveIntent], wanted: Collection[str]
    ) -> list[tuple[str, str]]:
        """End rows whose victims are gone; give up those whose victims are needed again. A root may
        lie in another one, so `wanted` are victims of all."""
        failures = []
        for intent in begun:
            if intent.victim in wanted or intent.context.cause not in _CAUSES.values():
                continue
            if not any(is_below(intent.victim, root.location) for root in roots):
                continue
            try:
                if self._protocol.settle(intent) is None:
                    self._protocol.abandon(intent, "it is not to be removed any more")
            except ChangeManagerError as error:
                failures.append((intent.victim, str(error)))
        return failures


def _context(
    entry: Compaction, target: CleaningTarget, root: RootPlan, victim: Victim
) -> ArchiveContext:
    return ArchiveContext(
        cause=_CAUSES[victim.reason],
        location=root.location,
        database=target.table.database_name,
        table=target.table.name,
        partition=entry.target.partition,
        txn_id=entry.txn_id,
        compaction_id=entry.id or None,
    )


def _summed(
    reports: list[DeletionReport],
    failures: list[tuple[str, str]],
    error: CleanerError | None = None,
) -> RemovalReport:
    return RemovalReport(
        victim_count=sum(report.intent is not None for report in reports),
        archived_count=sum(report.archived_count for report in reports),
        deleted_count=sum(report.deleted_count for report in reports),
        freed_bytes=sum(report.size_bytes for report in reports),
        failures=tuple(failures),
        error=error,
    )
