"""Row keys in bulk: comparing and finding (write id, bucket property, row id) in Arrow columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.acid.row_id import RowId
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList

_INT64_MAX: Final = 2**63 - 1

Keys = tuple[pa.Array, pa.Array, pa.Array]
"""Write ids (int64), bucket properties (int32), row ids (int64), of equal length, without nulls."""


def key_at(keys: Keys, place: int) -> RowId:
    """The identity of the row at a place of the columns."""
    write_id, bucket, row_id = (column[place].as_py() for column in keys)
    return RowId(write_id, bucket, row_id)


def filter_keys(keys: Keys, mask: pa.Array) -> Keys:
    """The keys where the mask is true."""
    write_ids, buckets, row_ids = (column.filter(mask) for column in keys)
    return write_ids, buckets, row_ids


def concat_keys(parts: Sequence[Keys]) -> Keys:
    """All keys of the parts; at least one part."""
    if len(parts) == 1:
        return parts[0]
    write_ids, buckets, row_ids = (
        pa.concat_arrays([part[at] for part in parts]) for at in range(3)
    )
    return write_ids, buckets, row_ids


def is_valid_mask(write_ids: pa.Array, valid: ValidWriteIdList) -> pa.Array | None:
    """Which rows a snapshot sees by their current write id; None: all."""
    distinct = pc.unique(write_ids).to_pylist()
    seen = [write_id for write_id in distinct if valid.is_valid(WriteId(write_id))]
    if len(seen) == len(distinct):
        return None
    return pc.is_in(write_ids, value_set=pa.array(seen, pa.int64()))


def is_sorted(keys: Keys, *, allows_equal: bool) -> bool:
    """Whether the keys ascend; equal neighbours only if allowed."""
    count = len(keys[0])
    if count < 2:
        return True
    neighbours = [(column.slice(0, count - 1), column.slice(1)) for column in keys]
    before, after = neighbours[-1]
    result = pc.less_equal(before, after) if allows_equal else pc.less(before, after)
    for before, after in reversed(neighbours[:-1]):
        result = pc.or_(pc.less(before, after), pc.and_(pc.equal(before, after), result))
    return bool(pc.all(result).as_py())


def sort_keys(keys: Keys) -> Keys:
    """The keys in ascending order; unchanged if they are in it."""
    if is_sorted(keys, allows_equal=True):
        return keys
    names = ("write_id", "bucket", "row_id")
    table = pa.table(list(keys), names=names)
    places = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    write_ids, buckets, row_ids = (column.take(places) for column in keys)
    return write_ids, buckets, row_ids


def key_bounds(keys: Keys) -> tuple[RowId, RowId]:
    """Keys that no key lies below, and none above; the first and last one if they ascend."""
    if is_sorted(keys, allows_equal=True):
        return key_at(keys, 0), key_at(keys, -1)
    bounds = [tuple(pc.min_max(column).values()) for column in keys]
    lowest, highest = ([bound[at].as_py() for bound in bounds] for at in range(2))
    return RowId._make(lowest), RowId._make(highest)


def keys_between(keys: Keys, first: RowId, last: RowId) -> Keys:
    """Of ascending keys those from `first` to `last`, both included."""
    count = len(keys[0])
    start = bisect_left(range(count), first, key=lambda place: key_at(keys, place))
    stop = bisect_right(range(count), last, key=lambda place: key_at(keys, place))
    return _slice(keys, start, stop)


def is_among(keys: Keys, others: Keys) -> pa.Array:
    """Mask over `keys`: which of them are among `others`, in any order of either."""
    if not len(keys[0]) or not len(others[0]):
        return pa.repeat(False, len(keys[0]))
    write_ids, buckets = pc.unique(keys[0]), pc.unique(keys[1])
    lowest, highest = pc.min_max(keys[2]).values()
    span = highest.as_py() - lowest.as_py() + 1
    if span * len(write_ids) * len(buckets) > _INT64_MAX:
        half = len(keys[0]) // 2  # never with ids that a writer counted up from 0
        parts = (_slice(keys, 0, half), _slice(keys, half, None))
        return pa.concat_arrays([is_among(part, others) for part in parts])
    packed = _pack(keys, write_ids, buckets, lowest, span)
    in_range = pc.and_(pc.less_equal(others[2], highest), pc.greater_equal(others[2], lowest))
    packed_others = _pack(filter_keys(others, in_range), write_ids, buckets, lowest, span)
    return pc.is_in(packed, value_set=pc.drop_null(packed_others))


def _slice(keys: Keys, start: int, stop: int | None) -> Keys:
    write_ids, buckets, row_ids = (column[start:stop] for column in keys)
    return write_ids, buckets, row_ids


def _pack(
    keys: Keys, write_ids: pa.Array, buckets: pa.Array, lowest: pa.Scalar, span: int
) -> pa.Array:
    """One int64 a key, equal for equal keys; null where write id or bucket is not among those."""
    write_places = pc.index_in(keys[0], value_set=write_ids).cast(pa.int64())
    bucket_places = pc.index_in(keys[1], value_set=buckets).cast(pa.int64())
    places = pc.add(pc.multiply(write_places, len(buckets)), bucket_places)
    return pc.add(pc.multiply(places, span), pc.subtract(keys[2], lowest))
