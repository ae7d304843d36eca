"""What a cleaner may delete, with the reason for each directory that goes and each that stays.

A directory goes only if no reader that exists or can come will ever read it: it is covered by a
published base or delta that everyone sees, or all of its writes (or its compaction) were aborted
(docs/hive/acid.md §8; docs/hive/compaction.md §16).

Safer than Hive: what was aborted goes only if its files can be of that transaction. After the
metastore's database was restored from an older backup it gives numbers again that directories of
committed rows bear; the abort of a new write is none of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hms_bridge.acid.directory import AcidState, Shadowed, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory, ListedFile
from hms_bridge.model.ids import MAX_ID, WriteId
from hms_bridge.model.txn import AbortedSince
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList

CLOCKS_APART_MS = 5 * 60_000
"""So far apart the clocks of database and storage may be: what Kerberos bears."""


class CleaningScope(Enum):
    """How far a cleaner may go."""

    OBSOLETE_AND_ABORTED = "obsolete and aborted"
    ABORTED_ONLY = "aborted only"
    """For an entry without a partition on a partitioned table (HIVE-25502; docs/hive/compaction.md
    §17), and abort clean-up."""


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
    UNPROVEN = "covered, but what covers it may not hold its rows"
    OUT_OF_SCOPE = "covered, but this cleaning removes aborted writes only"
    NOT_READ = "not read by this snapshot, and not proven dead"
    UNKNOWN = "not part of the ACID format"
    HIDDEN = "marker, staging or temporary"
    OLDER = "has files from before the transaction that aborted was opened"


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

    `leftovers`: kept now, but a later run may delete it; with any, the queue entry must stay.
    `forgettable_write_ids`: aborted write ids (up to the highest of this cleaning) of which no row
    is left in this root once all victims are gone; only their abort records may be dropped
    (HIVE-24481; docs/hive/compaction.md §18). `has_uncompacted_aborts`: some aborted rows stay, in
    directories that mix them.
    """

    root: str
    victims: tuple[Victim, ...] = ()
    kept: tuple[Kept, ...] = ()
    leftovers: tuple[Kept, ...] = ()
    forgettable_write_ids: tuple[WriteId, ...] = ()
    has_uncompacted_aborts: bool = False


def plan_cleaning(
    listing: DirectoryListing,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
    highest_write_id: WriteId | None = None,
    scope: CleaningScope = CleaningScope.OBSOLETE_AND_ABORTED,
    since: AbortedSince | None = None,
) -> CleaningPlan:
    """Decide what may be deleted below a root.

    `txns`: the transactions that *every* open reader sees as committed, and all known aborted ones
    (ValidTxnList.cleaner_view). `write_ids`: the table's state now, uncapped. `highest_write_id`:
    what the compaction reached; every write up to it must have ended before the oldest open reader
    of the table took its snapshot (the cleaner's gate). The listing must be taken after the lists.
    `since`: with it, what is aborted stays if it has a file that is older than the transaction by
    more than CLOCKS_APART_MS, or of an age that nobody knows.
    """
    capped = write_ids.cleaner_view(highest_write_id)
    highest = WriteId(MAX_ID) if highest_write_id is None else highest_write_id
    state = resolve(listing, txns=txns, write_ids=capped, requires_history=False)
    judge = _Judge(state, txns=txns, write_ids=write_ids, highest=highest, scope=scope, since=since)
    judge.judge_directories()
    judge.judge_originals()
    return judge.plan()


