"""Writes event files: one writer's insert or delete events of one partition and bucket.

Files go below a staging directory; ``publication`` gives them their names. Row ids count from 0
in each file; all events of a file have the statement's write id, so keys ascend (facts/acid §2.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.location import Resolver
from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.ids import WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.orc.acid_layout import EVENT_FIELDS, ROW, Operation
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.arrow_types import arrow_type, orc_type
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.blocks import Compression
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.evolution import adapt
from hms_bridge.rows.scan import ROW_PARTITION_COLUMN, row_type

BUCKET_COLUMN = "row__bucket"
_INSERT_STRIPE_BYTES = 8 * 1024 * 1024
"""Hive's: the table's 64 MiB over hive.exec.orc.base.delta.ratio 8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFileSpec:
    """What all tasks of one statement's inserts, or deletes, have in common."""

    staging: str
    write_id: WriteId
    statement_id: int
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def row_type(self) -> OrcType:
        """The table's own columns."""
        return row_type(self.columns)

    @property
    def settings(self) -> OrcSettings:
        """The table's codec (``orc.compress``), ZLIB without one."""
        text = self.parameters.get("orc.compress", "ZLIB").upper()
        try:
            return OrcSettings(compression=Compression[text])
        except KeyError:
            known = ", ".join(one.name for one in Compression)
            raise AcidFormatError(f"orc.compress is '{text}'; known are {known}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFile:
    """One written file. ``partition`` is the partition's name, empty for none."""

    partition: str
    path: str
    bucket_id: int
    row_count: int
    size_bytes: int


def write_inserts(
    resolver: Resolver,
    spec: EventFileSpec,
    batches: Iterator[pa.RecordBatch],
    writer_number: int,
    attempt: str,
) -> Iterator[EventFile]:
    """One file for each run of rows of one partition and bucket.

    Batches have the table's columns, then either ``row__partition`` or the partition columns; for a
    bucketed table ``row__bucket``. Rows of one partition (and bucket) must come together.
    ``writer_number`` is the bucket of an unbucketed table.
    """
    row = spec.row_type
    keyed = ((key, rows) for batch in batches for key, rows in _runs(spec, batch, writer_number))
    for (partition, bucket), runs in _grouped(keyed):
        with _EventFileWriter(resolver, spec, partition, bucket, attempt, "insert") as out:
            for rows in runs:
                out.write(_inserts(spec, row, rows, bucket, out.row_count))
            yield out.finish()


def write_deletes(
    resolver: Resolver, spec: EventFileSpec, batches: Iterator[pa.RecordBatch], attempt: str
) -> Iterator[EventFile]:
    """One file for each run of victims of one partition and bucket.

    Batches have ``row__partition, writeid, bucketid, rowid, row__bucket``, sorted by partition,
    bucket and key.
    """
    keyed = (
        ((partition, bucket), rows)
        for batch in batches
        for (partition, bucket), rows in _constant_runs(
            batch, [batch.column(ROW_PARTITION_COLUMN), batch.column(BUCKET_COLUMN)]
        )
    )
    for (partition, bucket), runs in _grouped(keyed):
        with _EventFileWriter(resolver, spec, partition, bucket, attempt, "delete") as out:
            for rows in runs:
                out.write(_deletes(spec, rows))
            yield out.finish()


class _EventFileWriter:
    """One open file."""

    def __init__(
        self,
        resolver: Resolver,
        spec: EventFileSpec,
        partition: str,
        bucket: int,
        attempt: str,
        kind: str,
    ) -> None:
        self._uri = f"{spec.staging}/{kind}_{attempt}_{uuid4().hex}"
        location = resolver(self._uri)
        self._fs, self._path = location.volume.fs, location.path
        self._partition, self._bucket = partition, bucket
        self._fs.makedirs(self._path.rpartition("/")[0], exist_ok=True)
        self._sink: Any = self._fs.open(self._path, "wb")
        self._writer = AcidOrcWriter(
            self._sink, spec.row_type, spec.settings, stripe_bytes=_INSERT_STRIPE_BYTES
        )
        self.row_count = 0

    def __enter__(self) -> _EventFileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.close()

    def write(self, events: pa.RecordBatch) -> None:
        self._writer.write(events)
        self.row_count += events.num_rows

    def finish(self) -> EventFile:
        written = self._writer.close()
        self._sink.close()
        return EventFile(
            partition=self._partition,
            path=self._uri,
            bucket_id=self._bucket,
            row_count=self.row_count,
            size_bytes=written.size_bytes,
        )


Keyed = tuple[tuple[str, int], pa.RecordBatch]


def _grouped(keyed: Iterator[Keyed]) -> Iterator[tuple[tuple[str, int], Iterator[pa.RecordBatch]]]:
    """Like itertools.groupby, but a key that comes back is an error: its file is closed."""
    import itertools

    seen: set[tuple[str, int]] = set()
    for key, group in itertools.groupby(keyed, key=lambda pair: pair[0]):
        if key in seen:
            raise AcidFormatError(f"rows of partition '{key[0]}', bucket {key[1]} are scattered")
        seen.add(key)
        yield key, (rows for _, rows in group)


def _runs(spec: EventFileSpec, batch: pa.RecordBatch, writer_number: int) -> Iterator[Keyed]:
    names = batch.schema.names
    if ROW_PARTITION_COLUMN in names:
        partition = batch.column(ROW_PARTITION_COLUMN)
    else:
        partition = _partition_names(spec, batch)
    if BUCKET_COLUMN in names:
        bucket = batch.column(BUCKET_COLUMN)
    else:
        bucket = pa.repeat(pa.scalar(writer_number, pa.int32()), batch.num_rows)
    own = batch.select([column.name for column in spec.columns])
    yield from _constant_runs(own, [partition, bucket])


def _partition_names(spec: EventFileSpec, batch: pa.RecordBatch) -> pa.Array:
    """The name of each row's partition, from the values of its partition columns."""
    keys = spec.partition_columns
    if not keys:
        return pa.repeat(pa.scalar(""), batch.num_rows)
    texts = [
        pc.fill_null(batch.column(key.name).cast(pa.string()), DEFAULT_PARTITION_VALUE)
        for key in keys
    ]
    rows = zip(*(text.to_pylist() for text in texts), strict=True)
    return pa.array([partition_name(keys, values) for values in rows], pa.string())


def _constant_runs(batch: pa.RecordBatch, keys: list[pa.Array]) -> Iterator[Keyed]:
    """The batch cut where a key changes."""
    if not batch.num_rows:
        return
    ends = {batch.num_rows}
    for key in keys:
        encoded = pc.run_end_encode(key)
        ends.update(encoded.run_ends.to_pylist())
    start = 0
    for end in sorted(ends):
        partition, bucket = (key[start].as_py() for key in keys)
        yield (partition, bucket), batch.slice(start, end - start)
        start = end


def _inserts(
    spec: EventFileSpec, row: OrcType, rows: pa.RecordBatch, bucket: int, first: int
) -> pa.RecordBatch:
    count = rows.num_rows
    columns = [
        adapt(array, orc_type(array.type), child, TimestampForm.MICROS)
        for array, child in zip(rows.columns, row.children, strict=True)
    ]
    struct = pa.StructArray.from_arrays(
        columns,
        fields=[pa.field(name, a.type) for name, a in zip(row.names, columns, strict=True)],
    )
    write_id = pa.repeat(pa.scalar(int(spec.write_id), pa.int64()), count)
    prop = encode_bucket(bucket, spec.statement_id)
    arrays = [
        pa.repeat(pa.scalar(int(Operation.INSERT), pa.int32()), count),
        write_id,
        pa.repeat(pa.scalar(prop, pa.int32()), count),
        pa.array(range(first, first + count), pa.int64()),
        write_id,
        struct,
    ]
    return pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([*EVENT_FIELDS, pa.field(ROW, struct.type)])
    )


def _deletes(spec: EventFileSpec, rows: pa.RecordBatch) -> pa.RecordBatch:
    count = rows.num_rows
    row = arrow_type(spec.row_type)
    arrays = [
        pa.repeat(pa.scalar(int(Operation.DELETE), pa.int32()), count),
        rows.column("writeid"),
        rows.column("bucketid"),
        rows.column("rowid"),
        pa.repeat(pa.scalar(int(spec.write_id), pa.int64()), count),
        pa.nulls(count, row),
    ]
    return pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([*EVENT_FIELDS, pa.field(ROW, row)])
    )


def bucket_of_rows(spec: EventFileSpec, batch: pa.RecordBatch) -> pa.Array:
    """The bucket of each row of a table that is CLUSTERED BY (Hive's bucketing version 2)."""
    types = {column.name: parse_hive_type(column.type) for column in spec.columns}
    columns = [(batch.column(name), types[name]) for name in spec.bucket_columns]
    raise AcidFormatError(f"bucketing by {len(columns)} columns waits for its room")
