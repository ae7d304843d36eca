"""Taking nested Arrow arrays apart and putting them together, without copying values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.orc.types import OrcKind, OrcType


def bare_children(array: pa.Array) -> list[pa.Array]:
    """The arrays directly below, as stored (a list's: all values of its buffer); none of a leaf."""
    if pa.types.is_struct(array.type):
        return [array.field(at) for at in range(array.type.num_fields)]
    if pa.types.is_map(array.type):
        return [array.keys, array.items]
    return [array.values] if pa.types.is_nested(array.type) else []


def with_children(array: pa.Array, children: Sequence[pa.Array], node: OrcType) -> pa.Array:
    """The same structs, lists or maps over other children (each as long as the one it replaces)."""
    if node.kind is OrcKind.STRUCT:
        fields = [
            pa.field(name, child.type) for name, child in zip(node.names, children, strict=True)
        ]
        if not fields:
            return array
        mask = pc.is_null(array) if array.null_count else None
        return pa.StructArray.from_arrays(list(children), fields=fields, mask=mask)
    if node.kind is OrcKind.MAP:
        new_type = pa.map_(children[0].type, children[1].type)
        entries = pa.StructArray.from_arrays(list(children), fields=_entry_fields(new_type))
        below = [entries]
    else:
        new_type = pa.list_(children[0].type)
        below = [children[0]]
    return pa.Array.from_buffers(
        new_type,
        len(array),
        array.buffers()[:2],
        null_count=array.null_count,
        offset=array.offset,
        children=below,
    )


def _entry_fields(map_type: pa.MapType) -> list[pa.Field]:
    return [map_type.key_field, map_type.item_field]
