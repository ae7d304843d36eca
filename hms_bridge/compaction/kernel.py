"""The work on one bucket: files in, one insert file and one delete file out.

A plain function over files with bounded memory, so that any process can run it: one decoded stripe
at a time for rows; for delete events their keys (28 bytes each). Only files whose key ranges
overlap are sorted together in memory, which Hive's own writers never make.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.durable import settle_file
from changemanager.filesystem.permissions import common
from changemanager.filesystem.volume import Volume
from changemanager.location import Resolver
from hms_bridge.compaction.executor import TaskResult, WrittenFile
from hms_bridge.compaction.plan import BucketTask, OutputFile
from hms_bridge.compaction.verify import verify_task
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import VerifyMode
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_layout import EVENT_FIELDS, ROW, Operation
from hms_bridge.orc.acid_reader import OrcFiles, open_orc_file
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.numbers import repeated
from hms_bridge.orc.stripe_copy import (
    CopySource,
    copy_refusal,
    copy_stripes,
    in_key_order,
    load_copy_source,
    stated_key_range,
)
from hms_bridge.orc.tail import read_tail
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.keys import is_valid_mask
from hms_bridge.rows.reader import ROW_ID_COLUMN, Projection, SnapshotReader, logical_length
from hms_bridge.rows.scan import row_type
from hms_bridge.snapshot.plan import ReadFile, ReadSplit

_COPIED_STRIPE_ROWS_MIN = 10_000
"""One row group; files of smaller stripes read up to four times slower."""

_KEY = ("originalTransaction", "bucket", "rowId")


@dataclass(frozen=True, kw_only=True)
class BucketKernel:
    """Runs tasks on the file systems that ``resolver`` finds. Can be pickled if that can."""

    resolver: Resolver
    verify: VerifyMode = VerifyMode.KEYS

    def __call__(self, task: BucketTask, root: str, temporary: str) -> TaskResult:
        """Do a task. Files have names of this try's own, which the results name.

        Raises CompactionError for what cannot be encoded.
        """
        files = OrcFiles(self.resolver(root).volume)
        place = self.resolver(temporary).path
        try:
            result = self._run(files, task, f"{place}/try_{uuid4().hex}")
            verification = verify_task(files.volume, task, result.files, place, self.verify)
            return replace(result, verification=verification)
        except pa.ArrowException as error:
            raise CompactionError(f"bucket {task.bucket_id} of {root}: {error}") from error

    def _run(self, files: OrcFiles, task: BucketTask, target: str) -> TaskResult:
        outputs = []
        rows_read = deletes_read = 0
        if task.rows is not None and task.inserts is not None:
            written, rows_read = _write_rows(files, task, task.rows, task.inserts, target)
            outputs.append(written)
        if task.delete_events and task.deletes is not None:
            written, deletes_read = _write_deletes(files, task, task.deletes, target)
            outputs.append(written)
        return TaskResult(
            bucket_id=task.bucket_id,
            files=tuple(outputs),
            rows_read=rows_read,
            delete_events_read=deletes_read,
        )


def _write_rows(
    files: OrcFiles, task: BucketTask, split: ReadSplit, output: OutputFile, target: str
) -> tuple[WrittenFile, int]:
    path = f"{target}/{output.path}"
    volume = files.volume
    sources = _copyable(files, task, split)
    if sources:
        with _new_file(volume, path, split.files) as sink:
            copy_stripes(volume, sources, sink)
        read = sum(source.tail.row_count for source in sources)
        return _read_back(volume, output, path), read
    table = row_type(task.columns)
    projection = Projection(table=table, has_row_id=True, timestamps=TimestampForm.PARTS)
    reader = SnapshotReader(volume, task.write_ids, projection, files)
    rows_read = 0
    with (
        _new_file(volume, path, split.files) as sink,
        AcidOrcWriter(sink, table, _settings(files, split.files)) as out,
    ):
        for group in _in_key_order(files, split.files):
            batches = reader.read(replace(split, files=group))
            events = (_insert_events(batch) for batch in batches)
            for batch in events if len(group) == 1 else _sorted_together(events):
                rows_read += batch.num_rows
                out.write(batch)
        out.close()
    return _read_back(volume, output, path), rows_read


def _copyable(files: OrcFiles, task: BucketTask, split: ReadSplit) -> tuple[CopySource, ...]:
    """The files, if their stripes can be copied as they are: nothing is decoded, so nothing can
    change. Not worth it for small stripes, which make the result slow to read."""
    if task.is_delete_applied or any(file.raw or file.side_file for file in split.files):
        return ()
    tails = [files.tail(file.path) for file in split.files]
    stripe_count = sum(len(tail.stripes) for tail in tails)
    if sum(tail.row_count for tail in tails) < stripe_count * _COPIED_STRIPE_ROWS_MIN:
        return ()
    sources = in_key_order([load_copy_source(files, file.path) for file in split.files])
    return () if copy_refusal(sources, task.write_ids) else sources


def _in_key_order(files: OrcFiles, inputs: Sequence[ReadFile]) -> Iterator[tuple[ReadFile, ...]]:
    """Files by their first keys; those whose ranges overlap together."""
    ranges = []
    for place, file in enumerate(inputs):
        first, last = _key_range(files, file)
        if first is not None:
            ranges.append((first, last, place))
    group: list[ReadFile] = []
    end: tuple[int, int, int] | None = None
    for first, last, place in sorted(ranges):
        if group and end is not None and first > end:
            yield tuple(group)
            group = []
        group.append(inputs[place])
        # The highest key so far, which need not be the last file's.
        end = last if end is None or last > end or not group[:-1] else end
    if group:
        yield tuple(group)


def _key_range(
    files: OrcFiles, file: ReadFile
) -> tuple[tuple[int, int, int] | None, tuple[int, int, int]]:
    """First and last key of a file; no first one for a file without rows."""
    nothing = (0, 0, 0)
    # A file from before the table was ACID has no keys: rows are counted, over the files before it.
    if file.raw is not None:
        tail = files.tail(file.path)
        before = sum(files.tail(path).row_count for path in file.raw.preceding)
        if not tail.row_count:
            return None, nothing
        write_id, bucket = int(file.raw.write_id), file.raw.bucket_property
        return (write_id, bucket, before), (write_id, bucket, before + tail.row_count - 1)
    length = logical_length(files.volume, file)
    if length == 0:
        return None, nothing
    tail = files.tail(file.path, length)
    if not tail.row_count:
        return None, nothing
    stated = stated_key_range(tail)
    if stated is not None:
        return stated
    with files.opened(file.path, length_bytes=length) as opened:
        full = [at for at, stripe in enumerate(opened.tail.stripes) if stripe.row_count]
        first = opened.read_keys(full[0])
        last = first if len(full) == 1 else opened.read_keys(full[-1])
    return _key_at(first, 0), _key_at(last, last.num_rows - 1)


def _key_at(keys: pa.RecordBatch, place: int) -> tuple[int, int, int]:
    write_id, bucket, row_id = (keys.column(at)[place].as_py() for at in range(3))
    return write_id, bucket, row_id


def _sorted_together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    all_batches = list(batches)
    if all_batches:
        table = pa.Table.from_batches(all_batches)
        order = pc.sort_indices(
            table.select(list(_KEY)), sort_keys=[(name, "ascending") for name in _KEY]
        )
        yield from table.take(order).combine_chunks().to_batches()


def _insert_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with identifiers as insert events. Their current write id is the original one: an
    UPDATE is a delete and an insert."""
    write_ids, buckets, row_ids = batch.column(ROW_ID_COLUMN).flatten()
    columns = [batch.column(at) for at in range(batch.num_columns - 1)]
    fields = [batch.schema.field(at) for at in range(batch.num_columns - 1)]
    row = (
        pa.StructArray.from_arrays(columns, fields=fields)
        if columns
        else pa.array([{}] * batch.num_rows, pa.struct([]))
    )
    operation = repeated(Operation.INSERT, pa.int32(), batch.num_rows)
    schema = pa.schema([*EVENT_FIELDS, pa.field(ROW, row.type)])
    return pa.RecordBatch.from_arrays(
        [operation, write_ids, buckets, row_ids, write_ids, row], schema=schema
    )


