"""Stripe images: some columns of one stripe as a small ORC file in memory.

pyarrow's decoder is given an image in place of the file. So only the streams that are wanted are
fetched, names that it cannot address do not matter, and columns that it cannot hold can be shown
to it as something else: a timestamp as its seconds and its nanoseconds, a union as its tags.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, BinaryIO, Final

from google.protobuf.message import DecodeError

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc import proto
from hms_bridge.orc.assembly import EncodedStripe, OrcAssembler, OrcSettings
from hms_bridge.orc.blocks import Compression, decompress
from hms_bridge.orc.tail import SECTION_BYTES_MAX, OrcTail, StripeInfo
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

GAP_BYTES_MAX: Final = 128 * 1024
"""Streams closer than this are fetched by one read."""


class StreamKind(IntEnum):
    """Kinds of streams; the value is what ORC stores."""

    PRESENT = 0
    DATA = 1
    LENGTH = 2
    DICTIONARY_DATA = 3
    DICTIONARY_COUNT = 4
    SECONDARY = 5
    ROW_INDEX = 6
    BLOOM_FILTER = 7
    BLOOM_FILTER_UTF8 = 8


_INDEX_KINDS: Final = frozenset(
    {StreamKind.ROW_INDEX, StreamKind.BLOOM_FILTER, StreamKind.BLOOM_FILTER_UTF8}
)
"""Streams of these kinds lie in a stripe's index section."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of a stripe: what it is, where it lies in the file."""

    kind: int
    column: int
    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeLayout:
    """A stripe's footer."""

    streams: tuple[Stream, ...]
    message: Any
    """StripeFooter message."""

    @property
    def timezone(self) -> str:
        """Zone of the writer's clock; UTC if the file does not say."""
        return proto.text_of(self.message.writer_timezone) or "UTC"


def read_layout(file: BinaryIO, tail: OrcTail, stripe: StripeInfo) -> StripeLayout:
    """Read a stripe's footer. Raises AcidFormatError if it is damaged or encrypted."""
    if tail.is_encrypted:
        raise AcidFormatError("encrypted ORC files are not supported", tail.path)
    file.seek(stripe.offset_bytes + stripe.index_bytes + stripe.data_bytes, os.SEEK_SET)
    packed = file.read(stripe.footer_bytes)
    plain = decompress(
        packed, tail.compression, tail.block_size_bytes, SECTION_BYTES_MAX, tail.path
    )
    try:
        message = proto.StripeFooter.FromString(plain)
        proto.text_of(message.writer_timezone)
    except (DecodeError, UnicodeDecodeError) as error:
        raise AcidFormatError("a stripe footer is damaged", tail.path) from error
    streams = []
    at = stripe.offset_bytes
    for stream in message.streams:
        streams.append(Stream(stream.kind, stream.column, at, stream.length))
        at += stream.length
    if at > stripe.offset_bytes + stripe.index_bytes + stripe.data_bytes:
        raise AcidFormatError("the streams of a stripe are longer than the stripe", tail.path)
    if len(message.columns) != tail.schema.size:
        raise AcidFormatError("a stripe has other columns than the file", tail.path)
    return StripeLayout(streams=tuple(streams), message=message)


class StripeStreams:
    """The streams of some columns of one stripe, fetched with few reads."""

    def __init__(
        self, file: BinaryIO, tail: OrcTail, stripe: StripeInfo, columns: Collection[int]
    ) -> None:
        self.tail = tail
        self.stripe = stripe
        self.layout = read_layout(file, tail, stripe)
        wanted = [
            stream
            for stream in self.layout.streams
            if stream.column in columns and stream.kind not in _INDEX_KINDS
        ]
        self._content: dict[tuple[int, int], memoryview] = {}
        for run in _runs(wanted):
            start, stop = run[0].offset_bytes, run[-1].offset_bytes + run[-1].length_bytes
            file.seek(start, os.SEEK_SET)
            data = memoryview(file.read(stop - start))
            if len(data) != stop - start:
                raise AcidFormatError("the file ends inside a stripe", tail.path)
            for stream in run:
                at = stream.offset_bytes - start
                self._content[stream.column, stream.kind] = data[at : at + stream.length_bytes]

    def of_column(self, column: int) -> Mapping[int, memoryview]:
        """The streams of one column by kind."""
        return {kind: data for (owner, kind), data in self._content.items() if owner == column}


