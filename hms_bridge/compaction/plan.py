"""What a compaction reads and writes, decided from a snapshot. No I/O.

Minor compaction merges the deltas of a range into one delta and one delete delta; every event
stays. Major compaction writes a base: deleted rows and their delete events are gone. Row
identifiers stay as they are in both (I2). Source of the rules: Hive's CompactorMR and Worker
(docs/hive/compaction.md §6, §7, §8 and §9).
"""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.acid.directory import AcidState
from hms_bridge.acid.names import ORIGINALS_BASE, BucketFileName, DirectoryName
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.snapshot.plan import ReadFile, ReadSplit, plan_files


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputFile:
    """One file to write: the events of one bucket. ``path`` is relative to the root."""

    directory: DirectoryName
    bucket_id: int

    @property
    def path(self) -> str:
        """``base_0000005_v0000017/bucket_00000``."""
        return f"{self.directory.format()}/{BucketFileName(bucket_id=self.bucket_id).format()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketTask:
    """The work on one bucket, which needs no other bucket's.

    ``rows``: base, insert deltas, originals, in the order of the snapshot, with the delete events
    that can name them. ``delete_events``: delete-delta files whose events go to ``deletes``.
    """

    bucket_id: int
    write_ids: ValidWriteIdList
    columns: tuple[Column, ...]
    rows: ReadSplit | None = None
    inserts: OutputFile | None = None
    delete_events: tuple[ReadFile, ...] = ()
    deletes: OutputFile | None = None
    is_delete_applied: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionPlan:
    """A compaction of one root (a table, or one partition)."""

    root: str
    type: CompactionType
    txn_id: TxnId
    highest_write_id: WriteId
    inputs: tuple[str, ...]
    outputs: tuple[DirectoryName, ...]
    tasks: tuple[BucketTask, ...]
    input_size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NothingToCompact:
    """Why there is nothing to do. ``has_leftovers``: there is something for the cleaner."""

    reason: str
    has_leftovers: bool


def plan_compaction(
    state: AcidState,
    write_ids: ValidWriteIdList,
    *,
    kind: CompactionType,
    txn_id: TxnId,
    columns: tuple[Column, ...],
    is_bucketed: bool = False,
) -> CompactionPlan | NothingToCompact:
    """Decide. ``write_ids`` is the compactor's view, ``state`` resolved under it with ``txn_id``
    counted as open (HIVE-29567; docs/hive/compaction.md §4). ``columns`` are the table's: a
    partition's go stale. Raises AcidFormatError for a file in them that a snapshot would not read.
    """
    has_leftovers = bool(state.obsolete or state.aborted)
    if kind is CompactionType.MINOR:
        if not _is_enough_for_minor(state):
            return NothingToCompact(
                reason="fewer than two deltas to merge", has_leftovers=has_leftovers
            )
        outputs = _minor_outputs(state, txn_id)
    elif kind is CompactionType.MAJOR:
        if not _is_enough_for_major(state):
            return NothingToCompact(
                reason="no delta or original file to merge", has_leftovers=has_leftovers
            )
        outputs = (DirectoryName.base(_base_number(state), txn_id),)
    else:
        return NothingToCompact(
            reason=f"{kind.name.lower()} compaction is not supported", has_leftovers=has_leftovers
        )
    read = plan_files(state, write_ids, is_bucketed=is_bucketed)
    read.require_all_read()
    is_major = kind is CompactionType.MAJOR
    inputs = state.current if is_major else state.deltas
    originals = state.originals if is_major else ()
    names = {directory.path for directory in inputs} | {file.path for file in originals}
    return CompactionPlan(
        root=read.root,
        type=kind,
        txn_id=txn_id,
        highest_write_id=write_ids.high_watermark,
        inputs=tuple(sorted(names)),
        outputs=outputs,
        tasks=_tasks(read.bucket_splits(), read.deletes, outputs, columns, write_ids, is_major),
        input_size_bytes=sum(directory.size_bytes for directory in inputs)
        + sum(file.size_bytes for file in originals),
    )


def _is_enough_for_minor(state: AcidState) -> bool:
    """Hive: isEnoughToCompact. One insert delta and one delete delta cannot be merged."""
    if len(state.deltas) == 2:
        return state.deltas[0].name.is_delete == state.deltas[1].name.is_delete
    return len(state.deltas) > 2


def _is_enough_for_major(state: AcidState) -> bool:
    return bool(state.originals) or len(state.deltas) + (state.base is not None) > 1


def _minor_outputs(state: AcidState, txn_id: TxnId) -> tuple[DirectoryName, ...]:
    """One delta, and a delete delta where the range has deletes. Both become visible together,
    by the commit of ``txn_id``: a lone delta would hide narrower delete deltas."""
    first = min(delta.name.min_write_id for delta in state.deltas)
    last = max(delta.name.max_write_id for delta in state.deltas)
    outputs = [DirectoryName.delta(first, last, visibility_txn_id=txn_id)]
    if any(delta.name.is_delete for delta in state.deltas):
        outputs.append(DirectoryName.delete_delta(first, last, visibility_txn_id=txn_id))
    return tuple(outputs)


def _base_number(state: AcidState) -> WriteId:
    """The highest write id of the inputs; Long.MIN_VALUE where only originals are (4.2 too)."""
    ends = [directory.name.max_write_id for directory in state.current]
    return max(ends) if ends else ORIGINALS_BASE


def _tasks(
    splits: tuple[ReadSplit, ...],
    deletes: tuple[ReadFile, ...],
    outputs: tuple[DirectoryName, ...],
    columns: tuple[Column, ...],
    write_ids: ValidWriteIdList,
    is_major: bool,
) -> tuple[BucketTask, ...]:
    by_bucket = {split.bucket_id or 0: split for split in splits if split.files}
    buckets = set(by_bucket)
    # A minor compaction keeps delete events, also where a bucket has nothing else; a major one
    # applies them, and has nothing to write there.
    if not is_major:
        buckets |= {file.bucket_id or 0 for file in deletes}
    tasks = []
    for bucket in sorted(buckets):
        rows = by_bucket.get(bucket)
        if rows is not None and not is_major:
            rows = _without_base(rows)
        own = () if is_major else tuple(f for f in deletes if (f.bucket_id or 0) == bucket)
        tasks.append(
            BucketTask(
                bucket_id=bucket,
                write_ids=write_ids,
                columns=columns,
                rows=rows,
                inserts=OutputFile(directory=outputs[0], bucket_id=bucket) if rows else None,
                delete_events=own,
                deletes=OutputFile(directory=outputs[1], bucket_id=bucket) if own else None,
                is_delete_applied=is_major,
            )
        )
    return tuple(tasks)


def _without_base(split: ReadSplit) -> ReadSplit | None:
    """What minor compaction reads of a bucket: its insert deltas, no delete applied."""
    files = tuple(file for file in split.files if file.role.value == "delta")
    return ReadSplit(bucket_id=split.bucket_id, files=files) if files else None