def _write_deletes(
    files: OrcFiles, task: BucketTask, output: OutputFile, target: str
) -> tuple[WrittenFile, int]:
    """All visible delete events of the bucket, sorted by their victims' keys."""
    table = row_type(task.columns)
    volume = files.volume
    batches = [
        batch
        for file in task.delete_events
        for batch in _delete_events(volume, file, task.write_ids)
    ]
    path = f"{target}/{output.path}"
    events = pa.Table.from_batches(batches, schema=pa.schema(EVENT_FIELDS))
    # Of one row the latest deletion first, by which readers merge (docs/hive/acid.md §14).
    order = pc.sort_indices(
        events,
        sort_keys=[*((name, "ascending") for name in _KEY), ("currentTransaction", "descending")],
    )
    row = arrow_type(table, TimestampForm.MICROS)
    settings = _settings(files, task.delete_events)
    with (
        _new_file(volume, path, task.delete_events) as sink,
        AcidOrcWriter(sink, table, settings) as out,
    ):
        for batch in events.take(order).combine_chunks().to_batches():
            out.write(batch.append_column(pa.field(ROW, row), pa.nulls(batch.num_rows, row)))
        out.close()
    return _read_back(volume, output, path), events.num_rows


def _delete_events(
    volume: Volume, file: ReadFile, write_ids: ValidWriteIdList
) -> Iterator[pa.RecordBatch]:
    with open_orc_file(volume, file.path) as opened:
        for stripe in range(opened.stripe_count):
            events = opened.read_events(stripe, ())
            mask = is_valid_mask(events.column("currentTransaction"), write_ids)
            yield events if mask is None else events.filter(mask)


