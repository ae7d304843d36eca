"""A sum over ROW__IDs that does not depend on their order: two sets of rows, compared cheaply."""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.rows.keys import Keys

KEY_SUM_MODULUS: Final = 2**64
_ODD: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def key_sum(partition: str, keys: Keys) -> int:
    """The sum, modulo KEY_SUM_MODULUS, of a hash of each key in a partition of this name."""
    mixed = pa.repeat(pa.scalar(zlib.crc32(partition.encode()), pa.uint64()), len(keys[0]))
    for column in keys:
        number = column.cast(pa.int64()).view(pa.uint64())
        mixed = _mixed(pc.bit_wise_xor(_mixed(mixed), number))
    return int(pc.sum(mixed, min_count=0).as_py())


def _mixed(numbers: pa.Array) -> pa.Array:
    """Each bit depends on all others (the finaliser of splitmix64); products wrap around."""
    for shift, factor in ((30, _ODD[1]), (27, _ODD[2])):
        shifted = pc.shift_right(numbers, pa.scalar(shift, pa.uint64()))
        numbers = pc.multiply(pc.bit_wise_xor(numbers, shifted), pa.scalar(factor, pa.uint64()))
    numbers = pc.add(numbers, pa.scalar(_ODD[0], pa.uint64()))
    return pc.bit_wise_xor(numbers, pc.shift_right(numbers, pa.scalar(31, pa.uint64())))
