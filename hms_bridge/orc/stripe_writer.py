"""Encodes rows as one stripe, faithfully: any timestamp, either calendar, unions with nulls.

pyarrow encodes; what it cannot hold is shown to it as something else, and the streams that come
out are put together: a timestamp from its seconds (integers) and its nanoseconds (timestamps
after 1970), a union from its tags (bytes) and each child's values.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import orc

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc import proto
from hms_bridge.orc.assembly import EncodedStripe, OrcSettings
from hms_bridge.orc.blocks import Compression, compress, decompress
from hms_bridge.orc.image import StreamKind, StripeLayout, read_layout
from hms_bridge.orc.shown_columns import ShownColumns
from hms_bridge.orc.tail import SECTION_BYTES_MAX, OrcTail, tail_of_file
from hms_bridge.orc.timestamp_statistics import TimestampBounds
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

_CODECS: Final = {
    Compression.NONE: "uncompressed",
    Compression.ZLIB: "zlib",
    Compression.SNAPPY: "snappy",
    Compression.LZ4: "lz4",
    Compression.ZSTD: "zstd",
}
_BLOCK_STEP_BYTES: Final = 64 * 1024
_STRIPE_BYTES_MAX: Final = 1 << 40
"""Beyond anything that fits into memory: one call, one stripe."""
_NO_STRIDE: Final = 2**31 - 1
"""pyarrow cannot leave the index out; it is dropped afterwards."""
_DICTIONARY_THRESHOLD: Final = 0.8
"""Hive's orc.dictionary.key.threshold."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One stream on its way into the stripe."""

    kind: int
    column: int
    content: bytes | memoryview


class _Encoded:
    """What pyarrow made of some rows: one stripe, taken apart."""

    def __init__(self, rows: pa.StructArray, settings: OrcSettings) -> None:
        self._has_index = bool(settings.row_index_stride)
        sink = pa.BufferOutputStream()
        with orc.ORCWriter(
            sink,
            compression=_CODECS[settings.compression],
            compression_block_size=settings.block_size_bytes,
            stripe_size=_STRIPE_BYTES_MAX,
            row_index_stride=settings.row_index_stride or _NO_STRIDE,
            dictionary_key_size_threshold=_DICTIONARY_THRESHOLD,
        ) as writer:
            writer.write(pa.Table.from_struct_array(rows))
        self._content = memoryview(sink.getvalue())
        file = io.BytesIO(self._content)
        self.tail: OrcTail = tail_of_file(file)
        if len(self.tail.stripes) != 1:
            raise AcidFormatError(f"{len(self.tail.stripes)} stripes came out in place of one")
        self.layout: StripeLayout = read_layout(file, self.tail, self.tail.stripes[0])
        self.statistics = list(self.tail.stripe_statistics()[0].column_statistics)

    def pieces(self) -> Iterator[_Piece]:
        for stream in self.layout.streams:
            if stream.kind == StreamKind.ROW_INDEX and not self._has_index:
                continue
            start = stream.offset_bytes
            content = self._content[start : start + stream.length_bytes]
            yield _Piece(stream.kind, stream.column, content)


def encode_stripe(
    rows: pa.StructArray,
    schema: OrcType,
    settings: OrcSettings,
    convert_day: Callable[[int], int] | None = None,
) -> EncodedStripe:
    """The rows as one stripe of a file of this schema and these settings; at least one row.

    Rows are structs with a field for each of the schema's, in its order, as `arrow_type` gives
    them (timestamps in any form). `convert_day` maps days to the file's calendar. A schema with
    unions wants settings without a row index. Raises AcidFormatError for what cannot be stored.
    """
    if schema.contains(OrcKind.UNION) and settings.row_index_stride:
        raise AcidFormatError("files with unions are written without row index")
    if settings.block_size_bytes % _BLOCK_STEP_BYTES or settings.compression not in _CODECS:
        raise AcidFormatError(
            f"{settings.compression.name} in blocks of {settings.block_size_bytes} bytes cannot be"
            " written; choose NONE, ZLIB, SNAPPY, LZ4 or ZSTD and a multiple of 65536"
        )
    encoder = _StripeEncoder(rows, schema, settings, convert_day)
    try:
        encoder.gather()
    except pa.ArrowException as error:
        raise AcidFormatError(f"rows cannot be encoded: {error}") from error
    return encoder.assemble()


