"""Values of one type as values of another: old files' rows, and rows to be written, as declared.

Columns match by position, whatever they are called (docs/hive/acid.md §20).
Numbers that the new type cannot hold become null, texts are cut, as in Hive.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import hive_type_text
from hms_bridge.orc.nesting import bare_children, with_children
from hms_bridge.orc.timestamps import (
    PARTS_TYPE,
    TimestampForm,
    join_timestamps,
    split_timestamps,
    timestamp_texts,
)
from hms_bridge.orc.types import OrcKind, OrcType

_INTEGERS: Final = (OrcKind.BYTE, OrcKind.SHORT, OrcKind.INT, OrcKind.LONG)
_FLOATS: Final = (OrcKind.FLOAT, OrcKind.DOUBLE)
_TEXTS: Final = (OrcKind.STRING, OrcKind.VARCHAR, OrcKind.CHAR)
_WIDE_DIGITS: Final = 76
"""Enough for any number of one decimal type in any other."""
_INTEGER_DIGITS: Final = {
    OrcKind.BYTE: 3,
    OrcKind.SHORT: 5,
    OrcKind.INT: 10,
    OrcKind.LONG: 19,
}


def adapt(array: pa.Array, source: OrcType, target: OrcType, form: TimestampForm) -> pa.Array:
    """Values of one type as values of another; `form` is that of missing timestamps.

    Raises AcidFormatError for a change of type that is not supported.
    """
    if source.kind is target.kind:
        return _adapt_same(array, source, target, form)
    if source.kind in _INTEGERS and target.kind in _INTEGERS:
        return _fit_integers(array, arrow_type(target))
    if source.kind in (*_INTEGERS, OrcKind.FLOAT) and target.kind in _FLOATS:
        return array.cast(arrow_type(target), safe=False)
    if source.kind in _INTEGERS and target.kind is OrcKind.DECIMAL:
        exact = array.cast(pa.decimal128(_INTEGER_DIGITS[source.kind], 0))
        return _fit_decimals(exact, target)
    if source.kind in _TEXTS and target.kind in _TEXTS:
        # The blanks that fill a CHAR up are no part of its value.
        plain = pc.utf8_rtrim(array, " ") if source.kind is OrcKind.CHAR else array
        return _fit_text(plain, target)
    if source.kind in (*_INTEGERS, OrcKind.DATE) and target.kind in _TEXTS:
        return _fit_text(array.cast(pa.string()), target)
    if source.kind is OrcKind.TIMESTAMP and target.kind in _TEXTS:
        return _fit_text(timestamp_texts(array), target)
    raise AcidFormatError(
        f"values of {hive_type_text(source)} cannot be taken as {hive_type_text(target)};"
        " cast them, or change the column's type back"
    )


def has_timestamp_as_text(source: OrcType, target: OrcType) -> bool:
    """Whether a timestamp of the one type is text in the other: all of its digits count then."""
    if source.kind is OrcKind.TIMESTAMP:
        return target.kind in _TEXTS
    pairs = zip(source.children, target.children, strict=False)
    return any(has_timestamp_as_text(*pair) for pair in pairs)


def _adapt_same(array: pa.Array, source: OrcType, target: OrcType, form: TimestampForm) -> pa.Array:
    match target.kind:
        case OrcKind.DECIMAL:
            is_same = (source.precision, source.scale) == (target.precision, target.scale)
            return array if is_same else _fit_decimals(array, target)
        case OrcKind.CHAR:
            return _fit_text(array, target)
        case OrcKind.VARCHAR:
            is_narrower = target.maximum_length < source.maximum_length
            return _fit_text(array, target) if is_narrower else array
        case OrcKind.LIST | OrcKind.MAP:
            pairs = zip(bare_children(array), source.children, target.children, strict=True)
            return with_children(array, [adapt(*pair, form) for pair in pairs], target)
        case OrcKind.STRUCT:
            return _adapt_struct(array, source, target, form)
        case OrcKind.TIMESTAMP | OrcKind.TIMESTAMP_INSTANT if array.type == PARTS_TYPE:
            is_instant = target.kind is OrcKind.TIMESTAMP_INSTANT
            return join_timestamps(*split_timestamps(array), form, is_instant)
        case OrcKind.UNION if source.children != target.children:
            raise AcidFormatError("a uniontype whose types changed cannot be read")
        case _:
            return array


def _adapt_struct(
    array: pa.Array, source: OrcType, target: OrcType, form: TimestampForm
) -> pa.Array:
    present = bare_children(array)
    children = [
        adapt(present[at], source.children[at], child, form)
        if at < len(present)
        else pa.nulls(len(array), arrow_type(child, form))
        for at, child in enumerate(target.children)
    ]
    return with_children(array, children, target)


def _fit_integers(array: pa.Array, target: pa.DataType) -> pa.Array:
    if target.bit_width >= array.type.bit_width:
        return array.cast(target)
    limit = 2 ** (target.bit_width - 1)
    fits = pc.and_(pc.less(array, limit), pc.greater_equal(array, -limit))
    return pc.if_else(fits, array, pa.scalar(None, array.type)).cast(target)


def _fit_decimals(array: pa.Array, target: OrcType) -> pa.Array:
    """Round half up to the scale; too large a number becomes null (HiveDecimal)."""
    wide = pa.decimal256(_WIDE_DIGITS, array.type.scale)
    numbers = array.cast(wide)
    # Rounded before it is measured: 9.99 is too large for DECIMAL(2,1) only because of that.
    if array.type.scale > target.scale:
        numbers = pc.round(numbers, target.scale, round_mode="half_towards_infinity")
    limit = pa.scalar(Decimal(10 ** (target.precision - target.scale)), wide)
    fits = pc.less(pc.abs(numbers), limit)
    kept = pc.if_else(fits, numbers, pa.scalar(None, wide))
    return kept.cast(pa.decimal128(target.precision, target.scale))


def _fit_text(array: pa.Array, target: OrcType) -> pa.Array:
    """Cut to the declared length, in characters; char is filled up with blanks."""
    if target.kind is OrcKind.STRING:
        return array
    width = target.maximum_length
    longest = pc.max(pc.utf8_length(array)).as_py()
    if longest is not None and longest > width:
        array = pc.utf8_slice_codeunits(array, 0, width)
    return pc.utf8_rpad(array, width) if target.kind is OrcKind.CHAR else array
