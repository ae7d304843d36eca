"""What must hold before a directory is adopted: files and what the admin says fit together. Pure.

Each check raises AcidFormatError that names the directory and says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hms_bridge.acid.directory import resolve
from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.acid.names import BucketFileName, OriginalFileName
from hms_bridge.errors import AcidFormatError, NotEnoughHistoryError
from hms_bridge.model.catalog import Column, Partition, Table
from hms_bridge.model.ids import MAX_ID, TxnId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.rows.scan import partition_value

EVERY_TXN = ValidTxnList(high_watermark=TxnId(MAX_ID))
"""A reader that counts every compaction as committed."""


def check_columns(table: Table) -> None:
    """Types that exist, names that are there once."""
    seen: set[str] = set()
    for column in (*table.storage.columns, *table.partition_columns):
        if column.name in seen:
            raise _refusal(table, f"column {column.name} is there twice; name each once")
        seen.add(column.name)
        try:
            parse_hive_type(column.type)
        except AcidFormatError as error:
            raise _refusal(
                table, f"column {column.name}: '{column.type}' is no type of Hive; correct it"
            ) from error


def check_buckets(table: Table, listings: Sequence[DirectoryListing]) -> None:
    """Bucket columns of the table, and no file beyond the last bucket."""
    names = [column.name for column in table.storage.columns]
    unknown = [name for name in table.storage.bucket_columns if name not in names]
    if unknown:
        raise _refusal(
            table, f"{unknown[0]}, a bucket column, is none of its columns: {', '.join(names)}"
        )
    if not table.storage.bucket_columns:
        return
    highest, path = max(_bucket_files(listings), default=(0, ""))
    if highest >= table.storage.bucket_count:
        raise _refusal(
            table,
            f"{path} is of bucket {highest}, so there are more than {table.storage.bucket_count} "
            "buckets; correct --buckets, or leave --clustered-by out",
        )


def check_partition_values(table: Table, partitions: Sequence[Partition]) -> None:
    """Every value is one of its column's type."""
    for partition in partitions:
        for column, value in zip(table.partition_columns, partition.values, strict=True):
            _check_value(table, column, value)


def check_write_ids(
    table: Table, write_ids: ValidWriteIdList, listings: Sequence[DirectoryListing]
) -> None:
    """A list that can be one of this table's: sane numbers, and not before its last compaction."""
    highest = write_ids.high_watermark
    ids = (*write_ids.open_ids, *write_ids.aborted_ids)
    if not 0 <= highest < MAX_ID or any(not 0 < write_id <= MAX_ID for write_id in ids):
        raise _refusal(
            table,
            f"{write_ids.format()} is no write-id list; write it as "
            f"{table.full_name}:9:9223372036854775807::3 (high watermark, lowest open, open ids, "
            "aborted ids)",
        )
    for listing in listings:
        try:
            resolve(listing, txns=EVERY_TXN, write_ids=write_ids)
        except NotEnoughHistoryError as error:
            raise _refusal(
                table,
                f"the write-id list ends at {highest}, but its rows were compacted beyond that; "
                "it is an older list, or another table's",
            ) from error


def _check_value(table: Table, column: Column, value: str) -> None:
    try:
        partition_value(column, value, 1)
    except AcidFormatError as error:
        raise _refusal(table, f"{error}; correct --partition-type") from error


def _bucket_files(listings: Sequence[DirectoryListing]) -> Iterator[tuple[int, str]]:
    for listing in listings:
        nested = [file for directory in listing.directories for file in directory.files]
        for file in (*listing.originals, *nested):
            name = BucketFileName.parse(file.name) or OriginalFileName.parse(file.name)
            if name is not None:
                yield name.bucket_id, file.path


def _refusal(table: Table, text: str) -> AcidFormatError:
    return AcidFormatError(text, str(table.storage.location))
