"""Which bucket a row of a CLUSTERED BY table belongs to (bucketing version 2).

Hive hashes each column with Murmur3 (32 bits, seed 104729), null as 0, and folds the columns by
31. Its Murmur3 takes the last one to three bytes as signed, unlike everybody else's (seen in real
Hive's files). Source of the rule: Hive's ObjectInspectorUtils and Murmur3 (docs/hive/acid.md §22).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import hive_type_text
from hms_bridge.orc.types import OrcKind, OrcType

_SEED: Final = 104_729
_U32: Final = pa.uint32()


def _u32(value: int) -> pa.Scalar:
    return pa.scalar(value & 0xFFFFFFFF, _U32)


def bucket_ids(
    columns: Sequence[pa.Array], types: Sequence[OrcType], bucket_count: int
) -> pa.Array:
    """The bucket (int32) of each row, from the clustering columns in the order declared.

    Raises AcidFormatError for a column type whose hash is not known here.
    """
    if not columns or bucket_count < 1:
        raise AcidFormatError("bucketing wants columns and at least one bucket")
    folded = pa.repeat(_u32(0), len(columns[0]))
    for column, node in zip(columns, types, strict=True):
        folded = pc.add(pc.multiply(folded, _u32(31)), _hash_column(column, node))
    positive = pc.bit_wise_and(folded, _u32(0x7FFFFFFF)).cast(pa.int64())
    quotient = pc.divide(positive, bucket_count)
    return pc.subtract(positive, pc.multiply(quotient, bucket_count)).cast(pa.int32())


def require_hashed(types: Sequence[OrcType]) -> None:
    """Raises AcidFormatError for a column type whose hash is not known here."""
    for node in types:
        _hash_column(pa.nulls(0, arrow_type(node)), node)


def _hash_column(column: pa.Array, node: OrcType) -> pa.Array:
    """Hashes as uint32; null: 0."""
    match node.kind:
        case OrcKind.BOOLEAN | OrcKind.BYTE:
            hashes = _as_u32(column.cast(pa.int64()))
        case OrcKind.SHORT:
            number = column.cast(pa.int64())
            low = _signed_byte(number)
            high = _signed_byte(pc.shift_right(number, 8))
            tail = pc.bit_wise_xor(pc.shift_left(_as_u32(low), _u32(8)), _as_u32(high))
            hashes = _finish(_mix_tail(pa.repeat(_u32(_SEED), len(column)), tail), _u32(2))
        case OrcKind.INT | OrcKind.DATE:
            plain = column.view(pa.int32()) if node.kind is OrcKind.DATE else column
            hashes = _hash_words([_as_u32(plain.cast(pa.int64()))])
        case OrcKind.LONG:
            high = pc.shift_right(column, 32)
            hashes = _hash_words([_as_u32(high), _as_u32(column)])
        case OrcKind.STRING | OrcKind.VARCHAR:
            hashes = _hash_bytes(column.cast(pa.binary()))
        case OrcKind.CHAR:
            hashes = _hash_bytes(pc.utf8_rtrim(column, " ").cast(pa.binary()))
        case OrcKind.BINARY:
            hashes = _hash_bytes(column)
        case OrcKind.DECIMAL:
            hashes = _hash_decimals(column)
        case _:
            raise AcidFormatError(
                f"rows cannot be bucketed by a column of {hive_type_text(node)} here;"
                " write to this table with Hive"
            )
    return pc.fill_null(hashes, _u32(0))


def _as_u32(numbers: pa.Array) -> pa.Array:
    """The low 32 bits of int64s."""
    return pc.bit_wise_and(numbers, 0xFFFFFFFF).cast(_U32)


def _signed_byte(numbers: pa.Array) -> pa.Array:
    """The low 8 bits of int64s as a signed byte."""
    low = pc.bit_wise_and(numbers, 0xFF)
    return pc.if_else(pc.greater_equal(low, 128), pc.subtract(low, 256), low)


def _rotated(words: pa.Array, bits: int) -> pa.Array:
    left = pc.shift_left(words, _u32(bits))
    return pc.bit_wise_or(left, pc.shift_right(words, _u32(32 - bits)))


def _mixed(words: pa.Array) -> pa.Array:
    rotated = _rotated(pc.multiply(words, _u32(0xCC9E2D51)), 15)
    return pc.multiply(rotated, _u32(0x1B873593))


def _mix_block(state: pa.Array, words: pa.Array) -> pa.Array:
    state = _rotated(pc.bit_wise_xor(state, _mixed(words)), 13)
    return pc.add(pc.multiply(state, _u32(5)), _u32(0xE6546B64))


def _mix_tail(state: pa.Array, words: pa.Array) -> pa.Array:
    return pc.bit_wise_xor(state, _mixed(words))


def _finish(state: pa.Array, lengths: pa.Array | pa.Scalar) -> pa.Array:
    state = pc.bit_wise_xor(state, lengths)
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = pc.bit_wise_xor(state, pc.shift_right(state, _u32(bits)))
        state = pc.multiply(state, _u32(factor))
    return pc.bit_wise_xor(state, pc.shift_right(state, _u32(16)))


def _hash_words(words: Sequence[pa.Array]) -> pa.Array:
    """Of numbers that Java puts into a buffer big-endian, most significant word first."""
    state = pa.repeat(_u32(_SEED), len(words[0]))
    for word in words:
        swapped = pc.bit_wise_or(
            pc.bit_wise_or(
                pc.shift_left(word, _u32(24)),
                pc.bit_wise_and(pc.shift_left(word, _u32(8)), _u32(0xFF0000)),
            ),
            pc.bit_wise_or(
                pc.bit_wise_and(pc.shift_right(word, _u32(8)), _u32(0xFF00)),
                pc.shift_right(word, _u32(24)),
            ),
        )
        state = _mix_block(state, swapped)
    return _finish(state, _u32(4 * len(words)))


def _hash_bytes(texts: pa.Array) -> pa.Array:
    """Of byte strings: each distinct one once, all in step, four bytes at a time."""
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary
    lengths = pc.binary_length(distinct).cast(_U32)
    state = pa.repeat(_u32(_SEED), len(distinct))
    longest = pc.max(lengths).as_py() or 0
    for start in range(0, longest - 3, 4):
        has_block = pc.greater_equal(lengths, _u32(start + 4))
        words = _word_at(distinct.filter(has_block), start)
        state = pc.replace_with_mask(state, has_block, _mix_block(state.filter(has_block), words))
    tail_lengths = pc.bit_wise_and(lengths, _u32(3))
    tails = pa.repeat(_u32(0), len(distinct))
    for place in range(3):
        has_byte = pc.greater(tail_lengths, _u32(place))
        values = _tail_byte(distinct.filter(has_byte), place)
        shifted = pc.shift_left(values, _u32(8 * place))
        joined = pc.bit_wise_xor(tails.filter(has_byte), shifted)
        tails = pc.replace_with_mask(tails, has_byte, joined)
    has_tail = pc.greater(tail_lengths, _u32(0))
    mixed = _mix_tail(state.filter(has_tail), tails.filter(has_tail))
    state = pc.replace_with_mask(state, has_tail, mixed)
    return _finish(state, lengths).take(encoded.indices)


def _word_at(texts: pa.Array, start: int) -> pa.Array:
    """Four bytes of each text from `start` on, least significant first."""
    blocks = pc.binary_slice(texts, start, start + 4).cast(pa.binary(4))
    return blocks.view(_U32)


def _tail_byte(texts: pa.Array, place: int) -> pa.Array:
    """The byte at a place of what is left after whole blocks, sign-extended."""
    lengths = pc.binary_length(texts).cast(pa.int64())
    starts = pc.add(pc.multiply(pc.divide(lengths, 4), 4), place).to_pylist()
    values = [text[start] for text, start in zip(texts.to_pylist(), starts, strict=True)]
    return _as_u32(_signed_byte(pa.array(values, pa.int64())))


def _hash_decimals(decimals: pa.Array) -> pa.Array:
    """Of the unscaled number without trailing zeros, as Java's BigInteger gives its bytes."""
    encoded = decimals.dictionary_encode()
    contents = [_unscaled_bytes(value) for value in encoded.dictionary.to_pylist()]
    return _hash_bytes(pa.array(contents, pa.binary())).take(encoded.indices)


def _unscaled_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    places = -int(exponent)
    while places > 0 and unscaled % 10 == 0:
        unscaled, places = unscaled // 10, places - 1
    number = -unscaled if sign else unscaled
    magnitude = ~number if sign else number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
