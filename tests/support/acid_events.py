"""Events for ACID files, and what was written read back."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa

from hms_bridge.orc.acid_layout import EVENT_FIELDS, ROW
from hms_bridge.orc.acid_reader import OrcFile
from hms_bridge.orc.stripe_reader import ReadForm
from hms_bridge.orc.tail import tail_of_file
from hms_bridge.orc.timestamps import TimestampForm

BUCKET = 536870912


def events(
    row: pa.Array,
    *,
    write_ids: int | Sequence[int] = 1,
    buckets: int | Sequence[int] = BUCKET,
    row_ids: Sequence[int] | None = None,
    current: int | Sequence[int] | None = None,
    operation: int = 0,
) -> pa.RecordBatch:
    """A batch of events; single numbers stand for all rows."""
    count = len(row)

    def column(given: int | Sequence[int], kind: pa.DataType) -> pa.Array:
        return pa.array([given] * count if isinstance(given, int) else list(given), kind)

    arrays = [
        column(operation, pa.int32()),
        column(write_ids, pa.int64()),
        column(buckets, pa.int32()),
        column(range(count) if row_ids is None else row_ids, pa.int64()),
        column(write_ids if current is None else current, pa.int64()),
        row,
    ]
    return pa.RecordBatch.from_arrays(
        arrays, schema=pa.schema([*EVENT_FIELDS, pa.field(ROW, row.type)])
    )


def read_back(content: bytes, form: ReadForm | None = None) -> list[pa.RecordBatch]:
    """The events of a file by stripe."""
    file = io.BytesIO(content)
    wanted = form or ReadForm(timestamps=TimestampForm.PARTS)
    opened = OrcFile(file, tail_of_file(file, "written"), wanted)
    return [opened.read_events(number) for number in range(opened.stripe_count)]
