"""What a cleaner may delete, with the reason for each directory that goes and each that stays.

A directory goes only if no reader that exists or can come will ever read it: it is covered by a
published base or delta that everyone sees, or all of its writes (or its compaction) were aborted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hms_bridge.acid.directory import AcidState, Shadowed, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


class CleaningScope(Enum):
    """How far a cleaner may go."""

    OBSOLETE_AND_ABORTED = "obsolete and aborted"
    ABORTED_ONLY = "aborted only"
    """For an entry without a partition on a partitioned table (HIVE-25502), and abort clean-up."""


class VictimReason(Enum):
    """Why something may be deleted."""

    OBSOLETE = "covered by a base or delta that every reader sees"
    ABORTED_WRITES = "holds only aborted writes"
    ABORTED_COMPACTION = "its compaction was aborted"


class KeptReason(Enum):
    """Why something stays."""

    CURRENT = "read by new readers"
    OPEN_WRITE = "holds a write that is open"
    OPEN_COMPACTION = "its compaction is not committed, or not for every reader"
    BEYOND = "goes beyond the highest write id of this cleaning"
    HALF_PUBLISHED = "what covers it lacks the other half of its pair"
    OUT_OF_SCOPE = "covered, but this cleaning removes aborted writes only"
    NOT_VISIBLE = "not part of any snapshot, and not proven dead"
    UNKNOWN = "not part of the ACID format"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """Something to delete. `path` is relative to the root; `by` covers it, None if aborted.

    `write_ids`: the aborted write ids whose rows go with it.
    """

    path: str
    reason: VictimReason
    is_directory: bool
    size_bytes: int
    by: str | None = None
    write_ids: tuple[WriteId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Something that stays, with the reason."""

    path: str
    reason: KeptReason


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """The cleaner's plan for one root; any part of it may be carried out, in any order.

    `forgettable_write_ids`: aborted write ids (up to the highest of this cleaning) of which no row
    is left in this root once all victims are gone; only their abort records may be dropped
    (HIVE-24481).
    """

    root: str
    victims: tuple[Victim, ...] = ()
    kept: tuple[Kept, ...] = ()
    forgettable_write_ids: tuple[WriteId, ...] = ()
    has_uncompacted_aborts: bool = False

    @property
    def leftovers(self) -> tuple[Kept, ...]:
        """What a later run may still have to delete: with any, the queue entry must stay."""
        waiting = (KeptReason.OPEN_COMPACTION, KeptReason.HALF_PUBLISHED)
        return tuple(kept for kept in self.kept if kept.reason in waiting)


def plan_cleaning(
    listing: DirectoryListing,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
    highest_write_id: WriteId | None = None,
    scope: CleaningScope = CleaningScope.OBSOLETE_AND_ABORTED,
) -> CleaningPlan:
    """Decide what may be deleted below a root.

    `txns`: the transactions that *every* open reader sees as committed, and all known aborted ones
    (ValidTxnList.cleaner_view). `write_ids`: the table's state now, uncapped. `highest_write_id`:
    what the compaction reached; every write up to it must have ended before the oldest open reader
    of the table took its snapshot (the cleaner's gate). The listing must be taken after the lists.
    """
    capped = write_ids.cleaner_view(highest_write_id)
    state = resolve(listing, txns=txns, write_ids=capped, requires_history=False)
    return _Judge(state, txns, write_ids, capped, scope).plan()
