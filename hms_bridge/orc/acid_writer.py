"""Writes ACID files: sorted events in, an ORC file with key index and event counts out.

The order of events is a promise to all readers: docs/hive/acid.md §14.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType
from typing import BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.acid_layout import (
    ACID_COLUMNS,
    ACID_VERSION,
    EVENT_FIELDS,
    KEY_INDEX_METADATA,
    STATS_METADATA,
    VERSION_METADATA,
    AcidStats,
    Operation,
    acid_schema,
    format_key_index,
)
from hms_bridge.orc.assembly import OrcAssembler, OrcSettings
from hms_bridge.orc.calendar import DayConversion, hybrid_day, proleptic_day
from hms_bridge.orc.numbers import whole_number
from hms_bridge.orc.stripe_writer import encode_stripe
from hms_bridge.orc.tail import Calendar
from hms_bridge.orc.types import OrcKind, OrcType

DEFAULT_STRIPE_BYTES: Final = 64 * 1024 * 1024
DEFAULT_SETTINGS: Final = OrcSettings()
ROWS_PER_STRIPE_MIN: Final = 1024
"""Even of very long rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """What was written."""

    size_bytes: int
    stats: AcidStats
    stripe_last_keys: tuple[RowId, ...]


def day_conversion(given: Calendar | None, stored: Calendar) -> DayConversion | None:
    """How days of one calendar become those of a file; None: not at all."""
    if given is None or given.is_hybrid is stored.is_hybrid:
        return None
    return hybrid_day if stored.is_hybrid else proleptic_day


class AcidOrcWriter:
    """Streams events into one ACID file.

    Batches have ACID_COLUMNS: EVENT_FIELDS and `row`, a struct of the table's columns in order
    (null in delete events; timestamps in any form). Keys must ascend over the whole file; equal
    keys come with descending current write ids. Memory: one stripe of `stripe_bytes` (as Arrow
    counts) and what encoding it takes. The sink is left open; nothing is valid before `close`.
    """

    def __init__(
        self,
        sink: BinaryIO,
        row_type: OrcType,
        settings: OrcSettings = DEFAULT_SETTINGS,
        *,
        stripe_bytes: int = DEFAULT_STRIPE_BYTES,
        given_calendar: Calendar | None = Calendar.PROLEPTIC_GREGORIAN,
    ) -> None:
        """`given_calendar`: of the days in the batches; None: they are as the file stores them."""
        self._schema = acid_schema(row_type)
        if row_type.contains(OrcKind.UNION):
            settings = replace(settings, row_index_stride=0)
        self._settings = settings
        self._assembler = OrcAssembler(sink, self._schema, settings)
        self._stripe_bytes = stripe_bytes
        self._convert_day = day_conversion(given_calendar, settings.calendar)
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._last_keys: list[RowId] = []
        self._last_event: pa.RecordBatch | None = None
        self._counts: dict[int, int] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Add events. Raises AcidFormatError if they are out of order or of another schema."""
        if not batch.num_rows:
            return
        if tuple(batch.schema.names) != ACID_COLUMNS:
            raise AcidFormatError(f"events with columns {batch.schema.names}")
        if self._pending and batch.schema != self._pending[0].schema:
            self._flush()  # timestamps changed their form
        self._check_order(batch)
        for counted in pc.value_counts(batch.column(0)).to_pylist():
            operation = counted["values"]
            self._counts[operation] = self._counts.get(operation, 0) + counted["counts"]
        for part in self._parts(batch):
            self._pending.append(part)
            self._pending_bytes += part.nbytes
            if self._pending_bytes >= self._stripe_bytes:
                self._flush()

    def close(self) -> WrittenFile:
        """Write what is left and the tail."""
        self._flush()
        stats = AcidStats(
            inserts=self._counts.pop(int(Operation.INSERT), 0),
            updates=self._counts.pop(int(Operation.UPDATE), 0),
            deletes=self._counts.pop(int(Operation.DELETE), 0),
        )
        if self._counts:
            raise AcidFormatError(f"operation {min(self._counts)} is none")
        self._assembler.finish(
            {
                KEY_INDEX_METADATA: format_key_index(self._last_keys),
                STATS_METADATA: stats.format(),
                VERSION_METADATA: ACID_VERSION,
            }
        )
        return WrittenFile(
            size_bytes=self._assembler.size_bytes,
            stats=stats,
            stripe_last_keys=tuple(self._last_keys),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pending.clear()

    def _parts(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The batch cut so that no part makes a stripe much larger than it should be."""
        row_bytes = max(1, batch.nbytes // batch.num_rows)
        step = max(ROWS_PER_STRIPE_MIN, self._stripe_bytes // row_bytes)
        return [batch.slice(start, step) for start in range(0, batch.num_rows, step)]

    def _check_order(self, batch: pa.RecordBatch) -> None:
        events = batch.select([field.name for field in EVENT_FIELDS])
        if self._last_event is not None:
            events = pa.concat_batches([self._last_event, events])
        self._last_event = pa.concat_batches([events.slice(events.num_rows - 1)])
        if not _is_ordered(events):
            raise AcidFormatError(
                "events must ascend by write id, bucket and row id, and deletes of one row descend"
                " by current write id"
            )

    def _flush(self) -> None:
        if not self._pending:
            return
        events = pa.concat_batches(self._pending)
        self._pending, self._pending_bytes = [], 0
        self._assembler.append(
            encode_stripe(events.to_struct_array(), self._schema, self._settings, self._convert_day)
        )
        last = (events.column(at)[-1].as_py() for at in (1, 2, 3))
        self._last_keys.append(RowId._make(last))


def _is_ordered(events: pa.RecordBatch) -> bool:
    """Whether keys ascend; among equal ones there may be deletes of descending write ids only."""
    count = events.num_rows
    if count < 2:
        return True
    operation, *keys, current = events.columns
    before, after = current.slice(0, count - 1), current.slice(1)
    is_delete = pc.not_equal(operation.slice(1), whole_number(Operation.INSERT, operation.type))
    result = pc.and_(pc.greater_equal(before, after), is_delete)
    for column in reversed(keys):
        before, after = column.slice(0, count - 1), column.slice(1)
        result = pc.or_(pc.less(before, after), pc.and_(pc.equal(before, after), result))
    return bool(pc.all(result).as_py())