def _settings(files: OrcFiles, inputs: Sequence[ReadFile]) -> OrcSettings:
    """The codec and block size of the inputs stay, and so does each value that one of them has."""
    for file in inputs:
        length = logical_length(files.volume, file)
        tail = None if length == 0 else files.tail(file.path, length)
        if tail is not None and tail.row_count:
            return OrcSettings(
                compression=tail.compression,
                block_size_bytes=max(tail.block_size_bytes, 65_536),
                has_last_second=True,
            )
    return OrcSettings()


@contextmanager
def _new_file(volume: Volume, path: str, inputs: Sequence[ReadFile]) -> Iterator[Any]:
    """A file to write, for who may read all inputs; at its end its bytes are on the disk."""
    volume.make_working_directory(path.rpartition("/")[0])
    permissions = [volume.permissions(file.path) for file in inputs]
    like = common([known for known in permissions if known is not None])
    with volume.open_output(path, like) as sink:
        yield sink
    settle_file(volume, path)


def _read_back(volume: Volume, output: OutputFile, path: str) -> WrittenFile:
    """What is on disk now, not what was meant to be."""
    tail = read_tail(volume, path)
    if tail.row_count != sum(stripe.row_count for stripe in tail.stripes):
        raise CompactionError(f"{path}: the footer's row count does not fit its stripes")
    return WrittenFile(
        path=output.path,
        written_as="/".join(path.rsplit("/", 3)[-3:]),
        row_count=tail.row_count,
        size_bytes=tail.length_bytes,
    )


@dataclass(frozen=True, kw_only=True)
class LocalExecutor:
    """Runs tasks in this process, one after the other."""

    kernel: BucketKernel

    @property
    def job_id(self) -> str:
        """``process-<id>``: who runs bucket tasks is this process itself."""
        return f"process-{os.getpid()}"

    def run(
        self, tasks: Sequence[BucketTask], *, root: str, temporary: str
    ) -> tuple[TaskResult, ...]:
        """Results in the order of the tasks."""
        return tuple(self.kernel(task, root, temporary) for task in tasks)
