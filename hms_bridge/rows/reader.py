"""Reads the rows of a snapshot as Arrow record batches, one for each stripe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from changemanager.filesystem.volume import Volume
from hms_bridge.acid.markers import parse_flush_length
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_layout import ROW, Operation, rows_in
from hms_bridge.orc.acid_reader import OrcFile, OrcFiles, open_orc_file
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.nesting import bare_children
from hms_bridge.orc.numbers import repeated, whole_number
from hms_bridge.orc.stripe_reader import ReadForm
from hms_bridge.orc.tail import Calendar
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.deletes import DeleteEvents
from hms_bridge.rows.evolution import adapt, has_timestamp_as_text
from hms_bridge.rows.keys import Keys, is_among, is_valid_mask, key_bounds
from hms_bridge.snapshot.plan import RawRows, ReadFile, ReadSplit

ROW_ID_COLUMN: Final = "ROW__ID"
ROW_ID_TYPE: Final = pa.struct(
    [("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What a reader gives of each row.

    `table`: struct of the table's data columns (without partition columns) as declared now.
    `columns`: the chosen ones, in the order wanted; None: all. Dates and timestamps follow the
    proleptic calendar, as Hive shows them. `timestamps` may be anything but LOSSLESS.
    """

    table: OrcType
    columns: tuple[str, ...] | None = None
    has_row_id: bool = False
    timestamps: TimestampForm = TimestampForm.MICROS

    def places(self) -> tuple[int, ...]:
        """Places of the chosen columns. Raises AcidFormatError if the table lacks one."""
        if self.columns is None:
            return tuple(range(len(self.table.names)))
        by_name = {name.lower(): place for place, name in enumerate(self.table.names)}
        missing = [name for name in self.columns if name.lower() not in by_name]
        if missing:
            raise AcidFormatError(f"the table has no column {', '.join(missing)}")
        return tuple(by_name[name.lower()] for name in self.columns)

    def schema(self) -> pa.Schema:
        """Schema of the batches: the chosen columns, then ROW__ID if asked for."""
        fields = [
            pa.field(self.table.names[at], arrow_type(self.table.children[at], self.timestamps))
            for at in self.places()
        ]
        if self.has_row_id:
            fields.append(pa.field(ROW_ID_COLUMN, ROW_ID_TYPE))
        return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class _Stripe:
    """Rows of one stripe before deletes: file columns at hand by their places in the file."""

    keys: Keys | None
    current_write_ids: pa.Array | None
    columns: dict[int, pa.Array]
    row_count: int


