"""Decodes stripes into Arrow, faithfully: any timestamp, either calendar, unions with nulls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.calendar import convert_dates, convert_seconds, hybrid_day, proleptic_day
from hms_bridge.orc.image import (
    SelectedColumn,
    StreamKind,
    StripeStreams,
    build_image,
    select_columns,
    synthetic_root,
    zeros_stream,
)
from hms_bridge.orc.nesting import bare_children, with_children
from hms_bridge.orc.tail import Calendar, OrcTail
from hms_bridge.orc.timestamps import (
    BASE_SECONDS,
    TimestampForm,
    change_form,
    is_utc,
    join_timestamps,
    stored_seconds_to_wall,
)
from hms_bridge.orc.types import OrcKind

_VERSION_2_ENCODINGS: Final = frozenset({2, 3})
_NANOS_BASE: Final = BASE_SECONDS * 1_000_000_000
_FIRST_SAFE_NANOS: Final = 86_400 * 1_000_000_000 * 2
"""Before this (1970-01-03) a writer's zone blurs which values were rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadForm:
    """What decoded values look like. `calendar` None leaves days as they are stored."""

    timestamps: TimestampForm = TimestampForm.MICROS
    calendar: Calendar | None = Calendar.PROLEPTIC_GREGORIAN


class OrcStripeReader:
    """Reads the stripes of one open file, each as a whole. Memory: one decoded stripe."""

    def __init__(self, file: BinaryIO, tail: OrcTail, form: ReadForm) -> None:
        self._file = file
        self._tail = tail
        self._form = form
        self._is_exact = False

    def read_stripe(self, number: int, wanted: Collection[int] | None = None) -> pa.StructArray:
        """The wanted columns (by column id, each with all below it; None: all) of one stripe.

        Raises AcidFormatError if the stripe is damaged.
        """
        root = select_columns(self._tail.schema, wanted)
        stripe = self._tail.stripes[number]
        columns = {column.source_id for column in root.preorder()}
        streams = StripeStreams(self._file, self._tail, stripe, columns)
        return self._decode(streams, root, stripe.row_count)

    def _decode(self, streams: StripeStreams, root: SelectedColumn, row_count: int) -> pa.Array:
        if not root.children:
            return pa.array([{}] * row_count, pa.struct([]))
        has_timestamps = root.node.contains(OrcKind.TIMESTAMP, OrcKind.TIMESTAMP_INSTANT)
        decoder = _StripeDecoder(self, self._form, streams)
        if has_timestamps and not self._is_exact:
            try:
                return decoder.decode(root, row_count, is_exact=False)
            except _InexactError:
                self._is_exact = True  # the file's other stripes are likely of the same kind
        return decoder.decode(root, row_count, is_exact=has_timestamps)

    def decode_union_child(
        self, streams: StripeStreams, child: SelectedColumn, row_count: int
    ) -> pa.Array:
        """The values of one child of a union, which are fewer than the union's."""
        decoded = self._decode(streams, synthetic_root(child), row_count)
        return bare_children(decoded)[0]


class _InexactError(Exception):
    """The plain way of reading timestamps cannot give every value; read them by parts."""


