"""Rows counted and summed by their values; no order of rows, and no cut into batches, matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import pyarrow as pa

_WORD: Final = (1 << 64) - 1
_ROWS_AT_ONCE: Final = 4_096
"""So many rows become Python's objects at a time."""

Sums = tuple[int, int]
"""The two halves of a sum of 128-bit digests, each modulo 2^64 when it is added up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenRows:
    """Rows or delete events: how many, and a sum that does not depend on their order."""

    count: int
    checksum: int


def added_up(parts: Iterable[tuple[int, Sums]]) -> SeenRows:
    """Batches together: how many rows each has, and their sums."""
    count = high = low = 0
    for rows, sums in parts:
        count += rows
        high, low = (high + sums[0]) & _WORD, (low + sums[1]) & _WORD
    return SeenRows(count=count, checksum=(high << 64) | low)


def value_sums(columns: Sequence[pa.Array]) -> Sums:
    """The sums of the rows of a batch, from all values of each. Columns are of one length."""
    high = low = 0
    plain = [_plain(column) for column in columns]
    for start in range(0, len(columns[0]), _ROWS_AT_ONCE):
        lists = [column.slice(start, _ROWS_AT_ONCE).to_pylist() for column in plain]
        for values in zip(*lists, strict=True):
            digest = int.from_bytes(blake2b(repr(values).encode(), digest_size=16).digest())
            high, low = high + (digest >> 64), low + (digest & _WORD)
    return high, low


def _plain(array: pa.Array) -> pa.Array:
    """Times as numbers: Python's own hold no nanoseconds."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64())
    if pa.types.is_date32(kind):
        return array.cast(pa.int32())
    if pa.types.is_struct(kind):
        parts = [_plain(array.field(at)) for at in range(kind.num_fields)]
        names = [f"{at} {kind.field(at).name}" for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null())
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [_plain(array.keys), _plain(array.items)], names=["key", "value"]
        )
        return pa.ListArray.from_arrays(array.offsets, entries, mask=_nulls(array))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _plain(array.values), mask=_nulls(array))
    return array


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
