"""All rows of a plan, without tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from changemanager.filesystem.volume import Volume
from hms_bridge.rows.reader import Projection, SnapshotReader
from hms_bridge.snapshot.plan import ReadPlan


def read_plan(volume: Volume, plan: ReadPlan, projection: Projection) -> Iterator[pa.RecordBatch]:
    """File by file."""
    reader = SnapshotReader(volume, plan.write_ids, projection)
    for split in plan.file_splits():
        yield from reader.read(split)