class _Judge:
    """Goes through everything below a root and decides whether it stays."""

    def __init__(
        self,
        state: AcidState,
        *,
        txns: ValidTxnList,
        write_ids: ValidWriteIdList,
        highest: WriteId,
        scope: CleaningScope,
        since: AbortedSince | None,
    ) -> None:
        self._state = state
        self._since = since
        self._txns = txns
        self._write_ids = write_ids
        self._end = write_ids.cleaner_view(highest).high_watermark
        self._highest = highest
        self._scope = scope
        self._victims: list[Victim] = []
        self._kept: list[Kept] = []
        self._leftovers: list[Kept] = []
        self._survivors: list[ListedDirectory] = list(state.current)

    def judge_directories(self) -> None:
        """Bases, deltas and delete deltas."""
        self._kept += [
            Kept(path=current.path, reason=KeptReason.CURRENT) for current in self._state.current
        ]
        for shadowed in self._state.obsolete:
            if shadowed.directory is not None:
                self._judge_shadowed(shadowed, shadowed.directory)
        for directory in self._state.aborted:
            self._judge_aborted(directory)
        for directory in self._state.ignored:
            self._keep(directory, self._why_ignored(directory))

    def judge_originals(self) -> None:
        """Files from before the table was ACID; a directory of nothing else goes as a whole."""
        base = self._state.base
        originals = self._state.listing.originals
        if base is None or self._scope is CleaningScope.ABORTED_ONLY:
            reason = KeptReason.CURRENT if base is None else KeptReason.OUT_OF_SCOPE
            self._kept += [Kept(path=file.path, reason=reason) for file in originals]
            return
        for path, files in _by_removable_path(self._state.listing).items():
            self._victims.append(
                Victim(
                    path=path,
                    reason=VictimReason.OBSOLETE,
                    is_directory=path != files[0].path,
                    size_bytes=sum(file.size_bytes for file in files),
                    by=base.path,
                )
            )

    def plan(self) -> CleaningPlan:
        """The whole decision."""
        listing = self._state.listing
        kept = [
            *self._kept,
            *(Kept(path=file.path, reason=KeptReason.UNKNOWN) for file in listing.unknown),
            *(Kept(path=path, reason=KeptReason.HIDDEN) for path in listing.hidden),
        ]
        aborted = self._write_ids.aborted_between(WriteId(0), self._highest)
        # A compaction leaves aborted rows out; one of before the numbers were given again did not.
        older = {survivor.path for survivor in self._kept if survivor.reason is KeptReason.OLDER}
        remaining = {
            write_id
            for directory in self._survivors
            if not directory.is_compacted or directory.path in older
            for write_id in self._write_ids.aborted_between(
                directory.name.min_write_id, directory.name.max_write_id
            )
        }
        return CleaningPlan(
            root=listing.root,
            victims=tuple(sorted(self._victims, key=lambda victim: victim.path)),
            kept=tuple(sorted(kept, key=lambda survivor: survivor.path)),
            leftovers=tuple(self._leftovers),
            forgettable_write_ids=tuple(
                write_id for write_id in aborted if write_id not in remaining
            ),
            has_uncompacted_aborts=any(write_id in remaining for write_id in aborted),
        )

    def _judge_shadowed(self, shadowed: Shadowed, directory: ListedDirectory) -> None:
        if self._scope is CleaningScope.ABORTED_ONLY:
            self._keep(directory, KeptReason.OUT_OF_SCOPE)
        elif not self._is_proven(directory, shadowed.by):
            self._keep(directory, KeptReason.UNPROVEN)
        else:
            self._delete(directory, VictimReason.OBSOLETE, shadowed.by)

    def _judge_aborted(self, directory: ListedDirectory) -> None:
        if self._txns.is_aborted(directory.name.visibility_txn_id):
            self._delete_its_own(directory, VictimReason.ABORTED_COMPACTION)
        elif directory.name.max_write_id > self._highest:
            self._keep(directory, KeptReason.BEYOND)
        else:
            self._delete_its_own(directory, VictimReason.ABORTED_WRITES)

    def _delete_its_own(self, directory: ListedDirectory, reason: VictimReason) -> None:
        if self._since is not None and self._is_older(directory, reason, self._since):
            self._keep(directory, KeptReason.OLDER)
        else:
            self._delete(directory, reason)

    def _is_older(
        self, directory: ListedDirectory, reason: VictimReason, since: AbortedSince
    ) -> bool:
        """Whether a file of it may be from before all of the transactions that aborted."""
        name = directory.name
        if reason is VictimReason.ABORTED_COMPACTION:
            opened_ms = [since.txns.get(name.visibility_txn_id)]
        else:
            ids = self._write_ids.aborted_between(name.min_write_id, name.max_write_id)
            opened_ms = [since.write_ids.get(write_id) for write_id in ids]
        known_ms = [opened_at_ms for opened_at_ms in opened_ms if opened_at_ms is not None]
        # Where no time is known every file counts as older, and so stays.
        earliest_ms = min(known_ms, default=MAX_ID) - CLOCKS_APART_MS
        return any(
            file.modified_ms is None or file.modified_ms < earliest_ms for file in directory.files
        )

    def _is_proven(self, directory: ListedDirectory, by: ListedDirectory) -> bool:
        """Whether what covers a directory certainly took its rows over.

        A base or a `_vT` directory appears whole. An unsuffixed pair of Hive 3 appears one by one:
        its delta alone says nothing of the delete deltas below it, and the reverse
        (docs/hive/compaction.md §10). A streaming delta with side files is no compaction at all.
        """
        if by.is_compacted or by.name.is_base:
            return True
        if by.side_files:
            return False
        kind = directory.name.kind
        return any(
            delta.name.kind is kind
            and delta.name.min_write_id <= directory.name.min_write_id
            and delta.name.max_write_id >= directory.name.max_write_id
            for delta in self._state.deltas
        )

    def _why_ignored(self, directory: ListedDirectory) -> KeptReason:
        name = directory.name
        if not self._txns.is_valid(name.visibility_txn_id):
            return KeptReason.OPEN_COMPACTION
        if self._write_ids.has_open_between(name.min_write_id, name.max_write_id):
            return KeptReason.OPEN_WRITE
        if name.max_write_id > self._end:
            return KeptReason.BEYOND
        return KeptReason.NOT_READ

    def _keep(self, directory: ListedDirectory, reason: KeptReason) -> None:
        kept = Kept(path=directory.path, reason=reason)
        self._kept.append(kept)
        self._survivors.append(directory)
        is_within = directory.name.max_write_id <= self._end
        if reason in (KeptReason.OPEN_COMPACTION, KeptReason.UNPROVEN) and is_within:
            self._leftovers.append(kept)

    def _delete(
        self, directory: ListedDirectory, reason: VictimReason, by: ListedDirectory | None = None
    ) -> None:
        name = directory.name
        write_ids: tuple[WriteId, ...] = ()
        if reason is VictimReason.ABORTED_WRITES:
            write_ids = self._write_ids.aborted_between(name.min_write_id, name.max_write_id)
        self._victims.append(
            Victim(
                path=directory.path,
                reason=reason,
                is_directory=True,
                size_bytes=directory.size_bytes,
                by=None if by is None else by.path,
                write_ids=write_ids,
            )
        )


def _by_removable_path(listing: DirectoryListing) -> dict[str, list[ListedFile]]:
    """Original files under what can be deleted at once: their topmost directory, or themselves."""
    foreign = {path.partition("/")[0] for path in listing.hidden}
    foreign |= {file.path.partition("/")[0] for file in listing.unknown}
    files_below: dict[str, list[ListedFile]] = {}
    for file in listing.originals:
        top, _, below = file.path.partition("/")
        # A directory that holds something else, too, must not go as a whole.
        path = top if below and top not in foreign else file.path
        files_below.setdefault(path, []).append(file)
    return files_below
