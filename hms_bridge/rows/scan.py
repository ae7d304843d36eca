"""A scan of a whole table: every root (the table, or its partitions), cut into splits."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.location import Resolver
from hms_bridge.directories.known_ids import require_known_ids
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import CatalogStore, Metastore
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column, Table
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcKind, OrcType, struct_type
from hms_bridge.rows.reader import ROW_ID_COLUMN, Projection, SnapshotReader, has_raw_rows
from hms_bridge.snapshot.plan import ReadPlan, ReadSplit, plan_read

SPLIT_BYTES_MIN, SPLIT_BYTES_MAX = 16 * 1024 * 1024, 64 * 1024 * 1024
"""Of a file that is larger each task reads some stripes: Hive writes stripes of 64 MiB at most,
before they are compressed (`orc.stripe.size`)."""
_SPLITS_MANY = 1000
"""Above so many, splits become larger: every task is given all."""
ROW_PARTITION_COLUMN = "row__partition"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanSplit:
    """Rows that one task reads. ``location`` is the root's URI; ``columns`` the table's own;
    ``partition`` the partition columns with their values, as texts."""

    location: str
    split: ReadSplit
    write_ids: ValidWriteIdList
    columns: tuple[Column, ...]
    partition: tuple[tuple[Column, str], ...] = ()


def plan_scan(
    metastore: Metastore,
    resolver: Resolver,
    table: Table,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
) -> tuple[ScanSplit, ...]:
    """One split for each data file of the snapshot, several for a large one. The lists must be
    taken before this call.

    Raises NotEnoughHistoryError for a snapshot that was compacted away, AcidFormatError.
    """
    plans: list[tuple[str, tuple[tuple[Column, str], ...], ReadPlan]] = []
    for location, values in _roots(metastore, table):
        place = resolver(location)
        volume = place.volume
        listing = list_acid_directory(
            volume, place.path, has_raw_rows=functools.partial(has_raw_rows, volume)
        )
        require_known_ids(metastore, table, listing, txns, write_ids)
        plan = plan_read(
            listing,
            txns=txns,
            write_ids=write_ids,
            is_bucketed=bool(table.storage.bucket_columns),
        )
        if plan.unread:
            _LOG.warning(
                "%s: no row is read from %s%s, which has no name of the ACID format; if it holds "
                "rows, LOAD it with Hive, else move it out of the table",
                table.full_name,
                plan.unread[0],
                f" and {len(plan.unread) - 1} more" if len(plan.unread) > 1 else "",
            )
        plans.append((location, tuple(zip(table.partition_columns, values, strict=True)), plan))
    size_bytes = sum(file.size_bytes for _, _, plan in plans for file in plan.files)
    bytes_max = min(max(SPLIT_BYTES_MIN, size_bytes // _SPLITS_MANY), SPLIT_BYTES_MAX)
    return tuple(
        ScanSplit(
            location=location,
            split=split,
            write_ids=plan.write_ids,
            columns=table.storage.columns,
            partition=partition,
        )
        for location, partition, plan in plans
        for split in plan.file_splits(bytes_max)
    )


def read_scan_split(
    resolver: Resolver,
    split: ScanSplit,
    columns: Sequence[Column],
    *,
    has_row_ids: bool,
    is_exact: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a split: ``columns`` in their order, then, if asked for, ``row__id`` and
    ``row__partition`` (the partition's name, empty for none). Batches without columns still have
    their number of rows.

    ``is_exact``: raises AcidFormatError for a timestamp with more digits than microseconds, which
    else are cut off.
    """
    partition = {column.name: (column, value) for column, value in split.partition}
    name = partition_name(
        [column for column, _ in split.partition], [value for _, value in split.partition]
    )
    stored = tuple(column.name for column in columns if column.name not in partition)
    projection = Projection(
        table=row_type(split.columns),
        columns=stored,
        has_row_id=has_row_ids,
        timestamps=TimestampForm.EXACT_MICROS if is_exact else TimestampForm.MICROS,
    )
    reader = SnapshotReader(resolver(split.location).volume, split.write_ids, projection)
    for batch in reader.read(split.split):
        arrays, names = [], []
        for column in columns:
            names.append(column.name)
            if column.name in partition:
                arrays.append(partition_value(*partition[column.name], batch.num_rows))
            else:
                arrays.append(batch.column(stored.index(column.name)))
        if has_row_ids:
            names.append(ROW_ID_COLUMN.lower())
            arrays.append(batch.column(ROW_ID_COLUMN))
            names.append(ROW_PARTITION_COLUMN)
            arrays.append(pa.repeat(pa.scalar(name, pa.string()), batch.num_rows))
        yield pa.RecordBatch.from_arrays(arrays, names=names) if names else batch


def row_type(columns: Sequence[Column]) -> OrcType:
    """A table's own columns as one ORC struct."""
    return struct_type(
        [column.name for column in columns], [parse_hive_type(c.type) for c in columns]
    )


def partition_value(column: Column, value: str, count: int) -> pa.Array:
    """A partition column's value, ``count`` times; the default partition's is null.

    But for strings, whose default partition Hive reads as the text that it is (golden g07;
    docs/hive/acid.md §21).
    Raises AcidFormatError for a text that is no value of the column's type.
    """
    kind = parse_hive_type(column.type)
    target = arrow_type(kind)
    if value == DEFAULT_PARTITION_VALUE and kind.kind is not OrcKind.STRING:
        return pa.nulls(count, target)
    try:
        return pa.repeat(pc.cast(pa.scalar(value), target), count)
    except pa.ArrowException as error:
        raise AcidFormatError(
            f"partition value '{value}' is no {column.type} ({column.name})"
        ) from error


def _roots(catalog: CatalogStore, table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not table.is_partitioned:
        yield _location(table.storage.location, table.full_name), ()
        return
    for partition in catalog.get_partitions(table.database_name, table.name):
        yield _location(partition.storage.location, table.full_name), partition.values


def _location(location: str | None, name: str) -> str:
    if not location:
        raise AcidFormatError(f"{name} has no location; mend the table")
    return location
