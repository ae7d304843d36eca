"""ORC types as Arrow types and back."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.timestamps import PARTS_TYPE, TimestampForm, arrow_timestamp
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

_PRIMITIVES: Final[dict[OrcKind, pa.DataType]] = {
    OrcKind.BOOLEAN: pa.bool_(),
    OrcKind.BYTE: pa.int8(),
    OrcKind.SHORT: pa.int16(),
    OrcKind.INT: pa.int32(),
    OrcKind.LONG: pa.int64(),
    OrcKind.FLOAT: pa.float32(),
    OrcKind.DOUBLE: pa.float64(),
    OrcKind.STRING: pa.string(),
    OrcKind.VARCHAR: pa.string(),
    OrcKind.CHAR: pa.string(),
    OrcKind.BINARY: pa.binary(),
    OrcKind.DATE: pa.date32(),
}
_KINDS: Final[dict[pa.DataType, OrcKind]] = {
    **{
        arrow: kind
        for kind, arrow in _PRIMITIVES.items()
        if kind not in {OrcKind.VARCHAR, OrcKind.CHAR}
    },
    pa.large_string(): OrcKind.STRING,
    pa.string_view(): OrcKind.STRING,
    pa.large_binary(): OrcKind.BINARY,
    pa.binary_view(): OrcKind.BINARY,
}


def arrow_type(node: OrcType, form: TimestampForm = TimestampForm.MICROS) -> pa.DataType:
    """The Arrow type in which values of an ORC type are given.

    A union is given as a struct of its `tag` and `field0`, `field1` …, of which the tag's is set:
    Arrow's own unions know no null.
    """
    children = [arrow_type(child, form) for child in node.children]
    match node.kind:
        case OrcKind.STRUCT:
            return pa.struct(list(zip(node.names, children, strict=True)))
        case OrcKind.LIST:
            return pa.list_(children[0])
        case OrcKind.MAP:
            return pa.map_(children[0], children[1])
        case OrcKind.UNION:
            fields = [(f"field{at}", child) for at, child in enumerate(children)]
            return pa.struct([("tag", pa.int8()), *fields])
        case OrcKind.DECIMAL:
            return pa.decimal128(node.precision, node.scale)
        case OrcKind.TIMESTAMP | OrcKind.TIMESTAMP_INSTANT:
            return arrow_timestamp(form, node.kind is OrcKind.TIMESTAMP_INSTANT)
        case _:
            return _PRIMITIVES[node.kind]


def orc_type(arrow: pa.DataType) -> OrcType:
    """The ORC type that holds an Arrow type; raises AcidFormatError if there is none.

    Structs stay structs, even those that `arrow_type` makes of unions, for which the declared type
    must be given.
    """
    if arrow in _KINDS:
        return OrcType(kind=_KINDS[arrow])
    if arrow == PARTS_TYPE:
        return OrcType(kind=OrcKind.TIMESTAMP)
    if pa.types.is_timestamp(arrow):
        kind = OrcKind.TIMESTAMP if arrow.tz is None else OrcKind.TIMESTAMP_INSTANT
        return OrcType(kind=kind)
    if pa.types.is_decimal128(arrow):
        return OrcType(kind=OrcKind.DECIMAL, precision=arrow.precision, scale=arrow.scale)
    if pa.types.is_map(arrow):
        children = (orc_type(arrow.key_type), orc_type(arrow.item_type))
        return OrcType(kind=OrcKind.MAP, children=children)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return OrcType(kind=OrcKind.LIST, children=(orc_type(arrow.value_type),))
    if pa.types.is_struct(arrow):
        fields = list(arrow)
        return struct_type(
            [field.name for field in fields], [orc_type(field.type) for field in fields]
        )
    raise AcidFormatError(f"Arrow type {arrow} cannot be stored in ORC")


def plain_arrow_type(arrow: pa.DataType) -> pa.DataType:
    """The same type without Arrow's other layouts of texts and lists (large ones, views)."""
    if pa.types.is_struct(arrow):
        return pa.struct([(field.name, plain_arrow_type(field.type)) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(plain_arrow_type(arrow.key_type), plain_arrow_type(arrow.item_type))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return pa.list_(plain_arrow_type(arrow.value_type))
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow):
        return pa.binary()
    return arrow
