"""What runs in Spark's executors: each class is pickled by name, so this module is theirs, too.

It needs neither a database nor thrift nor a parser of SQL (tests/spark/test_tasks.py measures).
"""

from __future__ import annotations

import pickle
import socket
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from hms_bridge.directories.written import EventFile
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import Column
from hms_bridge.repl.load.copy_task import CopiedFile, CopyTask, FileToCopy
from hms_bridge.rows.event_files import (
    BUCKET_COLUMN,
    EventFileSpec,
    bucket_of_rows,
    write_deletes,
    write_inserts,
)
from hms_bridge.rows.scan import ScanSplit, read_scan_split

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from hms_bridge.compaction.executor import TaskResult
    from hms_bridge.compaction.kernel import BucketKernel
    from hms_bridge.compaction.plan import BucketTask as KernelTask

NO_COLUMN = "hive_acid_row"
"""A column of nulls that stands for rows of which no column is wanted."""


def pack_splits(splits: Iterable[ScanSplit]) -> tuple[bytes, ...]:
    """For a task: it unpacks its own split and leaves the others packed."""
    return tuple(zlib.compress(pickle.dumps(split), 1) for split in splits)


@dataclass(frozen=True, kw_only=True)
class ReadTask:
    """Reads the splits whose numbers come in, as Arrow record batches, a stripe at a time."""

    resolver: Resolver
    splits: tuple[bytes, ...]
    columns: tuple[Column, ...]
    has_row_ids: bool
    is_exact: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = pickle.loads(zlib.decompress(self.splits[number]))
                for rows in read_scan_split(
                    self.resolver,
                    split,
                    self.columns,
                    has_row_ids=self.has_row_ids,
                    is_exact=self.is_exact,
                ):
                    yield rows if rows.num_columns else _bare(rows.num_rows)


def _bare(count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(count, pa.bool_())], names=[NO_COLUMN])


@dataclass(frozen=True)
class DeleteTask:
    """Writes delete events; gives the files that it wrote."""

    spec: EventFileSpec
    resolver: Resolver

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of files."""
        _, attempt = _attempt()
        return _report(write_deletes(self.resolver, self.spec, batches, attempt))


@dataclass(frozen=True)
class InsertTask:
    """Writes insert events; gives the files that it wrote."""

    spec: EventFileSpec
    resolver: Resolver

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One batch of files."""
        number, attempt = _attempt()
        return _report(write_inserts(self.resolver, self.spec, batches, number, attempt))


@dataclass(frozen=True)
class BucketTask:
    """Adds to rows the bucket in which they belong."""

    spec: EventFileSpec

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows with one column more."""
        for batch in batches:
            yield batch.append_column(BUCKET_COLUMN, bucket_of_rows(self.spec, batch))


@dataclass(frozen=True, kw_only=True)
class LocationTask:
    """Whether an executor reaches places: host, place, what is wrong (or nothing)."""

    resolver: Resolver
    locations: Sequence[str]

    def __call__(self, _: Iterable[object]) -> Iterator[tuple[str, str, str]]:
        """One line for each place."""
        for uri in self.locations:
            try:
                is_there = self.resolver(uri).status() is not None
                wrong = "" if is_there else "nothing is there, as this host sees it"
            except (OSError, ChangeManagerError) as error:
                wrong = str(error) or type(error).__name__
            yield socket.gethostname(), uri, wrong


@dataclass(frozen=True, kw_only=True)
class CountedCopyTask:
    """Copies a share of a load's files, and adds what that brought to a sum of the driver's."""

    task: CopyTask
    brought: Accumulator[int]

    def __call__(self, share: Sequence[FileToCopy]) -> tuple[CopiedFile, ...]:
        """What became of each file."""
        copied = self.task(share)
        self.brought.add(sum(file.report.bytes for file in copied))
        return copied


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFailure:
    """What a bucket's last try raised, as a value: the entries beside it in a job go on."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class CompactionTask:
    """Compacts one bucket. ``tries`` is how often Spark lets a task fail before its whole job
    does."""

    kernel: BucketKernel
    tries: int

    def __call__(self, work: tuple[KernelTask, str, str]) -> TaskResult | TaskFailure:
        """The task, the table's root, and where to write."""
        try:
            return self.kernel(*work)
        except Exception as error:
            if _tries_before() + 1 < self.tries:
                raise  # Spark tries again, maybe on another host
            name = type(error).__name__
            is_own = isinstance(error, (HmsBridgeError, ChangeManagerError))
            return TaskFailure(reason=str(error) if is_own else f"{name}: {error}")


def _report(files: Iterator[EventFile]) -> Iterator[pa.RecordBatch]:
    reported = list(files)
    yield pa.record_batch(
        [
            pa.array([file.partition for file in reported], pa.string()),
            pa.array([file.path for file in reported], pa.string()),
            pa.array([file.bucket_id for file in reported], pa.int32()),
            pa.array([file.row_count for file in reported], pa.int64()),
            pa.array([file.size_bytes for file in reported], pa.int64()),
            pa.array([str(file.key_sum) for file in reported], pa.string()),
        ],
        names=["partition", "path", "bucket", "row_count", "size_bytes", "key_sum"],
    )


def _tries_before() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _attempt() -> tuple[int, str]:
    """This task's number, and a text that no other try of it has."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return 0, "0"
    return context.partitionId(), f"{context.stageId()}_{context.taskAttemptId()}"
