"""Rows as pyarrow's ORC encoder is shown them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.calendar import convert_dates, convert_seconds
from hms_bridge.orc.nesting import bare_children, with_children
from hms_bridge.orc.timestamp_statistics import TimestampBounds
from hms_bridge.orc.timestamps import split_timestamps, wall_to_stored
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

UnionChild = tuple[int, OrcType, pa.Array]
"""Column id, type and values of one child of a union."""


class ShownColumns:
    """Takes rows apart into what pyarrow can encode.

    `rows`: timestamps that it would spoil as stored seconds (int64), unions as tags (int8).
    `nanos`: the columns with such timestamps once more, as nanoseconds after 1970-01-01.
    """

    def __init__(
        self,
        rows: pa.StructArray,
        schema: OrcType,
        convert_day: Callable[[int], int] | None,
        *,
        has_last_second: bool = False,
    ) -> None:
        self._convert_day = convert_day
        self._has_last_second = has_last_second
        self.column_ids: list[int] = []
        """The file's column ids of the columns of `rows`, in preorder."""
        self.nanos_column_ids: list[int] = []
        """Likewise of `nanos`."""
        self.split_timestamps: dict[int, TimestampBounds] = {}
        self.union_children: dict[int, list[UnionChild]] = {}
        self._nanos: dict[int, pa.Array] = {}
        self.rows = self._show(rows, schema, 0, is_by_row=True)
        self.nanos = self._show_nanos(self.rows, schema, 0) if self.split_timestamps else None

    def _show(self, array: pa.Array, node: OrcType, own_id: int, *, is_by_row: bool) -> pa.Array:
        self.column_ids.append(own_id)
        if node.kind.is_timestamp:
            return self._show_timestamps(array, node, own_id, is_by_row=is_by_row)
        if node.kind is OrcKind.DATE:
            return convert_dates(array, self._convert_day) if self._convert_day else array
        if node.kind is OrcKind.UNION:
            return self._show_union(array, node, own_id)
        if not node.children:
            wanted = arrow_type(node)
            return array if array.type == wanted else array.cast(wanted)
        is_struct = node.kind is OrcKind.STRUCT
        # pyarrow's encoder takes values below a null struct for present ones, unless it is the
        # outermost: they must be null themselves.
        children = array.flatten() if is_struct else bare_children(array)
        if len(children) != len(node.children):
            raise AcidFormatError(f"{len(children)} columns given for {len(node.children)}")
        shown = [
            self._show(below, child, child_id, is_by_row=is_by_row and is_struct)
            for below, child, child_id in zip(
                children, node.children, node.child_ids(own_id), strict=True
            )
        ]
        return with_children(array, shown, _addressable(node))

    def _show_timestamps(
        self, array: pa.Array, node: OrcType, own_id: int, *, is_by_row: bool
    ) -> pa.Array:
        is_instant = node.kind is OrcKind.TIMESTAMP_INSTANT
        if pa.types.is_timestamp(array.type):
            numbers = array.cast(pa.int64())
            lowest = pc.min(numbers).as_py()
            if lowest is None or lowest >= 0:
                return numbers.cast(pa.timestamp(array.type.unit, tz="UTC" if is_instant else None))
        seconds, nanos = split_timestamps(array)
        is_whole = pc.and_(pc.is_valid(seconds), pc.is_valid(nanos))
        seconds = pc.if_else(is_whole, seconds, pa.scalar(None, pa.int64()))
        nanos = pc.if_else(is_whole, nanos, pa.scalar(None, pa.int32()))
        if self._convert_day and not is_instant:
            seconds = convert_seconds(seconds, self._convert_day)
        self.split_timestamps[own_id] = TimestampBounds.of_parts(
            seconds, nanos, is_by_row=is_by_row
        )
        stored, nanos = wall_to_stored(seconds, nanos, has_last_second=self._has_last_second)
        self._nanos[own_id] = nanos.cast(pa.int64()).cast(pa.timestamp("ns"))
        return stored

    def _show_union(self, array: pa.Array, node: OrcType, own_id: int) -> pa.Array:
        tags, *fields = array.flatten()
        known = pc.and_(pc.less(tags, len(fields)), pc.greater_equal(tags, 0))
        if pc.all(known, min_count=0).as_py() is False:
            raise AcidFormatError(f"a union's tag is not in 0..{len(fields) - 1}")
        self.union_children[own_id] = [
            (child_id, child, values.filter(pc.equal(tags, tag)))
            for tag, (child_id, child, values) in enumerate(
                zip(node.child_ids(own_id), node.children, fields, strict=True)
            )
        ]
        return tags

    def _show_nanos(self, array: pa.Array, node: OrcType, own_id: int) -> pa.Array:
        """The same structure with nanoseconds in place of seconds, without needless columns."""
        self.nanos_column_ids.append(own_id)
        if own_id in self._nanos:
            return self._nanos[own_id]
        if not self._has_split(node, own_id):
            # Only there because a map wants its key or its value.
            return pa.repeat(pa.scalar(0, pa.int8()), len(array))
        columns = list(
            zip(bare_children(array), node.children, node.child_ids(own_id), strict=True)
        )
        if node.kind is OrcKind.STRUCT:
            columns = [column for column in columns if self._has_split(column[1], column[2])]
            node = struct_type([""] * len(columns), [child for _, child, _ in columns])
        shown = [self._show_nanos(*column) for column in columns]
        return with_children(array, shown, _addressable(node))

    def _has_split(self, node: OrcType, own_id: int) -> bool:
        return any(own_id <= column < own_id + node.size for column in self._nanos)


def _addressable(node: OrcType) -> OrcType:
    """The node with names that the encoder cannot stumble over."""
    if node.kind is not OrcKind.STRUCT:
        return node
    return struct_type([f"f{at}" for at in range(len(node.children))], node.children)
