"""Values of older files as the table's types show them now, for the second reader: worked out from
what Arrow's casts give, not by the code that the kernel uses."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import CompactionError
from hms_bridge.orc.types import OrcKind, OrcType

_TEXTS: Final = (OrcKind.STRING, OrcKind.VARCHAR, OrcKind.CHAR)


def aligned(row: pa.StructArray, source: OrcType, target: OrcType, wanted: pa.DataType) -> pa.Array:
    """Rows of a file (``source``) in the columns of another: by position, as Hive reads older
    files; what they lack is null. ``wanted``: the target as Arrow's reader gives it.

    Raises CompactionError, naming the column, for types that cannot be compared.
    """
    if source == target and row.type == wanted:
        return row
    columns = row.flatten()
    arrays = []
    for place in range(wanted.num_fields):
        field = wanted.field(place)
        if place >= len(columns):
            arrays.append(pa.nulls(len(row), field.type))
            continue
        try:
            arrays.append(
                _as_type(columns[place], source.children[place], target.children[place], field.type)
            )
        except pa.ArrowException as error:
            raise CompactionError(
                f"column {field.name} was {columns[place].type} in some inputs and is "
                f"{field.type} now, which --verify full cannot compare; nothing was "
                "published: use --verify keys"
            ) from error
    return pa.StructArray.from_arrays(arrays, names=[field.name for field in wanted])


def _as_type(array: pa.Array, source: OrcType, target: OrcType, wanted: pa.DataType) -> pa.Array:
    if source == target or target.kind not in _TEXTS:
        return array.cast(wanted)
    if source.kind is OrcKind.CHAR:
        array = pc.utf8_rtrim(array, " ")  # blanks fill a CHAR up, and are no part of its value
    array = array.cast(wanted)
    if source.kind is OrcKind.TIMESTAMP:
        # Arrow writes nine decimals, Hive as many as count.
        array = pc.utf8_rtrim(pc.utf8_rtrim(array, "0"), ".")
    if target.kind is OrcKind.STRING:
        return array
    array = pc.utf8_slice_codeunits(array, 0, target.maximum_length)
    return pc.utf8_rpad(array, target.maximum_length) if target.kind is OrcKind.CHAR else array
