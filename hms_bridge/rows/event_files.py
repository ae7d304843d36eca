"""Writes event files for many tasks at once: each task its own, below one staging directory.

``publication`` gathers the files of successful tasks into deltas and gives them their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.location import Resolver
from hms_bridge.directories.written import EventFile
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.blocks import Compression
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.bucketing import bucket_ids
from hms_bridge.rows.key_sum import KEY_SUM_MODULUS, key_sum
from hms_bridge.rows.reader import ROW_ID_COLUMN
from hms_bridge.rows.scan import ROW_PARTITION_COLUMN, row_type
from hms_bridge.rows.writer import BucketWriters, DeltaTarget

BUCKET_COLUMN = "row__bucket"
_ROW_ID = ROW_ID_COLUMN.lower()


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

    @classmethod
    def of_table(
        cls, table: Table, staging: str, write_id: WriteId, statement_id: int
    ) -> EventFileSpec:
        """What a statement writes to a table, below ``staging``."""
        return cls(
            staging=staging,
            write_id=write_id,
            statement_id=statement_id,
            columns=table.storage.columns,
            partition_columns=table.partition_columns,
            bucket_columns=table.storage.bucket_columns,
            bucket_count=table.storage.bucket_count,
            parameters=dict(table.parameters),
        )

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
            known = ", ".join(codec.name for codec in Compression)
            raise AcidFormatError(f"orc.compress is '{text}'; known are {known}") from None


Keyed = tuple[str, int, pa.RecordBatch]
"""Rows of one partition and one bucket."""


def write_inserts(
    resolver: Resolver,
    spec: EventFileSpec,
    batches: Iterable[pa.RecordBatch],
    writer_number: int,
    attempt: str,
) -> Iterator[EventFile]:
    """A file for each partition and bucket.

    Batches have the table's columns, then for an UPDATE ``row__id`` and ``row__partition``, else
    the partition columns; for a bucketed table ``row__bucket``. Rows of one partition must come
    together. ``writer_number`` is the bucket of an unbucketed table.
    """
    keyed = (run for batch in batches for run in _insert_runs(spec, batch, writer_number))
    names = [column.name for column in spec.columns]

    def insert(writers: BucketWriters, partition: str, bucket: int, rows: pa.RecordBatch) -> int:
        writers.insert(bucket, rows.select(names))
        if rows.num_columns == len(names):
            return 0
        ids = rows.column(len(names)).flatten()
        return key_sum(partition, (ids[0], ids[1], ids[2]))

    return _write(resolver, spec, keyed, f"insert_{attempt}", insert)


def write_deletes(
    resolver: Resolver, spec: EventFileSpec, batches: Iterable[pa.RecordBatch], attempt: str
) -> Iterator[EventFile]:
    """A file for each partition and bucket of victims.

    Batches have ``row__partition, writeid, bucketid, rowid, row__bucket``, sorted by partition,
    bucket and key.
    """
    keys = ("writeid", "bucketid", "rowid")
    keyed = (
        (partition, bucket, rows)
        for batch in batches
        for partition, bucket, rows in _runs(
            batch.select(keys), batch.column(ROW_PARTITION_COLUMN), batch.column(BUCKET_COLUMN)
        )
    )

    def delete(writers: BucketWriters, partition: str, bucket: int, rows: pa.RecordBatch) -> int:
        victims = (rows.column(0), rows.column(1), rows.column(2))
        writers.delete(bucket, victims)
        return key_sum(partition, victims)

    return _write(resolver, spec, keyed, f"delete_{attempt}", delete)


def _write(
    resolver: Resolver,
    spec: EventFileSpec,
    keyed: Iterable[Keyed],
    label: str,
    add: Callable[[BucketWriters, str, int, pa.RecordBatch], int],
) -> Iterator[EventFile]:
    seen: set[str] = set()
    for partition, runs in groupby(keyed, key=lambda run: run[0]):
        if partition in seen:
            raise AcidFormatError(f"rows of partition '{partition}' do not come together")
        seen.add(partition)
        location = resolver(f"{spec.staging}/{label}_{uuid4().hex}")
        volume = location.volume
        volume.make_directory(location.parent.parent.path)  # the table's, if gone: it must last
        volume.make_working_directory(location.path)
        target = DeltaTarget(
            table=spec.row_type,
            write_id=spec.write_id,
            statement_id=spec.statement_id,
            settings=spec.settings,
        )
        writers = BucketWriters(volume, location.path, target, max(1, spec.bucket_count))
        sums: Counter[int] = Counter()
        try:
            for _, bucket, rows in runs:
                sums[bucket] += add(writers, partition, bucket, rows)
            for written in writers.close():
                stats = written.file.stats
                yield EventFile(
                    partition=partition,
                    path=location.child(written.path.rpartition("/")[2]).uri,
                    bucket_id=written.bucket_id,
                    row_count=stats.inserts + stats.deletes,
                    size_bytes=written.file.size_bytes,
                    key_sum=sums[written.bucket_id] % KEY_SUM_MODULUS,
                )
        finally:
            writers.abandon()


def _insert_runs(spec: EventFileSpec, batch: pa.RecordBatch, writer_number: int) -> Iterator[Keyed]:
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
    if ROW_PARTITION_COLUMN in names:
        own = own.append_column(_ROW_ID, batch.column(_ROW_ID))
    yield from _runs(own, partition, bucket)


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


def _runs(batch: pa.RecordBatch, partition: pa.Array, bucket: pa.Array) -> Iterator[Keyed]:
    """The batch cut where partition or bucket change."""
    if not batch.num_rows:
        return
    ends: set[int] = set()
    for key in (partition, bucket):
        ends.update(pc.run_end_encode(key).run_ends.to_pylist())
    start = 0
    for end in sorted(ends):
        yield partition[start].as_py(), bucket[start].as_py(), batch.slice(start, end - start)
        start = end


def bucket_of_rows(spec: EventFileSpec, batch: pa.RecordBatch) -> pa.Array:
    """The bucket of each row of a table that is CLUSTERED BY (Hive's bucketing version 2)."""
    types = {column.name: parse_hive_type(column.type) for column in spec.columns}
    return bucket_ids(
        [batch.column(name) for name in spec.bucket_columns],
        [types[name] for name in spec.bucket_columns],
        spec.bucket_count,
    )
