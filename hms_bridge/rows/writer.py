"""Writes insert and delete events of one transaction's write id."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.durable import settle_file
from changemanager.filesystem.volume import Volume
from hms_bridge.acid.bucket_codec import bucket_id_of, encode_bucket
from hms_bridge.acid.names import BucketFileName, DirectoryName
from hms_bridge.directories.staging import StagedDirectory, discard, finish, stage_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.orc.acid_layout import EVENT_FIELDS, ROW, Operation
from hms_bridge.orc.acid_writer import (
    DEFAULT_SETTINGS,
    DEFAULT_STRIPE_BYTES,
    AcidOrcWriter,
    WrittenFile,
)
from hms_bridge.orc.arrow_types import arrow_type, orc_type, plain_arrow_type
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.timestamps import PARTS_TYPE, TimestampForm
from hms_bridge.orc.types import OrcKind, OrcType
from hms_bridge.rows.evolution import adapt
from hms_bridge.rows.keys import Keys, filter_keys, sort_keys

MEMORY_BYTES: Final = 4 * DEFAULT_STRIPE_BYTES
"""What the open writers of one directory keep together."""
_STRIPE_BYTES_MIN: Final = 1024 * 1024
_DELETE_BATCH_ROWS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaTarget:
    """Where a statement writes: root (table or partition), columns as declared, ids, codec.

    `token` names this writer apart from all others that ever write below the root.
    """

    root: str
    table: OrcType
    write_id: WriteId
    statement_id: int
    token: str
    settings: OrcSettings = DEFAULT_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBucket:
    """One bucket file."""

    path: str
    bucket_id: int
    file: WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDelta:
    """A published delta or delete delta."""

    path: str
    buckets: tuple[WrittenBucket, ...]

    @property
    def event_count(self) -> int:
        """Insert or delete events in it."""
        stats = [bucket.file.stats for bucket in self.buckets]
        return sum(one.inserts + one.updates + one.deletes for one in stats)


class BucketWriters:
    """The open files of one directory, one a bucket. Files are whole after `close` only.

    Memory: `bucket_count` (an estimate will do) writers share MEMORY_BYTES.
    """

    def __init__(
        self, volume: Volume, directory: str, target: DeltaTarget, bucket_count: int = 1
    ) -> None:
        self._volume = volume
        self._directory = directory
        self._target = target
        share = MEMORY_BYTES // max(1, bucket_count)
        self._stripe_bytes = min(DEFAULT_STRIPE_BYTES, max(_STRIPE_BYTES_MIN, share))
        self._files = ExitStack()
        self._writers: dict[int, tuple[str, AcidOrcWriter]] = {}
        self._row_counts: dict[int, int] = {}

    def insert(self, bucket_id: int, rows: pa.RecordBatch) -> None:
        """Add rows (the table's columns, in order) to a bucket; they get the next row ids."""
        if not rows.num_rows:
            return
        count = rows.num_rows
        first = self._row_counts.get(bucket_id, 0)
        bucket = encode_bucket(bucket_id, self._target.statement_id)
        keys = (
            pa.repeat(pa.scalar(int(self._target.write_id), pa.int64()), count),
            pa.repeat(pa.scalar(bucket, pa.int32()), count),
            pa.arange(first, first + count),
        )
        row = as_table_rows(rows, self._target.table)
        self._write(bucket_id, Operation.INSERT, keys, row)
        self._row_counts[bucket_id] = first + count

    def delete(self, bucket_id: int, victims: Keys) -> None:
        """Add delete events for sorted victims whose buckets decode to `bucket_id`."""
        empty_row = pa.nulls(len(victims[0]), arrow_type(self._target.table))
        self._write(bucket_id, Operation.DELETE, victims, empty_row)

    def close(self) -> tuple[WrittenBucket, ...]:
        """Complete all files; their bytes are on the disk when this returns."""
        written = []
        with self._files:
            for bucket_id, (path, writer) in sorted(self._writers.items()):
                written.append(WrittenBucket(path=path, bucket_id=bucket_id, file=writer.close()))
        for bucket in written:
            settle_file(self._volume, bucket.path)
        return tuple(written)

    def abandon(self) -> None:
        """Close what is open; the files are worthless."""
        self._files.close()

    def _write(self, bucket_id: int, operation: Operation, keys: Keys, row: pa.Array) -> None:
        count = len(keys[0])
        arrays = [
            pa.repeat(pa.scalar(int(operation), pa.int32()), count),
            *keys,
            pa.repeat(pa.scalar(int(self._target.write_id), pa.int64()), count),
            row,
        ]
        schema = pa.schema([*EVENT_FIELDS, pa.field(ROW, row.type)])
        self._writer(bucket_id).write(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def _writer(self, bucket_id: int) -> AcidOrcWriter:
        if bucket_id not in self._writers:
            path = f"{self._directory}/{BucketFileName(bucket_id=bucket_id).format()}"
            sink: BinaryIO = self._files.enter_context(self._volume.open_output(path))
            writer = AcidOrcWriter(
                sink, self._target.table, self._target.settings, stripe_bytes=self._stripe_bytes
            )
            self._writers[bucket_id] = (path, writer)
        return self._writers[bucket_id][1]


def write_insert_delta(
    volume: Volume,
    target: DeltaTarget,
    batches: Iterable[tuple[int, pa.RecordBatch]],
    bucket_count: int = 1,
) -> WrittenDelta | None:
    """Write rows, each batch for the bucket (or writer) id before it; None if there are no rows.

    Columns stand in the table's order; types are adapted as Hive does. Row ids count from 0 in
    each bucket. Raises AcidFormatError for values that the table's columns cannot take.
    """
    name = DirectoryName.delta(target.write_id, target.write_id, target.statement_id)
    staged = stage_directory(volume, target.root, name, target.token)
    writers = BucketWriters(volume, staged.path, target, bucket_count)
    try:
        for bucket_id, batch in batches:
            writers.insert(bucket_id, batch)
        return _published(volume, staged, writers.close())
    except BaseException:
        writers.abandon()
        discard(volume, staged)
        raise


def write_delete_delta(
    volume: Volume, target: DeltaTarget, victims: Iterable[pa.Array]
) -> WrittenDelta | None:
    """Write delete events for ROW__IDs (structs as the reader gives them), in any order.

    Files are named after the bucket that the victims' bucket properties hold. Memory: all victims'
    keys. None if there are no victims.
    """
    by_bucket = group_victims(victims)
    name = DirectoryName.delete_delta(target.write_id, target.write_id, target.statement_id)
    staged = stage_directory(volume, target.root, name, target.token)
    try:
        written: list[WrittenBucket] = []
        for bucket_id, keys in sorted(by_bucket.items()):
            writers = BucketWriters(volume, staged.path, target)
            try:
                for start in range(0, len(keys[0]), _DELETE_BATCH_ROWS):
                    part = tuple(column.slice(start, _DELETE_BATCH_ROWS) for column in keys)
                    writers.delete(bucket_id, (part[0], part[1], part[2]))
                written += writers.close()
            finally:
                writers.abandon()
        return _published(volume, staged, tuple(written))
    except BaseException:
        discard(volume, staged)
        raise


def group_victims(victims: Iterable[pa.Array]) -> dict[int, Keys]:
    """Sorted keys of the victims by the bucket id of their bucket properties."""
    parts = [array.flatten() for array in victims if len(array)]
    if not parts:
        return {}
    columns = [pa.concat_arrays([part[at] for part in parts]) for at in range(3)]
    if any(column.null_count for column in columns):
        raise AcidFormatError("a ROW__ID is null; only stored rows can be deleted")
    keys: Keys = (columns[0], columns[1], columns[2])
    found: dict[int, list[int]] = {}
    for bucket in pc.unique(keys[1]).to_pylist():
        found.setdefault(bucket_id_of(bucket), []).append(bucket)
    return {
        bucket_id: sort_keys(
            filter_keys(keys, pc.is_in(keys[1], value_set=pa.array(buckets, pa.int32())))
        )
        for bucket_id, buckets in found.items()
    }


def as_table_rows(rows: pa.RecordBatch, table: OrcType) -> pa.StructArray:
    """The rows as a struct of the table's columns. Raises AcidFormatError if they do not fit."""
    if rows.num_columns != len(table.children):
        names = ", ".join(table.names)
        raise AcidFormatError(
            f"{rows.num_columns} values for {len(table.children)} columns ({names})"
        )
    arrays = []
    for name, array, target in zip(table.names, rows.columns, table.children, strict=True):
        try:
            arrays.append(_as_column(array, target))
        except (AcidFormatError, pa.ArrowException) as error:
            raise AcidFormatError(f"column {name}: {error}") from error
    return pa.StructArray.from_arrays(arrays, names=list(table.names))


def _as_column(array: pa.Array, target: OrcType) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(target))
    if target.contains(OrcKind.UNION):
        if array.type != arrow_type(target, TimestampForm.PARTS):
            raise AcidFormatError(f"a uniontype is given as {arrow_type(target)}")
        return array
    if array.type == PARTS_TYPE and target.kind.is_timestamp:
        return array
    plain = plain_arrow_type(array.type)
    given = array if array.type == plain else array.cast(plain)
    return adapt(given, orc_type(plain), target, TimestampForm.MICROS)


def _published(
    volume: Volume, staged: StagedDirectory, buckets: tuple[WrittenBucket, ...]
) -> WrittenDelta | None:
    if not buckets:
        discard(volume, staged)
        return None
    finish(volume, staged)
    moved = tuple(
        WrittenBucket(
            path=f"{staged.final_path}/{bucket.path.rpartition('/')[2]}",
            bucket_id=bucket.bucket_id,
            file=bucket.file,
        )
        for bucket in buckets
    )
    return WrittenDelta(path=staged.final_path, buckets=moved)