class SnapshotReader:
    """Reads splits of one plan. Memory: one decoded stripe and the deletes that may hit it."""

    def __init__(
        self,
        volume: Volume,
        write_ids: ValidWriteIdList,
        projection: Projection,
        files: OrcFiles | None = None,
    ) -> None:
        """``files``: those of the volume whose tails are known, if there are some."""
        if projection.timestamps is TimestampForm.LOSSLESS:
            raise AcidFormatError("rows have one schema: ask for PARTS in place of LOSSLESS")
        self._volume = volume
        self._files = files or OrcFiles(volume)
        self._write_ids = write_ids
        self._projection = projection
        self._places = projection.places()
        self._schema = projection.schema()
        self._deletes = DeleteEvents(volume, write_ids)
        self._form = ReadForm(
            timestamps=projection.timestamps, calendar=Calendar.PROLEPTIC_GREGORIAN
        )

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self._schema

    def read(self, split: ReadSplit) -> Iterator[pa.RecordBatch]:
        """The visible rows of a split, in the files' order; batches may not be empty.

        Raises AcidFormatError (NotOrcError) naming the file, FileNotFoundError if one is gone.
        """
        for file in split.files:
            length = logical_length(self._volume, file)
            if length == 0:
                continue
            with self._files.opened(file.path, self._form, length) as plain:
                opened = self._with_all_digits(plain)
                for stripe in self._stripes(opened, file, split):
                    batch = self._visible(stripe, file, opened, split.deletes)
                    if batch.num_rows:
                        yield batch

    def _with_all_digits(self, opened: OrcFile) -> OrcFile:
        """The file as it is read where one of its timestamps has become text."""
        source, table = rows_in(opened.tail.schema), self._projection.table
        if not any(
            has_timestamp_as_text(source.children[place], table.children[place])
            for place in self._file_places(source)
        ):
            return opened
        return opened.read_as(replace(self._form, timestamps=TimestampForm.PARTS))

    def _stripes(self, opened: OrcFile, file: ReadFile, split: ReadSplit) -> Iterator[_Stripe]:
        is_insert_only = file.raw is None and file.bucket_id is None
        if opened.layout is not None and file.raw is None:
            yield from self._acid_stripes(opened, file, split)
        elif opened.layout is None and (file.raw is not None or is_insert_only):
            yield from self._raw_stripes(opened, file, split)
        elif opened.layout is None:
            raise AcidFormatError("the file has no ACID columns", file.path)
        else:
            raise AcidFormatError("ACID columns in a file that should have none", file.path)

    def _file_places(self, row_type: OrcType) -> list[int]:
        return sorted({place for place in self._places if place < len(row_type.children)})

    def _acid_stripes(self, opened: OrcFile, file: ReadFile, split: ReadSplit) -> Iterator[_Stripe]:
        places = self._file_places(opened.require_layout().row_type)
        for number, stripe in enumerate(opened.tail.stripes):
            if not split.has_stripe(stripe.offset_bytes):
                continue
            events = opened.read_events(number, places)
            operation, write_ids, buckets, row_ids, current = events.columns[:5]
            insert = whole_number(Operation.INSERT, operation.type)
            if pc.any(pc.not_equal(operation, insert)).as_py():
                raise AcidFormatError(
                    "update or delete events among inserts: a table from before Hive 3, which must"
                    " be major compacted by Hive 2 first",
                    file.path,
                )
            row = bare_children(events.column(ROW)) if places else []
            yield _Stripe(
                keys=(write_ids, buckets, row_ids),
                current_write_ids=current,
                columns=dict(zip(places, row, strict=True)),
                row_count=events.num_rows,
            )

    def _raw_stripes(self, opened: OrcFile, file: ReadFile, split: ReadSplit) -> Iterator[_Stripe]:
        places = self._file_places(opened.tail.schema)
        first = 0 if file.raw is None else self._rows_before(file.raw)
        for number, stripe in enumerate(opened.tail.stripes):
            before, first = first, first + stripe.row_count
            if not split.has_stripe(stripe.offset_bytes):
                continue
            rows = bare_children(opened.read_rows(number, places)) if places else []
            yield _Stripe(
                keys=None if file.raw is None else _raw_keys(file.raw, before, stripe.row_count),
                current_write_ids=None,
                columns=dict(zip(places, rows, strict=True)),
                row_count=stripe.row_count,
            )

    def _rows_before(self, raw: RawRows) -> int:
        """Rows of one bucket are numbered on through all of its files."""
        return sum(self._files.tail(path).row_count for path in raw.preceding)

    def _visible(
        self, stripe: _Stripe, file: ReadFile, opened: OrcFile, deletes: Sequence[ReadFile]
    ) -> pa.RecordBatch:
        mask = self._visible_mask(stripe, file, deletes)
        source = rows_in(opened.tail.schema)
        row_count = stripe.row_count if mask is None else pc.sum(mask).as_py() or 0
        arrays = []
        for place in self._places:
            target = self._projection.table.children[place]
            if place not in stripe.columns:
                # The column was added after the file was written.
                arrays.append(pa.nulls(row_count, arrow_type(target, self._form.timestamps)))
                continue
            array = stripe.columns[place]
            kept = array if mask is None else array.filter(mask)
            try:
                arrays.append(adapt(kept, source.children[place], target, self._form.timestamps))
            except AcidFormatError as error:
                name = self._projection.table.names[place]
                raise AcidFormatError(f"column {name}: {error}", file.path) from error
        if self._projection.has_row_id:
            arrays.append(_row_ids(stripe, mask, file))
        # count(*) reads no column, but needs the number of rows.
        if not arrays:
            return pa.record_batch([pa.nulls(row_count)], names=["_"]).select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _visible_mask(
        self, stripe: _Stripe, file: ReadFile, deletes: Sequence[ReadFile]
    ) -> pa.Array | None:
        """Which rows the snapshot sees; None: all."""
        mask = None
        if file.is_filtered and stripe.current_write_ids is not None:
            mask = is_valid_mask(stripe.current_write_ids, self._write_ids)
        elif file.raw is not None and not self._write_ids.is_valid(file.raw.write_id):
            mask = pa.repeat(False, stripe.row_count)
        # Rows of an insert-only table have no keys that a delete event could name.
        if stripe.keys is None or not stripe.row_count:
            return mask
        victims = self._deletes.victims(deletes, *key_bounds(stripe.keys))
        if victims is not None:
            is_alive = pc.invert(is_among(stripe.keys, victims))
            mask = is_alive if mask is None else pc.and_(mask, is_alive)
        return mask


def has_raw_rows(volume: Volume, path: str) -> bool:
    """Whether a file has the table's columns only: what `list_acid_directory` asks.

    A file that is no ORC counts as raw, too (of an insert-only table).
    """
    try:
        with open_orc_file(volume, path) as opened:
            return opened.layout is None
    except AcidFormatError:
        return True


def _raw_keys(raw: RawRows, first: int, count: int) -> Keys:
    return (
        repeated(raw.write_id, pa.int64(), count),
        repeated(raw.bucket_property, pa.int32(), count),
        pa.arange(first, first + count),
    )


def _row_ids(stripe: _Stripe, mask: pa.Array | None, file: ReadFile) -> pa.Array:
    if stripe.keys is None:
        raise AcidFormatError("rows of an insert-only table have no ROW__ID", file.path)
    columns: Sequence[pa.Array] = stripe.keys
    if mask is not None:
        columns = [column.filter(mask) for column in columns]
    return pa.StructArray.from_arrays(list(columns), fields=list(ROW_ID_TYPE))


def logical_length(volume: Volume, file: ReadFile) -> int | None:
    """How far a streaming writer has flushed: the last whole number of the side file.

    0 is what it writes when it begins (Hive: OrcRecordUpdater; docs/hive/acid.md §18): no row of
    the file can be read yet.
    None: the file is closed. Raises AcidFormatError if the side file says nothing.
    """
    if file.side_file is None:
        return None
    return parse_flush_length(volume.read(file.side_file), file.side_file)
