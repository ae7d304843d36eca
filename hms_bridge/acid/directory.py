"""Which directories of a listing make up a snapshot, and what the others are.

Source of the rules: Hive's AcidUtils.getAcidState (docs/hive/acid.md §5, §6, §7 and §8). Safer than
Hive 4.2 in three points: a compacted base that ends at the lowest open write id is not usable (it
could show that write's rows); lost history is an error even beside an aborted overwrite; a
streaming delta that begins below the end of a compaction and ends above it is read (Hive skips its
committed rows while the others are open).
"""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.acid.listing import DirectoryListing, ListedDirectory, ListedFile
from hms_bridge.acid.names import ORIGINALS_BASE, DirectoryKind
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import RangeResponse, ValidTxnList, ValidWriteIdList


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadowed:
    """A directory or original file that the snapshot does not read because `by` covers it.

    Paths are relative to the root. Exactly one of `directory` and `original` is set.
    """

    by: ListedDirectory
    directory: ListedDirectory | None = None
    original: ListedFile | None = None

    @property
    def path(self) -> str:
        """Relative to the directory of the table or partition; empty for neither."""
        holder = self.directory or self.original
        return holder.path if holder else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcidState:
    """One snapshot of a root.

    `deltas`: delta and delete deltas to read, in the order of write ids. `originals`: to read, in
    path order, which numbers their rows; empty if there is a base. `obsolete`: shadowed by what is
    read. `aborted`: hold only aborted writes, or come from an aborted compaction. `ignored`: open,
    future or otherwise not this snapshot's; nobody may touch them. `unknown`: none of the format.
    `has_uncompacted_aborts`: a directory that no compactor made mixes aborted and other writes.
    """

    listing: DirectoryListing
    base: ListedDirectory | None = None
    deltas: tuple[ListedDirectory, ...] = ()
    originals: tuple[ListedFile, ...] = ()
    obsolete: tuple[Shadowed, ...] = ()
    aborted: tuple[ListedDirectory, ...] = ()
    aborted_write_ids: tuple[WriteId, ...] = ()
    ignored: tuple[ListedDirectory, ...] = ()
    has_uncompacted_aborts: bool = False

    @property
    def unknown(self) -> tuple[ListedFile, ...]:
        """Visible files that are none of the format."""
        return self.listing.unknown

    @property
    def current(self) -> tuple[ListedDirectory, ...]:
        """Base and deltas that the snapshot reads."""
        return self.deltas if self.base is None else (self.base, *self.deltas)


def resolve(
    listing: DirectoryListing,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
    requires_history: bool = True,
) -> AcidState:
    """Find the snapshot that the id lists describe.

    The listing must be taken after the id lists. Raises NotEnoughHistoryError if the root was
    compacted beyond the snapshot; not if `requires_history` is False (a cleaner then finds no
    base).
    """
    walk = _Walk(txns, write_ids)
    for directory in sorted(listing.directories, key=_base_order):
        if directory.name.is_base:
            walk.meet_base(directory)
        else:
            walk.meet_delta(directory)
    if requires_history:
        walk.check_history(listing.root)
    walk.shadow_originals(listing.originals)
    walk.sweep_deltas()
    return AcidState(
        listing=listing,
        base=walk.base,
        deltas=tuple(walk.deltas),
        originals=() if walk.base else listing.originals,
        obsolete=tuple(walk.obsolete),
        aborted=tuple(walk.aborted),
        aborted_write_ids=tuple(sorted(walk.aborted_write_ids)),
        ignored=tuple(walk.ignored),
        has_uncompacted_aborts=walk.has_uncompacted_aborts,
    )


