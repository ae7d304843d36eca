"""Counts and sums what a snapshot sees in the inputs of a task, and what is in its outputs.

Another way than the writer's: files are decoded by pyarrow's own ORC reader (Apache ORC in C++),
visibility and deletes are merged here, plainly, on the numbers alone. Nothing of the kernel or of
the rows' reader is used, and of ``orc/`` only what a file declares of its types. Sums
(``rows/row_sum.py``) do not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.orc import ORCFile

from changemanager.filesystem.volume import Volume
from hms_bridge.acid.markers import parse_flush_length
from hms_bridge.compaction.aligned_values import aligned
from hms_bridge.compaction.executor import Verification, WrittenFile
from hms_bridge.compaction.plan import BucketTask
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import VerifyMode
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_layout import rows_in
from hms_bridge.orc.tail import read_tail
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.row_sum import SeenRows, added_up, value_sums
from hms_bridge.snapshot.plan import RawRows, ReadFile

_ROWS_AT_ONCE: Final = 65_536
_KEY: Final = ("originaltransaction", "bucket", "rowid")
_CURRENT: Final = "currenttransaction"
_ROW: Final = "row"
_SEEDS: Final = (0x243F6A8885A308D3, 0x13198A2E03707344)
_TRACE: Final = ". Detail: Python exception"
"""Where Arrow begins to show the stack of what it called."""

_Numbers = npt.NDArray[np.int64]
_Digests = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    """Some rows or delete events: keys, current write ids, and the values that were asked for."""

    key: tuple[_Numbers, ...]
    current: _Numbers
    row: pa.StructArray | None = None

    def filtered(self, mask: npt.NDArray[np.bool_]) -> _Events:
        return _Events(
            key=tuple(column[mask] for column in self.key),
            current=self.current[mask],
            row=None if self.row is None else self.row.filter(pa.array(mask)),
        )


def verify_task(
    volume: Volume, task: BucketTask, files: Sequence[WrittenFile], temporary: str, mode: VerifyMode
) -> Verification:
    """What a reader finds in a task's inputs, and in the files that it wrote below ``temporary``.

    Raises CompactionError for what cannot be read or compared so.
    """
    written = {file.path: f"{temporary}/{file.written_as}" for file in files}
    inserts = written.get(task.inserts.path) if task.inserts else None
    deletes = written.get(task.deletes.path) if task.deletes else None
    look = _Look(volume, mode)
    try:
        look.expect_values_of(inserts)
        return Verification(
            mode=mode,
            rows=look.seen(look.rows_of(task)),
            written_rows=look.seen(look.events(inserts)),
            deletes=look.seen(look.visible_deletes(task.delete_events, task.write_ids)),
            written_deletes=look.seen(look.events(deletes, has_values=False)),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition(_TRACE)[0]
        raise CompactionError(
            f"bucket {task.bucket_id}: what was written cannot be verified ({reason}); nothing was "
            f"published{': use --verify keys' if mode is VerifyMode.FULL else ''}"
        ) from error


class _Look:
    """Reads files as pyarrow does."""

    def __init__(self, volume: Volume, mode: VerifyMode) -> None:
        self._volume = volume
        self._mode = mode
        self._row_type: pa.StructType | None = None
        self._columns: OrcType | None = None

    def expect_values_of(self, path: str | None) -> None:
        """Values are compared in the types that the written file has."""
        if self._mode is VerifyMode.FULL and path is not None:
            with self._opened(path) as file:
                schema = file.schema
                self._row_type = schema.field(_place(schema, _ROW)).type
            self._columns = self._types(path)
            if _has_union(self._row_type):
                raise CompactionError(
                    "--verify full cannot compare a uniontype; nothing was published: use --verify "
                    "keys"
                )

    def seen(self, events: Iterable[_Events]) -> SeenRows:
        """How many, and their sum."""
        return added_up((len(batch.current), self._sums(batch)) for batch in events)

    def rows_of(self, task: BucketTask) -> Iterator[_Events]:
        """Rows of the inputs that the snapshot sees; deleted ones only in a minor compaction."""
        if task.rows is None:
            return
        gone = _Deleted(
            self.visible_deletes(task.rows.deletes, task.write_ids)
            if task.is_delete_applied
            else ()
        )
        for file in task.rows.files:
            for events in self._of_input(file):
                visible = events.filtered(_is_valid(events.current, task.write_ids))
                yield visible.filtered(gone.is_absent(visible))

    def visible_deletes(
        self, files: Iterable[ReadFile], write_ids: ValidWriteIdList
    ) -> Iterator[_Events]:
        """Delete events that the snapshot sees."""
        for file in files:
            for events in self.events(file.path, has_values=False):
                yield events.filtered(_is_valid(events.current, write_ids))

    def events(
        self, path: str | None, *, content: bytes | None = None, has_values: bool = True
    ) -> Iterator[_Events]:
        """All events of an ACID file; nothing of none."""
        if path is None:
            return
        has_row = has_values and self._row_type is not None
        source = self._types(path, content) if has_row else None
        with self._opened(path, content) as file:
            wanted = (*_KEY, _CURRENT, *((_ROW,) if has_row else ()))
            schema = file.schema
            names = [schema.names[_place(schema, name)] for name in wanted]
            for batch in _stripes(file, names):
                numbers = [_numbers(batch.column(name)) for name in names[:4]]
                row = self._aligned(batch.column(names[4]), source) if source else None
                yield _Events(key=tuple(numbers[:3]), current=numbers[3], row=row)

    def _of_input(self, file: ReadFile) -> Iterator[_Events]:
        if file.raw is not None:
            yield from self._raw(file.path, file.raw)
            return
        content = None
        if file.side_file is not None:
            length = parse_flush_length(self._volume.read(file.side_file), file.side_file)
            # pyarrow looks for the footer at the end: here, at the end of what was flushed.
            content = self._volume.read(file.path, length)
            if not content:
                return
        yield from self.events(file.path, content=content)

    def _raw(self, path: str, raw: RawRows) -> Iterator[_Events]:
        """Rows without ACID columns: their identity is where they lie."""
        at = sum(self._row_count(earlier) for earlier in raw.preceding)
        for count, row in self._raw_rows(path):
            write_ids = np.full(count, int(raw.write_id), np.int64)
            buckets = np.full(count, raw.bucket_property, np.int64)
            row_ids = np.arange(at, at + count, dtype=np.int64)
            yield _Events(key=(write_ids, buckets, row_ids), current=write_ids, row=row)
            at += count

    def _raw_rows(self, path: str) -> Iterator[tuple[int, pa.StructArray | None]]:
        """Some rows after others: how many, and their values if those were asked for."""
        if self._row_type is None:
            left = self._row_count(path)
            while left > 0:
                yield min(left, _ROWS_AT_ONCE), None
                left -= _ROWS_AT_ONCE
            return
        source = self._types(path)
        with self._opened(path) as file:
            for batch in _stripes(file):
                yield batch.num_rows, self._aligned(batch.to_struct_array(), source)

    def _row_count(self, path: str) -> int:
        with self._opened(path) as file:
            count: int = file.nrows
            return count

    @contextmanager
    def _opened(self, path: str, content: bytes | None = None) -> Iterator[ORCFile]:
        if content is not None:
            yield ORCFile(pa.BufferReader(content))
            return
        with self._volume.open_input(path) as stream:
            yield ORCFile(pa.PythonFile(stream, mode="r"))

    def _aligned(self, row: pa.StructArray, source: OrcType) -> pa.Array:
        if self._columns is None or self._row_type is None:
            return row
        return aligned(row, source, self._columns, self._row_type)

    def _types(self, path: str, content: bytes | None = None) -> OrcType:
        """Of a file's rows, as it declares them: Arrow shows CHAR and VARCHAR as text."""
        tail = read_tail(self._volume, path, None if content is None else len(content))
        return rows_in(tail.schema)

    def _sums(self, events: _Events) -> tuple[int, int]:
        if self._mode is VerifyMode.COUNTS:
            return 0, 0
        if events.row is not None:
            keys = (pa.array(column) for column in (*events.key, events.current))
            return value_sums([*keys, *events.row.flatten()])
        # Of inserts it is the key's write id (an UPDATE is a delete and an insert).
        columns = (*events.key, events.current)
        high, low = (int(_digest(columns, seed).sum(dtype=np.uint64)) for seed in _SEEDS)
        return high, low


