"""A reader of row ids alone, slow and plain: it judges plans, it is not the product's reader."""

from __future__ import annotations

from collections import Counter

import pyarrow.orc

from hms_bridge.model.ids import WriteId
from hms_bridge.snapshot.plan import ReadFile, ReadPlan

ACID_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")


def read_row_ids(plan: ReadPlan) -> Counter[tuple[int, int, int]]:
    """Row ids that a snapshot sees, with how often each was seen."""
    seen: Counter[tuple[int, int, int]] = Counter()
    for split in plan.file_splits():
        deleted = {
            event[1:4]
            for file in split.deletes
            for event in _events(file)
            if plan.write_ids.is_valid(WriteId(event[4]))
        }
        for file in split.files:
            for event in _raw_events(file) if file.raw else _events(file):
                is_hidden = file.is_filtered and not plan.write_ids.is_valid(WriteId(event[4]))
                if not is_hidden and event[1:4] not in deleted:
                    seen[event[1:4]] += 1
    return seen


def _events(file: ReadFile) -> list[tuple[int, int, int, int, int]]:
    orc = pyarrow.orc.ORCFile(file.path)
    by_lower = {name.lower(): name for name in orc.schema.names}
    columns = [by_lower[name.lower()] for name in ACID_COLUMNS]
    table = orc.read(columns=columns)
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def _raw_events(file: ReadFile) -> list[tuple[int, int, int, int, int]]:
    raw = file.raw
    assert raw is not None
    first = sum(pyarrow.orc.ORCFile(path).nrows for path in raw.preceding)
    count = pyarrow.orc.ORCFile(file.path).nrows
    return [
        (0, raw.write_id, raw.bucket_property, first + row, raw.write_id) for row in range(count)
    ]
