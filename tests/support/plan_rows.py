"""All rows of a plan, without tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from changemanager.filesystem.volume import Volume
from hms_bridge.rows.reader import Projection, SnapshotReader
from hms_bridge.snapshot.plan import ReadPlan


def read_plan(
    volume: Volume, plan: ReadPlan, projection: Projection, bytes_max: int | None = None
) -> Iterator[pa.RecordBatch]:
    """File by file, or in pieces of files, each by a reader of its own as in a task."""
    reader = SnapshotReader(volume, plan.write_ids, projection)
    for split in plan.file_splits(bytes_max):
        if bytes_max is not None:
            reader = SnapshotReader(volume, plan.write_ids, projection)
        yield from reader.read(split)
