"""A scan of a whole table: every root (the table, or its partitions), cut into splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.location import Resolver
from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column, Table
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcKind, OrcType, struct_type
from hms_bridge.rows.reader import ROW_ID_COLUMN, Projection, SnapshotReader
from hms_bridge.rows.roots import list_root, plan_root, table_roots
from hms_bridge.snapshot.plan import ReadPlan, ReadSplit

SPLIT_BYTES_MIN, SPLIT_BYTES_MAX = 16 * 1024 * 1024, 64 * 1024 * 1024
"""Of a file that is larger each task reads some stripes: Hive writes stripes of 64 MiB at most,
before they are compressed (`orc.stripe.size`)."""
_SPLITS_MANY = 1000
"""Above so many, splits become larger: every task is given all."""
ROW_PARTITION_COLUMN = "row__partition"


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
    for root in table_roots(metastore, table):
        listed = list_root(metastore, resolver, table, root, txns=txns, write_ids=write_ids)
        plan = plan_root(table, listed, txns=txns, write_ids=write_ids)
        values = tuple(zip(table.partition_columns, root.values, strict=True))
        plans.append((root.location, values, plan))
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
