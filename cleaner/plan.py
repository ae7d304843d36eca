"""What a cleaning would do, as records; made by the planner, carried out by the remover."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hms_bridge.acid.obsolete import CleaningPlan, Kept, KeptReason, Victim
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.ids import WriteId
from hms_bridge.model.target_mark import TargetMark


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningTarget:
    """What a queue entry points at. `location` is the directory of the table or partition.

    `mark`: it is still the same table, at the same place, under the same rule, if it is the mark
    that the metastore gives then.
    """

    table: Table
    location: str
    mark: TargetMark
    is_refused: bool

    @property
    def is_archived(self) -> bool:
        """The database is a replication source, so files are archived first (I4)."""
        return self.mark.is_replication_source


@dataclass(frozen=True, kw_only=True, slots=True)
class RootPlan:
    """The plan for one directory that holds bases and deltas. `location` is its URI."""

    location: str
    plan: CleaningPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryPlan:
    """The plan for one queue entry: usually one root, all partitions for an entry without one."""

    entry: Compaction
    target: CleaningTarget
    roots: tuple[RootPlan, ...]

    @property
    def victims(self) -> tuple[Victim, ...]:
        """Directories and files that would go, of all roots of the entry."""
        return tuple(victim for root in self.roots for victim in root.plan.victims)

    @property
    def leftovers(self) -> tuple[Kept, ...]:
        """What stays now, but may go later: the entry must stay, too."""
        return tuple(kept for root in self.roots for kept in root.plan.leftovers)

    @property
    def older(self) -> tuple[str, ...]:
        """Directories that bear the number of something aborted, and are not of it."""
        return tuple(
            f"{root.location}/{kept.path}"
            for root in self.roots
            for kept in root.plan.kept
            if kept.reason is KeptReason.OLDER
        )

    @property
    def has_uncompacted_aborts(self) -> bool:
        """Whether rows of aborted writes stay, in directories that mix them with others."""
        return any(root.plan.has_uncompacted_aborts for root in self.roots)

    @property
    def forgettable_write_ids(self) -> tuple[WriteId, ...]:
        """Aborted write ids of which no row is left in any root."""
        of_each_root = [set(root.plan.forgettable_write_ids) for root in self.roots]
        return tuple(sorted(set.intersection(*of_each_root))) if of_each_root else ()

    @property
    def size_bytes(self) -> int:
        """Bytes of the data files that would go."""
        return sum(victim.size_bytes for victim in self.victims)


class CleaningState(Enum):
    """What became of an entry."""

    CLEANED = "cleaned"
    GONE = "table is gone"
    WAITING = "waiting"
    POSTPONED = "postponed"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningOutcome:
    """What became of one entry in one pass. Counts are of the directories that went in
    this pass; those of a failed entry, too."""

    entry: Compaction
    state: CleaningState
    message: str
    victim_count: int = 0
    archived_count: int = 0
    deleted_count: int = 0
    freed_bytes: int = 0
