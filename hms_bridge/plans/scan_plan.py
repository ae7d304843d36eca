"""Which files a scan reads, which delete events may hit them, which files a task takes together.

Tasks are packed so: files in the order of roots, buckets and paths; a large one cut into ranges,
small ones together, by their bytes and a weight for each file that is opened, such that a task has
a limit on the average. The limit is ``split_bytes``, or what each of the ``parallelism`` tasks has
to do if that is less, but so much that a task is worth its start. So a table of many tiny deltas is
a few tasks, not one a file; and as a bucket's files stand together, a task loads few lists of
delete events.

Lists of deletes are one a root, or one a bucket of it where the table is bucketed (Hive then names
a delete's file after its victim's bucket). A list may be more than what can hit a file: events name
rows by their whole identity. So the answer grows with the files, not with files times deletes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_bridge.model.valid_ids import RangeResponse, ValidWriteIdList
from hms_bridge.plans.formats import is_divisible
from hms_bridge.plans.partition_values import Value
from hms_bridge.plans.requests import PlanError, Refusal
from hms_bridge.snapshot.plan import ReadFile, ReadPlan

_OPENING_BYTES = 128 * 1024
"""What a task could read while it opens a file."""
_CUT_BYTES_MIN = 16 * 1024 * 1024
"""Smaller ranges would often hold no stripe: Hive's have 64 MiB before they are compressed."""
_TASK_BYTES_MIN = 4 * 1024 * 1024
_RANGES_MAX = 10_000
_PRECEDING_MAX = 100_000
"""Files of one bucket from before a table was ACID each name all before them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRoot:
    """A root and what is read of it. ``path`` is how its volume names it, ``uri`` how Hadoop does;
    ``lengths``: of the files that are still written, how many bytes count."""

    uri: str
    path: str
    plan: ReadPlan
    values: tuple[Value, ...] | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)

    def location(self, path: str) -> str:
        """A file's path as Hadoop opens it."""
        return self.uri.rstrip("/") + path[len(self.path.rstrip("/")) :]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanPlan:
    """The fields of the answer to ``read/plan`` that are about files."""

    deletes: list[list[list[Any]]]
    partitions: list[list[Value]]
    files: list[list[Any]]
    splits: list[list[int]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A file, or a range of it, before it has places in lists."""

    root: PlannedRoot
    file: ReadFile
    start: int
    end: int

    @property
    def weight(self) -> int:
        """Bytes, and what the opening costs."""
        end = self.file.size_bytes if self.end < 0 else self.end
        return max(0, end - self.start) + _OPENING_BYTES


def plan_scan_files(
    roots: Sequence[PlannedRoot],
    *,
    is_insert_only: bool = False,
    parallelism: int,
    split_bytes: int,
) -> ScanPlan:
    """Linear in the number of files. Raises PlanError for a bucket of too many old files."""
    _require_short_numbering(roots)
    total = sum(file.size_bytes + _OPENING_BYTES for root in roots for file in root.plan.files)
    share = total // parallelism
    range_bytes = max(min(split_bytes, max(_CUT_BYTES_MIN, share)), total // _RANGES_MAX)
    pieces = [
        piece
        for root in roots
        for file in sorted(root.plan.files, key=_order)
        for piece in _pieces(root, file, range_bytes)
    ]
    lists = _Lists(is_insert_only)
    files = [lists.entry(piece) for piece in pieces]
    task_bytes = min(split_bytes, max(_TASK_BYTES_MIN, share))
    return ScanPlan(
        deletes=lists.deletes,
        partitions=lists.partitions,
        files=files,
        splits=_packed([piece.weight for piece in pieces], task_bytes),
    )


def files_of(roots: Sequence[PlannedRoot]) -> frozenset[str]:
    """Everything that is opened to read the roots, as Hadoop names it."""
    return frozenset(root.location(file.path) for root in roots for file in _all_files(root.plan))


def is_all_there(
    roots: Sequence[PlannedRoot], now: Sequence[PlannedRoot], write_ids: ValidWriteIdList
) -> bool:
    """Whether an older snapshot still reads the same rows as when it was taken.

    ``now`` is what a reader reads who starts now. All files of the older snapshot must be among
    those; and what is read beyond them must be of writes that the older one does not see. Else it
    may have taken the place of files that are gone: of delta_6 and delta_7, compacted into
    delta_6_7_v30 and cleaned, a snapshot that does not see transaction 30 reads nothing, although
    it sees the writes 6 and 7.
    """
    before = files_of(roots)
    return before <= files_of(now) and all(
        write_ids.range_valid(file.min_write_id, file.max_write_id) is RangeResponse.NONE
        for root in now
        for file in _all_files(root.plan)
        if root.location(file.path) not in before
    )


def _all_files(plan: ReadPlan) -> Iterator[ReadFile]:
    yield from plan.files
    yield from plan.deletes


def _order(file: ReadFile) -> tuple[int, str]:
    return -1 if file.bucket_id is None else file.bucket_id, file.path


def _pieces(root: PlannedRoot, file: ReadFile, range_bytes: int) -> Iterator[_Piece]:
    """Ranges that together are the whole file; of one still written the end is not known."""
    length = root.lengths.get(file.path)
    if length == 0 or (length is None and file.size_bytes == 0):
        return
    is_whole = length is not None or not is_divisible(file.path)
    count = 1 if is_whole else max(1, math.ceil(file.size_bytes / range_bytes))
    bounds = [file.size_bytes * number // count for number in range(1, count)]
    for start, end in zip([0, *bounds], [*bounds, -1], strict=True):
        yield _Piece(root, file, start, end)


def _packed(weights: Sequence[int], task_bytes: int) -> list[list[int]]:
    """As few tasks as the limit allows on the whole, each of about the same weight: were they
    filled one after the other, a small rest would be a task of its own, for which all wait."""
    total = sum(weights)
    count = max(1, math.ceil(total / task_bytes))
    splits: list[list[int]] = []
    before, last = 0, -1
    for at, weight in enumerate(weights):
        task = (2 * before + weight) * count // (2 * total)
        if task == last:
            splits[-1][1] = at + 1
        else:
            splits.append([at, at + 1])
        before, last = before + weight, task
    return splits


def _require_short_numbering(roots: Sequence[PlannedRoot]) -> None:
    count = 0
    for root in roots:
        count += sum(file.raw.index for file in root.plan.files if file.raw is not None)
        if count > _PRECEDING_MAX:
            raise PlanError(
                Refusal.REFUSED,
                f"{root.uri} has so many files from before its table was ACID that their rows "
                "cannot be numbered in each task; compact it first (hms-bridge compact, major)",
            )


class _Lists:
    """Gives places to partitions and lists of deletes as files name them."""

    def __init__(self, is_insert_only: bool) -> None:
        self._is_insert_only = is_insert_only
        self._partitions: dict[int, int] = {}
        self._deletes: dict[tuple[int, int | None], tuple[int, int]] = {}
        self._victims: dict[int, dict[int | None, list[ReadFile]]] = {}
        self.partitions: list[list[Value]] = []
        self.deletes: list[list[list[Any]]] = []

    def entry(self, piece: _Piece) -> list[Any]:
        """The file as the answer has it."""
        root, file = piece.root, piece.file
        return [
            root.location(file.path),
            piece.start,
            piece.end,
            root.lengths.get(file.path, -1),
            self._partition(root),
            self._delete_list(root, file),
            file.is_filtered and not self._is_insert_only,
            self._raw(root, file),
            *_state(file),
        ]

    def _partition(self, root: PlannedRoot) -> int:
        if root.values is None:
            return -1
        if id(root) not in self._partitions:
            self._partitions[id(root)] = len(self.partitions)
            self.partitions.append(list(root.values))
        return self._partitions[id(root)]

    def _delete_list(self, root: PlannedRoot, file: ReadFile) -> int:
        """A row can only be deleted by its own write or a later one."""
        bucket_id = file.bucket_id if root.plan.is_bucketed else None
        key = (id(root), bucket_id)
        if key not in self._deletes:
            deletes = self._deletes_by_bucket(root).get(bucket_id, [])
            latest = max((delete.max_write_id for delete in deletes), default=-1)
            self._deletes[key] = (len(self.deletes) if deletes else -1, latest)
            if deletes:
                self.deletes.append(
                    [[root.location(delete.path), *_state(delete)] for delete in deletes]
                )
        place, latest = self._deletes[key]
        return place if latest >= file.min_write_id else -1

    def _deletes_by_bucket(self, root: PlannedRoot) -> Mapping[int | None, list[ReadFile]]:
        if id(root) not in self._victims:
            by_bucket: dict[int | None, list[ReadFile]] = {}
            for delete in root.plan.deletes:
                bucket_id = delete.bucket_id if root.plan.is_bucketed else None
                by_bucket.setdefault(bucket_id, []).append(delete)
            self._victims[id(root)] = by_bucket
        return self._victims[id(root)]

    def _raw(self, root: PlannedRoot, file: ReadFile) -> list[Any] | None:
        if self._is_insert_only:
            return [0, 0, []]
        if file.raw is None:
            return None
        preceding = [root.location(path) for path in file.raw.preceding]
        return [file.raw.write_id, file.raw.bucket_property, preceding]


def _state(file: ReadFile) -> tuple[int, int]:
    """By which another file of the same path is known, as of a table that was dropped and made
    again: size and modification time; -1 for what is not known, or goes on to change."""
    if file.side_file is not None:
        return -1, -1
    return file.size_bytes, -1 if file.modified_ms is None else file.modified_ms
