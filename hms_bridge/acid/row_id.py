"""The identity of a row for its whole life."""

from __future__ import annotations

from typing import NamedTuple


class RowId(NamedTuple):
    """Hive's ROW__ID, unique within one partition. Compares as rows are sorted in ACID files."""

    write_id: int
    """Write id of the insert (`originalTransaction`)."""

    bucket: int
    """The whole bucket property, see bucket_codec."""

    row_id: int
    """Counts the rows of one write id, bucket and statement from 0."""