def _runs(streams: Sequence[Stream]) -> Iterator[list[Stream]]:
    run: list[Stream] = []
    end = 0
    for stream in streams:
        if run and stream.offset_bytes - end > GAP_BYTES_MAX:
            yield run
            run = []
        run.append(stream)
        end = stream.offset_bytes + stream.length_bytes
    if run:
        yield run


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column of a file with those of its children that are wanted."""

    node: OrcType
    """The pruned type."""
    source_id: int
    """Column id in the file; -1: not in the file, always present."""
    children: tuple[SelectedColumn, ...] = ()

    def preorder(self) -> Iterator[SelectedColumn]:
        """This column and all below it."""
        yield self
        for child in self.children:
            yield from child.preorder()


def select_columns(
    node: OrcType, wanted: Collection[int] | None, source_id: int = 0
) -> SelectedColumn:
    """The tree of the wanted columns, each with all below it, and of the structs above them.

    None wants everything.
    """
    if wanted is not None and source_id in wanted:
        wanted = None
    pairs = list(zip(node.children, node.child_ids(source_id), strict=True))
    names = node.names
    if wanted is not None and node.kind is OrcKind.STRUCT:
        kept = [
            at
            for at, (child, own_id) in enumerate(pairs)
            if any(own_id <= column < own_id + child.size for column in wanted)
        ]
        pairs = [pairs[at] for at in kept]
        names = tuple(names[at] for at in kept)
    if not node.children:
        return SelectedColumn(node, source_id)
    children = tuple(select_columns(child, wanted, own_id) for child, own_id in pairs)
    pruned = replace(node, names=names, children=tuple(child.node for child in children))
    return SelectedColumn(pruned, source_id, children)


def synthetic_root(child: SelectedColumn) -> SelectedColumn:
    """A struct around one column."""
    return SelectedColumn(struct_type(("root",), (child.node,)), -1, (child,))


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One column of an image: what pyarrow is shown, and its streams."""

    node: OrcType
    encoding: Any
    streams: Mapping[int, bytes | memoryview]


PartMaker = Callable[[SelectedColumn, Mapping[int, memoryview]], tuple[OrcKind, Mapping[int, Any]]]
"""From a column and its streams: as which kind it is shown, with which streams."""


def _image_parts(
    streams: StripeStreams, column: SelectedColumn, make: PartMaker
) -> tuple[OrcType, list[ImagePart]]:
    content = {} if column.source_id < 0 else streams.of_column(column.source_id)
    kind, shown_streams = make(column, content)
    shown_children: list[OrcType] = []
    below: list[ImagePart] = []
    for child in column.children if kind is column.node.kind else ():
        shown_child, parts = _image_parts(streams, child, make)
        shown_children.append(shown_child)
        below.extend(parts)
    node = column.node
    if kind is not node.kind or shown_children:
        node = replace(
            node,
            kind=kind,
            children=tuple(shown_children),
            names=tuple(f"f{at}" for at in range(len(shown_children)))
            if kind is OrcKind.STRUCT
            else (),
        )
    encoding = (
        proto.ColumnEncoding(kind=0)
        if column.source_id < 0
        else streams.layout.message.columns[column.source_id]
    )
    return node, [ImagePart(node, encoding, shown_streams), *below]


def build_image(
    streams: StripeStreams, root: SelectedColumn, row_count: int, make: PartMaker
) -> bytes:
    """The image as the bytes of an ORC file of one stripe; `root` must be a struct."""
    schema, parts = _image_parts(streams, root, make)
    footer = proto.StripeFooter(writer_timezone=streams.layout.timezone)
    data: list[bytes | memoryview] = []
    for own_id, part in enumerate(parts):
        footer.columns.append(part.encoding)
        for kind, content in part.streams.items():
            footer.streams.add(kind=kind, column=own_id, length=len(content))
            data.append(content)
    settings = replace(OrcSettings.of_tail(streams.tail), row_index_stride=0)
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, schema, settings)
    assembler.append(
        EncodedStripe(
            index=b"",
            data=b"".join(data),
            footer=footer,
            row_count=row_count,
            statistics=proto.StripeStatistics(),
        )
    )
    assembler.finish({})
    return sink.getvalue()


def zeros_stream(count: int, is_version_2: bool, tail: OrcTail) -> bytes:
    """An integer stream of at least `count` zeros, in the file's kind of chunks."""
    if is_version_2:
        run, run_values = bytes((0xC1, 0xFF, 0, 0)), 512
    else:
        run, run_values = bytes((127, 0, 0)), 130
    plain = run * (count // run_values + 1)
    if tail.compression is Compression.NONE:
        return plain
    chunk_bytes = tail.block_size_bytes
    chunks = (plain[at : at + chunk_bytes] for at in range(0, len(plain), chunk_bytes))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)
