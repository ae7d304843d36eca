"""What tasks have written, before it is published."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.acid.names import DirectoryName


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFile:
    """One written file. ``partition`` is the partition's name, empty for none; ``key_sum`` that of
    the rows that an UPDATE or DELETE replaces (rows/key_sum.py)."""

    partition: str
    path: str
    bucket_id: int
    row_count: int
    size_bytes: int
    key_sum: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenDirectory:
    """A delta or delete delta: its files of all partitions."""

    name: DirectoryName
    files: tuple[EventFile, ...]