class _StripeDecoder:
    """Decodes one selection of one stripe."""

    def __init__(self, reader: OrcStripeReader, form: ReadForm, streams: StripeStreams) -> None:
        self._reader = reader
        self._form = form
        self._streams = streams
        self._tail = streams.tail
        self._is_exact = False
        self._nanos: dict[int, pa.Array] = {}

    def decode(self, root: SelectedColumn, row_count: int, *, is_exact: bool) -> pa.Array:
        self._is_exact = is_exact
        kinds = {OrcKind.UNION: OrcKind.BYTE}
        if is_exact:
            kinds |= {OrcKind.TIMESTAMP: OrcKind.LONG, OrcKind.TIMESTAMP_INSTANT: OrcKind.LONG}

        def make(
            column: SelectedColumn, content: Mapping[int, memoryview]
        ) -> tuple[OrcKind, Mapping[int, Any]]:
            kind = kinds.get(column.node.kind, column.node.kind)
            if kind is OrcKind.LONG and column.node.kind.is_timestamp:
                content = {k: v for k, v in content.items() if k != StreamKind.SECONDARY}
            return kind, content

        decoded = self._read(root, row_count, make)
        if is_exact:
            self._nanos = {}
            self._read_nanos(root, row_count, decoded)
        return self._finish(decoded, root)

    def _read(self, root: SelectedColumn, row_count: int, make: Any) -> pa.Array:
        image = build_image(self._streams, root, row_count, make)
        try:
            batch = orc.ORCFile(pa.BufferReader(image)).read_stripe(0)
        except (pa.ArrowException, OSError) as error:
            if not self._is_exact and "nanosecond" in str(error):
                raise _InexactError from error
            message = f"a stripe cannot be decoded: {error}"
            raise AcidFormatError(message, self._tail.path) from error
        if batch.num_rows != row_count:
            raise AcidFormatError(
                f"{batch.num_rows} of {row_count} rows of a stripe came out", self._tail.path
            )
        return batch.to_struct_array()

    def _read_nanos(self, root: SelectedColumn, row_count: int, decoded: pa.Array) -> None:
        """Fill `_nanos`: of each timestamp column the nanoseconds, as they lie below `decoded`.

        A second image shows the timestamps with their seconds all zero.
        """
        pruned = _with_timestamps(root)
        counts: dict[int, int] = {}
        _count_leaves(decoded, root, counts)

        def make(
            column: SelectedColumn, content: Mapping[int, memoryview]
        ) -> tuple[OrcKind, Mapping[int, Any]]:
            if column.node.kind is OrcKind.UNION:
                return OrcKind.BYTE, content
            if not column.node.kind.is_timestamp:
                return column.node.kind, content
            encoding = self._streams.layout.message.columns[column.source_id].kind
            zeros = zeros_stream(
                counts[column.source_id], encoding in _VERSION_2_ENCODINGS, self._tail
            )
            return OrcKind.TIMESTAMP_INSTANT, {**content, StreamKind.DATA: zeros}

        if any(column.node.kind.is_timestamp for column in pruned.preorder()):
            self._collect_nanos(self._read(pruned, row_count, make), pruned)

    def _collect_nanos(self, array: pa.Array, column: SelectedColumn) -> None:
        if column.node.kind.is_timestamp:
            nanos = pc.subtract(array.cast(pa.int64()), _NANOS_BASE)
            self._nanos[column.source_id] = nanos.cast(pa.int32())
        elif column.node.kind is not OrcKind.UNION:
            for child, below in zip(column.children, bare_children(array), strict=True):
                self._collect_nanos(below, child)

    def _finish(self, array: pa.Array, column: SelectedColumn) -> pa.Array:
        """Turn what pyarrow was shown into what the column is."""
        node = column.node
        if node.kind.is_timestamp:
            return self._finish_timestamps(array, column)
        if node.kind is OrcKind.DATE:
            return self._finish_dates(array)
        if node.kind is OrcKind.UNION:
            return self._finish_union(array, column)
        if not column.children:
            wanted = arrow_type(node)
            return array if array.type == wanted else array.cast(wanted)
        pairs = zip(column.children, bare_children(array), strict=True)
        return with_children(array, [self._finish(below, child) for child, below in pairs], node)

    @property
    def _conversion(self) -> Any:
        target = self._form.calendar
        if target is None or target.is_hybrid is self._tail.calendar.is_hybrid:
            return None
        return hybrid_day if target.is_hybrid else proleptic_day

    def _finish_dates(self, array: pa.Array) -> pa.Array:
        return convert_dates(array, self._conversion) if self._conversion else array

    def _finish_timestamps(self, array: pa.Array, column: SelectedColumn) -> pa.Array:
        is_instant = column.node.kind is OrcKind.TIMESTAMP_INSTANT
        timezone = "UTC" if is_instant else self._streams.layout.timezone
        if not self._is_exact:
            lowest = pc.min(array.cast(pa.int64())).as_py()
            if not is_utc(timezone) and lowest is not None and lowest < _FIRST_SAFE_NANOS:
                raise _InexactError
            return change_form(array, self._form.timestamps, is_instant)
        nanos = self._nanos[column.source_id]
        seconds = stored_seconds_to_wall(array, nanos, timezone)
        if self._conversion and not is_instant:
            seconds = convert_seconds(seconds, self._conversion)
        return join_timestamps(seconds, nanos, self._form.timestamps, is_instant)

    def _finish_union(self, tags: pa.Array, column: SelectedColumn) -> pa.Array:
        fields = []
        for tag, child in enumerate(column.children):
            # A child's values lie close together: each goes to the row whose tag asks for it.
            is_own = pc.fill_null(pc.equal(tags, tag), False)
            count = pc.sum(is_own.cast(pa.int64())).as_py() or 0
            values = self._reader.decode_union_child(self._streams, child, count)
            places = pc.subtract(pc.cumulative_sum(is_own.cast(pa.int64())), 1)
            nulls = pa.nulls(len(tags), pa.int64())
            fields.append(values.take(pc.if_else(is_own, places, nulls)))
        names = ["tag", *(f"field{tag}" for tag in range(len(fields)))]
        return pa.StructArray.from_arrays([tags, *fields], names=names, mask=pc.is_null(tags))


def _with_timestamps(column: SelectedColumn) -> SelectedColumn:
    """The column without those children of its outer structs that hold no timestamp."""
    if column.node.kind is not OrcKind.STRUCT:
        return column
    kinds = (OrcKind.TIMESTAMP, OrcKind.TIMESTAMP_INSTANT)
    kept = [at for at, child in enumerate(column.children) if child.node.contains(*kinds)]
    children = tuple(_with_timestamps(column.children[at]) for at in kept)
    node = type(column.node)(
        kind=OrcKind.STRUCT,
        names=tuple(column.node.names[at] for at in kept),
        children=tuple(child.node for child in children),
    )
    return SelectedColumn(node, column.source_id, children)


def _count_leaves(array: pa.Array, column: SelectedColumn, counts: dict[int, int]) -> None:
    if column.node.kind.is_timestamp:
        counts[column.source_id] = len(array)
    elif column.node.kind is not OrcKind.UNION:
        for child, below in zip(column.children, bare_children(array), strict=True):
            _count_leaves(below, child, counts)