class _StripeEncoder:
    def __init__(
        self,
        rows: pa.StructArray,
        schema: OrcType,
        settings: OrcSettings,
        convert_day: Callable[[int], int] | None,
    ) -> None:
        self._schema = schema
        self._settings = settings
        self._convert_day = convert_day
        self._row_count = len(rows)
        self._shown = ShownColumns(
            rows, schema, convert_day, has_last_second=settings.has_last_second
        )
        self._pieces: list[_Piece] = []
        self._encodings: list[Any] = [proto.ColumnEncoding(kind=0)] * schema.size
        self._statistics: list[Any] = [proto.ColumnStatistics()] * schema.size

    def gather(self) -> None:
        """Encode every part of the rows."""
        self._add_plain()
        self._add_nanos()
        self._add_union_children()

    def _add_plain(self) -> None:
        encoded = _Encoded(self._shown.rows, self._settings)
        ids = self._shown.column_ids
        for piece in encoded.pieces():
            self._pieces.append(_Piece(piece.kind, ids[piece.column], piece.content))
        for at, column in enumerate(ids):
            self._encodings[column] = encoded.layout.message.columns[at]
            self._statistics[column] = encoded.statistics[at]
        for column in self._shown.union_children:
            self._statistics[column] = _counts_only(self._statistics[column])

    def _add_nanos(self) -> None:
        if not self._shown.split_timestamps:
            return
        encoded = _Encoded(self._shown.nanos, self._settings)
        ids = self._shown.nanos_column_ids
        split = self._shown.split_timestamps
        indexes: dict[int, Any] = {}
        for piece in encoded.pieces():
            column = ids[piece.column]
            if column not in split:
                continue
            if piece.kind == StreamKind.SECONDARY:
                self._pieces.append(_Piece(piece.kind, column, piece.content))
            elif piece.kind == StreamKind.ROW_INDEX:
                indexes[column] = self._parse_index(piece.content)
        for column, bounds in split.items():
            self._statistics[column] = bounds.applied(self._statistics[column])
        self._pieces = [
            self._joined_index(piece, indexes[piece.column], split[piece.column])
            if piece.kind == StreamKind.ROW_INDEX and piece.column in split
            else piece
            for piece in self._pieces
        ]

    def _parse_index(self, content: bytes | memoryview) -> Any:
        settings = self._settings
        plain = decompress(
            bytes(content), settings.compression, settings.block_size_bytes, SECTION_BYTES_MAX
        )
        return proto.RowIndex.FromString(plain)

    def _joined_index(self, piece: _Piece, nanos: Any, bounds: TimestampBounds) -> _Piece:
        """A timestamp's positions: those of its seconds, then those of its nanoseconds."""
        index = self._parse_index(piece.content)
        width = 2 if self._settings.compression is Compression.NONE else 3
        for number, (entry, other) in enumerate(zip(index.entry, nanos.entry, strict=True)):
            entry.positions.extend(other.positions[-width:])
            start = number * self._settings.row_index_stride
            part = bounds.of_rows(start, start + self._settings.row_index_stride)
            entry.statistics.CopyFrom(part.applied(entry.statistics))
        packed = compress(
            index.SerializeToString(), self._settings.compression, self._settings.block_size_bytes
        )
        return _Piece(piece.kind, piece.column, packed)

    def _add_union_children(self) -> None:
        for children in self._shown.union_children.values():
            for child_id, child_type, values in children:
                # pyarrow makes no streams of nothing; what is never read may hold one null.
                present = values if len(values) else pa.nulls(1, values.type)
                rows = pa.StructArray.from_arrays([present], names=["child"])
                schema = struct_type(("child",), (child_type,))
                encoder = _StripeEncoder(rows, schema, self._settings, self._convert_day)
                encoder.gather()
                self._adopt(encoder, child_id - 1)

    def _adopt(self, other: _StripeEncoder, shift: int) -> None:
        """Take over all columns but the root of what was encoded by itself."""
        self._pieces += [
            _Piece(piece.kind, piece.column + shift, piece.content) for piece in other._pieces
        ]
        for column in range(1, len(other._encodings)):
            self._encodings[column + shift] = other._encodings[column]
            self._statistics[column + shift] = other._statistics[column]

    def assemble(self) -> EncodedStripe:
        """The stripe of all parts."""
        footer = proto.StripeFooter(columns=self._encodings, writer_timezone="UTC")
        sections: list[list[bytes | memoryview]] = [[], []]
        ordered = sorted(self._pieces, key=lambda piece: (not _is_index(piece), piece.column))
        for piece in ordered:
            footer.streams.add(kind=piece.kind, column=piece.column, length=len(piece.content))
            sections[not _is_index(piece)].append(piece.content)
        return EncodedStripe(
            index=b"".join(sections[0]),
            data=b"".join(sections[1]),
            footer=footer,
            row_count=self._row_count,
            statistics=proto.StripeStatistics(column_statistics=self._statistics),
        )


def _is_index(piece: _Piece) -> bool:
    return piece.kind == StreamKind.ROW_INDEX


def _counts_only(statistics: Any) -> Any:
    return proto.ColumnStatistics(
        number_of_values=statistics.number_of_values, has_null=statistics.has_null
    )