class _Walk:
    """One pass over the directories of a listing, under one pair of id lists."""

    def __init__(self, txns: ValidTxnList, write_ids: ValidWriteIdList) -> None:
        self._txns = txns
        self._write_ids = write_ids
        self._unusable: ListedDirectory | None = None
        self._candidates: list[ListedDirectory] = []
        self.base: ListedDirectory | None = None
        self.deltas: list[ListedDirectory] = []
        self.obsolete: list[Shadowed] = []
        self.aborted: list[ListedDirectory] = []
        self.aborted_write_ids: set[WriteId] = set()
        self.ignored: list[ListedDirectory] = []
        self.has_uncompacted_aborts = False

    def meet_base(self, directory: ListedDirectory) -> None:
        """Bases come in ascending order, so that the last usable one is the best."""
        if not self._is_published(directory):
            return
        number = directory.name.max_write_id
        if not directory.is_compacted and self._write_ids.is_aborted(number):
            self.aborted.append(directory)
            self.aborted_write_ids.add(number)
        elif self._is_usable(directory):
            if self.base is not None:
                self.obsolete.append(Shadowed(directory=self.base, by=directory))
            self.base = directory
        else:
            self.ignored.append(directory)
            if directory.is_compacted and self._unusable is None:
                self._unusable = directory

    def meet_delta(self, directory: ListedDirectory) -> None:
        """Keep it as a candidate of the sweep, unless nothing in it can be seen."""
        if not self._is_published(directory):
            return
        first, last = directory.name.min_write_id, directory.name.max_write_id
        aborted = self._write_ids.range_aborted(first, last)
        if aborted is RangeResponse.ALL:
            self.aborted.append(directory)
            self.aborted_write_ids.update(self._write_ids.aborted_between(first, last))
        elif self._write_ids.range_valid(first, last) is RangeResponse.NONE:
            self.ignored.append(directory)
        else:
            self._candidates.append(directory)
        if aborted is RangeResponse.SOME and not directory.is_compacted:
            self.has_uncompacted_aborts = True

    def check_history(self, root: str) -> None:
        """Without a base the deltas may be gone already, if a compaction took them too far.

        Hive looks at the oldest base alone, so that an aborted overwrite hides the loss
        (docs/hive/acid.md §9).
        """
        if self.base is None and self._unusable is not None:
            raise NotEnoughHistoryError(
                f"compacted into {self._unusable.path}, beyond the snapshot that ends at write id"
                f" {self._write_ids.high_watermark} and has {self._write_ids.min_open} as its"
                " lowest open one; read again with a new snapshot",
                root,
            )

    def shadow_originals(self, originals: tuple[ListedFile, ...]) -> None:
        """A base takes the place of everything from before the table was ACID."""
        if self.base is not None:
            self.obsolete += [Shadowed(original=file, by=self.base) for file in originals]

    def sweep_deltas(self) -> None:
        """Go through the candidates by write id, widest first, and leave out what is covered."""
        reached = max(self.base.name.max_write_id, WriteId(0)) if self.base else WriteId(0)
        cover, previous = self.base, self.base
        covers: dict[DirectoryKind, ListedDirectory] = {}
        compacted: set[tuple[int, int, int | None, DirectoryKind]] = set()
        for directory in sorted(self._candidates, key=_sweep_order):
            name = directory.name
            key = (name.min_write_id, name.max_write_id, name.statement_id, name.kind)
            if name.max_write_id > reached:
                first = name.min_write_id if _is_batch(directory) else WriteId(reached + 1)
                seen = self._write_ids.range_valid(first, name.max_write_id)
                if seen is RangeResponse.NONE:
                    self.ignored.append(directory)
                    continue
                reached, cover, covers = name.max_write_id, directory, {}
            elif cover is None or previous is None:
                # Write id 0 alone: never allocated, never read (REPL LOAD leaves such deltas).
                self.ignored.append(directory)
                continue
            elif key in compacted or not _is_companion(directory, cover, previous):
                by = covers.get(name.kind, cover)
                self.obsolete.append(Shadowed(directory=directory, by=by))
                continue
            self.deltas.append(directory)
            covers.setdefault(name.kind, directory)
            if name.visibility_txn_id:
                compacted.add(key)
            previous = directory

    def _is_published(self, directory: ListedDirectory) -> bool:
        txn_id = directory.name.visibility_txn_id
        if self._txns.is_valid(txn_id):
            return True
        (self.aborted if self._txns.is_aborted(txn_id) else self.ignored).append(directory)
        return False

    def _is_usable(self, directory: ListedDirectory) -> bool:
        number = directory.name.max_write_id
        if number == ORIGINALS_BASE:
            return True
        if directory.is_compacted:
            return self._write_ids.is_base_valid(number)
        return self._write_ids.is_valid(number)


def _base_order(directory: ListedDirectory) -> tuple[int, int, str]:
    """Of two bases of one number the later compaction comes last, and so wins."""
    return directory.name.max_write_id, directory.name.visibility_txn_id, directory.path


def _sweep_order(directory: ListedDirectory) -> tuple[int, int, int, int, str]:
    """Wide before narrow, compacted before statements, the latest compaction first (HIVE-29210;
    docs/hive/acid.md §7)."""
    name = directory.name
    statement = -1 if name.statement_id is None else name.statement_id
    return (
        name.min_write_id,
        -name.max_write_id,
        statement,
        -name.visibility_txn_id,
        directory.path,
    )


def _is_batch(directory: ListedDirectory) -> bool:
    """Whether a delta may be a streaming writer's, with several writes that end one by one.

    A compaction takes such a delta whole or not at all; so where it begins below what is reached
    and ends above, none of its rows were taken, even if the rest of it cannot be seen.
    """
    name = directory.name
    return name.statement_id is None and not directory.is_compacted


def _is_companion(
    directory: ListedDirectory, cover: ListedDirectory, previous: ListedDirectory
) -> bool:
    """Whether a directory is read beside one that reaches as far: other statement, or twin."""
    is_same_txn = (
        directory.name.max_write_id == cover.name.max_write_id
        and cover.name.statement_id is not None
    )
    return is_same_txn or _is_twin(directory, previous)


def _is_twin(directory: ListedDirectory, other: ListedDirectory) -> bool:
    """Whether two deltas (insert and delete events) are of one range and statement."""
    mine, theirs = directory.name, other.name
    return not theirs.is_base and (mine.min_write_id, mine.max_write_id, mine.statement_id) == (
        theirs.min_write_id,
        theirs.max_write_id,
        theirs.statement_id,
    )
