"""Which files a snapshot reads, in which role, and which rows of them it sees.

A row is seen if its write id (`currentTransaction`) is valid and no seen delete event names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory, ListedFile
from hms_bridge.acid.names import BucketFileName, DirectoryKind, OriginalFileName, side_file_of
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
    number of rows of all `preceding` files (full paths) together. Its current write id is write_id.
    """

    write_id: WriteId
    bucket_property: int
    preceding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """One file to read. `path` is full (the listing's root before it).

    `min_write_id`, `max_write_id`: write ids that its rows can have (originals and bases: from 0).
    `is_filtered`: some rows' write ids may be invalid, so each must be tested. `raw`: set if the
    file has the table's columns only. `side_file`: tells how many bytes are readable. `bucket_id`
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSplit:
    """Rows that can be read without knowing any other split.

    `deletes`: every file whose delete events can name rows of `files`; they match by the whole row
    id (write id, bucket property, row id).
    """

    bucket_id: int | None
    files: tuple[ReadFile, ...]
    deletes: tuple[ReadFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Everything that a reader of one root needs.

    `files`: base, insert-delta and original files; `deletes`: delete-delta files; both sorted by
    directory then path. `write_ids`: the filter for rows of files that are `is_filtered`.
    `unread`: visible files (full paths) that were left out because they are none of the format.
    """

    root: str
    write_ids: ValidWriteIdList
    files: tuple[ReadFile, ...] = ()
    deletes: tuple[ReadFile, ...] = ()
    is_bucketed: bool = False
    unread: tuple[str, ...] = ()

    def bucket_splits(self) -> tuple[ReadSplit, ...]:
        """One split a bucket id (of the files' names), ascending: what a compaction task takes."""
        raise NotImplementedError

    def file_splits(self) -> tuple[ReadSplit, ...]:
        """One split a file: what a scan takes."""
        raise NotImplementedError


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
    raise NotImplementedError
