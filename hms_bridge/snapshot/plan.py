"""Which files a snapshot reads, in which role, and which rows of them it sees.

A row is seen if its write id (`currentTransaction`) is valid and no seen delete event names it
(docs/hive/acid.md §17). Rows without identity get theirs by counting (docs/hive/acid.md §16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory, ListedFile
from hms_bridge.acid.names import BucketFileName, DirectoryKind, OriginalFileName, side_file_of
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import RangeResponse, ValidTxnList, ValidWriteIdList


class FileRole(Enum):
    """What the rows of a file are."""

    BASE = "base"
    DELTA = "delta"
    ORIGINAL = "original"
    DELETE_DELTA = "delete delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRows:
    """How the rows of a file without ACID columns get their identity.

    Row n (from 0) of the file is RowId(write_id, bucket_property, first + n), where `first` is the
    number of rows of all `preceding` files together. Its current write id is write_id. `group`:
    full paths of all files that are numbered together, in order; this one is at `index`.
    """

    write_id: WriteId
    bucket_property: int
    group: tuple[str, ...]
    index: int = 0

    @property
    def preceding(self) -> tuple[str, ...]:
        """The files whose rows are numbered before this one's."""
        return self.group[: self.index]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One file to read. `path` is full (the listing's root before it).

    `min_write_id`, `max_write_id`: write ids that its rows can have (originals and bases: from 0).
    `is_filtered`: some rows' write ids may be invalid, so each must be tested. `raw`: set if the
    file has the table's columns only. `side_file`: says how many bytes are readable. `bucket_id`
    and `statement_id`: None if unknown or, for the statement, absent.
    """

    path: str
    size_bytes: int
    role: FileRole
    min_write_id: WriteId
    max_write_id: WriteId
    bucket_id: int | None = None
    statement_id: int | None = None
    is_filtered: bool = False
    raw: RawRows | None = None
    side_file: str | None = None
    modified_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSplit:
    """Rows that can be read without knowing any other split.

    `deletes`: every file whose delete events can name rows of `files`; they match by the whole row
    id (write id, bucket property, row id). `start`, `end`: of the stripes of `files` only those
    that begin at these bytes or between; without an end to the end of the file.
    """

    bucket_id: int | None
    files: tuple[ReadFile, ...]
    deletes: tuple[ReadFile, ...] = ()
    start: int = 0
    end: int | None = None

    @property
    def size_bytes(self) -> int:
        """About how much of the files it is."""
        if self.end is not None:
            return self.end - self.start
        return sum(file.size_bytes for file in self.files) - self.start

    def has_stripe(self, offset: int) -> bool:
        """Whether a stripe that begins there is of this split: it is of one split of its file."""
        return self.start <= offset and (self.end is None or offset < self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Everything that a reader of one root needs.

    `files`: base, insert-delta and original files; `deletes`: delete-delta files; both by order
    of directories (by write id), buckets, paths. `write_ids`: the filter for rows of files
    that are `is_filtered`. `unread`: visible files (full paths) that are none of the format and
    not empty.
    """

    root: str
    write_ids: ValidWriteIdList
    files: tuple[ReadFile, ...] = ()
    deletes: tuple[ReadFile, ...] = ()
    is_bucketed: bool = False
    unread: tuple[str, ...] = ()

    def require_all_read(self) -> None:
        """Raises AcidFormatError for a file that may hold rows which this plan would leave out.

        What lies below another partition's directory (`key=value`) is none of this root's.
        """
        for path in self.unread:
            if "=" not in path[len(self.root) :]:
                raise AcidFormatError(
                    "no writer of ACID tables names a file so, and its rows would be missing; move "
                    "it out of the table, or give it its right name (bucket_NNNNN)",
                    path,
                )

    def bucket_splits(self) -> tuple[ReadSplit, ...]:
        """One split a bucket id (of the files' names), ascending: what a compaction task takes."""
        groups: dict[int | None, list[ReadFile]] = {}
        for file in self.files:
            groups.setdefault(file.bucket_id, []).append(file)
        ordered = sorted(groups.items(), key=lambda group: -1 if group[0] is None else group[0])
        return tuple(self._split(bucket_id, tuple(files)) for bucket_id, files in ordered)

    def file_splits(self, bytes_max: int | None = None) -> tuple[ReadSplit, ...]:
        """What a scan takes: one split a file; of a larger one a split for each ``bytes_max``.

        A file that is still being written (`side_file`) is not cut: its length is not known.
        """
        return tuple(
            replace(whole, start=start, end=end)
            for file in self.files
            for whole in [self._split(file.bucket_id, (file,))]
            for start, end in _ranges(file, bytes_max)
        )

    def _split(self, bucket_id: int | None, files: tuple[ReadFile, ...]) -> ReadSplit:
        """A row can only be deleted by its own write or a later one."""
        oldest = min(file.min_write_id for file in files)
        deletes = tuple(
            delete
            for delete in self.deletes
            if delete.max_write_id >= oldest
            and (not self.is_bucketed or delete.bucket_id == bucket_id)
        )
        return ReadSplit(bucket_id=bucket_id, files=files, deletes=deletes)


def _ranges(file: ReadFile, bytes_max: int | None) -> list[tuple[int, int | None]]:
    """Bytes that together are the whole file, the last of them to wherever it ends."""
    pieces = 1
    if bytes_max is not None and file.side_file is None:
        pieces = max(1, math.ceil(file.size_bytes / bytes_max))
    bounds = [file.size_bytes * number // pieces for number in range(1, pieces)]
    return list(zip([0, *bounds], [*bounds, None], strict=True))


def plan_read(
    listing: DirectoryListing,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
    is_bucketed: bool = False,
    is_insert_only: bool = False,
) -> ReadPlan:
    """Plan the reading of one root under a snapshot.

    `is_bucketed`: the table is declared CLUSTERED BY, so that delete events lie in the file of
    their victim's bucket. Raises NotEnoughHistoryError as acid.directory.resolve does.
    """
    state = resolve(listing, txns=txns, write_ids=write_ids)
    return plan_files(state, write_ids, is_bucketed=is_bucketed, is_insert_only=is_insert_only)


def plan_files(
    state: AcidState,
    write_ids: ValidWriteIdList,
    *,
    is_bucketed: bool = False,
    is_insert_only: bool = False,
) -> ReadPlan:
    """Plan the reading of a snapshot that is already resolved."""
    planner = _Planner(state, write_ids, is_insert_only)
    planner.add_originals()
    for directory in state.current:
        planner.add_directory(directory)
    return ReadPlan(
        root=state.listing.root,
        write_ids=write_ids,
        files=tuple(planner.files),
        deletes=tuple(planner.deletes),
        is_bucketed=is_bucketed,
        unread=tuple(sorted(planner.unread)),
    )


_ROLES = {
    DirectoryKind.BASE: FileRole.BASE,
    DirectoryKind.DELTA: FileRole.DELTA,
    DirectoryKind.DELETE_DELTA: FileRole.DELETE_DELTA,
}


class _Planner:
    """Gathers the files of a snapshot with their roles."""

    def __init__(self, state: AcidState, write_ids: ValidWriteIdList, is_insert_only: bool) -> None:
        self._state = state
        self._write_ids = write_ids
        self._is_insert_only = is_insert_only
        self.files: list[ReadFile] = []
        self.deletes: list[ReadFile] = []
        self.unread = [self._full(file) for file in state.listing.unknown if file.size_bytes]

    def add_originals(self) -> None:
        """Files at the root: write id 0, one numbering of rows for the whole root."""
        template = ReadFile(
            path="",
            size_bytes=0,
            role=FileRole.ORIGINAL,
            min_write_id=WriteId(0),
            max_write_id=WriteId(0),
        )
        self._add_files(template, self._state.originals, is_raw=True)

    def add_directory(self, directory: ListedDirectory) -> None:
        """Files of a base or delta; raw ones carry the write id and statement of its name."""
        name = directory.name
        template = ReadFile(
            path="",
            size_bytes=0,
            role=_ROLES[name.kind],
            # A base holds everything up to its number, the rows of an overwrite only its own.
            min_write_id=WriteId(0) if name.is_base else name.min_write_id,
            max_write_id=max(name.max_write_id, WriteId(0)),
            statement_id=name.statement_id,
            is_filtered=self._is_filtered(directory),
        )
        before = len(self.files)
        self._add_files(template, directory.files, is_raw=directory.is_raw)
        self._note_side_files(directory, before)

    def _add_files(
        self, template: ReadFile, files: tuple[ListedFile, ...], *, is_raw: bool
    ) -> None:
        into = self.deletes if template.role is FileRole.DELETE_DELTA else self.files
        if self._is_insert_only:
            into += [
                replace(
                    template,
                    path=self._full(file),
                    size_bytes=file.size_bytes,
                    modified_ms=file.modified_ms,
                )
                for file in files
            ]
            return
        by_bucket: dict[int, list[ListedFile]] = {}
        for file in files:
            bucket_id = _bucket_id(file, is_raw)
            if bucket_id is None:
                self.unread += [self._full(file)] if file.size_bytes else []
            elif file.size_bytes > 0:  # Hive takes an empty file for a missing one.
                by_bucket.setdefault(bucket_id, []).append(file)
        for bucket_id, members in sorted(by_bucket.items()):
            paths = tuple(self._full(file) for file in members)
            for index, file in enumerate(members):
                raw = None
                if is_raw:
                    raw = RawRows(
                        write_id=template.max_write_id,
                        bucket_property=encode_bucket(bucket_id, template.statement_id),
                        group=paths,
                        index=index,
                    )
                into.append(
                    replace(
                        template,
                        path=paths[index],
                        size_bytes=file.size_bytes,
                        modified_ms=file.modified_ms,
                        bucket_id=bucket_id,
                        raw=raw,
                    )
                )

    def _note_side_files(self, directory: ListedDirectory, first: int) -> None:
        """Of the files from ``first`` on, which are the directory's."""
        present = {self._full(file) for file in directory.side_files}
        if present:
            self.files[first:] = [
                replace(file, side_file=side_file_of(file.path))
                if side_file_of(file.path) in present
                else file
                for file in self.files[first:]
            ]

    def _is_filtered(self, directory: ListedDirectory) -> bool:
        """Compactors drop aborted rows; what is open or later may still be in any delta."""
        first, last = directory.name.min_write_id, directory.name.max_write_id
        if directory.name.is_base:
            return False
        if directory.is_compacted:
            is_beyond = last > self._write_ids.high_watermark
            return is_beyond or self._write_ids.has_open_between(first, last)
        return self._write_ids.range_valid(first, last) is not RangeResponse.ALL

    def _full(self, file: ListedFile) -> str:
        return self._state.listing.full_path(file.path)


def _bucket_id(file: ListedFile, is_raw: bool) -> int | None:
    """The bucket (or writer) id in a file's name; None if it is no data file of its directory."""
    parsed = OriginalFileName.parse(file.name) if is_raw else BucketFileName.parse(file.name)
    return None if parsed is None else parsed.bucket_id