class _Deleted:
    """Keys that are deleted. Memory: 16 bytes each; 128-bit digests stand for the keys."""

    def __init__(self, events: Iterable[_Events]) -> None:
        pairs = [[_digest(batch.key, seed) for seed in _SEEDS] for batch in events]
        first = np.concatenate([pair[0] for pair in pairs] or [np.empty(0, np.uint64)])
        second = np.concatenate([pair[1] for pair in pairs] or [np.empty(0, np.uint64)])
        order = np.argsort(first, kind="stable")
        self._first, self._second = first[order], second[order]

    def is_absent(self, rows: _Events) -> npt.NDArray[np.bool_]:
        """Which rows nothing deletes."""
        if not len(self._first):
            return np.ones(len(rows.current), np.bool_)
        first, second = (_digest(rows.key, seed) for seed in _SEEDS)
        # Of keys whose first halves are equal only one is found. Then a deleted row counts as
        # there, and the check fails; it never passes for it.
        at = np.minimum(np.searchsorted(self._first, first), len(self._first) - 1)
        is_there: npt.NDArray[np.bool_] = (self._first[at] != first) | (self._second[at] != second)
        return is_there


def _place(schema: pa.Schema, name: str) -> int:
    """Query-based compaction writes the names in lower case."""
    return [column_name.lower() for column_name in schema.names].index(name)


def _stripes(file: ORCFile, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The columns of these names, or all; in the file's order."""
    for number in range(file.nstripes):
        yield file.read_stripe(number, names)


def _numbers(column: pa.Array) -> _Numbers:
    """Raises pa.ArrowException if one is null. (Arrow's own way to numpy imports pandas.)"""
    numbers: _Numbers = np.asarray(np.from_dlpack(column.cast(pa.int64())), np.int64)
    return numbers


def _is_valid(write_ids: _Numbers, seen: ValidWriteIdList) -> npt.NDArray[np.bool_]:
    """Not above the watermark, neither open nor aborted; 0 is from before the table was ACID."""
    hidden = np.array([*seen.open_ids, *seen.aborted_ids], np.int64)
    is_seen = (write_ids <= seen.high_watermark) & ~np.isin(write_ids, hidden)
    result: npt.NDArray[np.bool_] = is_seen | (write_ids == 0)
    return result


def _digest(columns: Sequence[_Numbers], seed: int) -> _Digests:
    """64 bits of each row of numbers (the finalizer of splitmix64, column after column)."""
    digest = np.full(len(columns[0]), seed, np.uint64)
    for column in columns:
        digest = (digest ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        digest = (digest ^ (digest >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        digest = (digest ^ (digest >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        digest = digest ^ (digest >> np.uint64(31))
    return digest


def _has_union(kind: pa.DataType) -> bool:
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return pa.types.is_union(kind) or any(map(_has_union, inner))
