"""The tail of an ORC file: postscript, footer, stripe statistics; read within bounds, written.

Layout: stripes, statistics of the stripes, footer, postscript, one byte with the postscript's
length. The first two of the tail are compressed like the streams.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from google.protobuf.message import DecodeError

from changemanager.filesystem.volume import Volume
from hms_bridge.errors import AcidFormatError, NotOrcError
from hms_bridge.orc import proto
from hms_bridge.orc.blocks import Compression, compress, decompress
from hms_bridge.orc.types import OrcType, tree_of_messages

MAGIC: Final = b"ORC"
FIRST_READ_BYTES: Final = 16 * 1024
"""How much of a file's end is read at first; most tails fit."""
SECTION_BYTES_MAX: Final = 256 * 1024 * 1024
"""Footers and stripe statistics beyond this, packed or plain, are taken for damage."""
BLOCK_BYTES_MAX: Final = (1 << 23) - 1
ROWS_PER_BYTE_MAX: Final = 150_000
"""No encoding packs more (512 equal integers in 4 bytes, those deflated a thousandfold)."""
DEFAULT_BLOCK_BYTES: Final = 256 * 1024


class Calendar(IntEnum):
    """Calendar of days before 1582-10-15; the value is what ORC stores."""

    UNKNOWN = 0
    """Not said: hybrid, since no older writer knew anything else."""
    JULIAN_GREGORIAN = 1
    """Hybrid: Julian before the switch."""
    PROLEPTIC_GREGORIAN = 2

    @property
    def is_hybrid(self) -> bool:
        """Whether early days are Julian ones."""
        return self is not Calendar.PROLEPTIC_GREGORIAN


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeInfo:
    """Where one stripe lies: index streams, data streams and its footer, one after another."""

    offset_bytes: int
    index_bytes: int
    data_bytes: int
    footer_bytes: int
    row_count: int

    @property
    def size_bytes(self) -> int:
        """Of the whole stripe."""
        return self.index_bytes + self.data_bytes + self.footer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcTail:
    """What a file says about itself."""

    path: str
    length_bytes: int
    compression: Compression
    block_size_bytes: int
    version: tuple[int, ...]
    writer_code: int
    writer_version: int
    software_version: str
    schema: OrcType
    stripes: tuple[StripeInfo, ...]
    row_count: int
    row_index_stride: int
    calendar: Calendar
    is_encrypted: bool
    user_metadata: Mapping[str, bytes]
    footer_message: bytes = field(repr=False)
    """The footer as a plain protobuf message, unknown fields and all."""
    statistics_message: bytes = field(repr=False)
    """The stripes' statistics, likewise."""

    def column_statistics(self) -> Sequence[Any]:
        """ColumnStatistics messages of the whole file by column id; may be empty."""
        footer = proto.Footer.FromString(self.footer_message)
        return tuple(footer.statistics)

    def stripe_statistics(self) -> Sequence[Any]:
        """StripeStatistics messages, one a stripe; may be empty."""
        try:
            return tuple(proto.Metadata.FromString(self.statistics_message).stripe_statistics)
        except DecodeError as error:
            raise AcidFormatError("the stripe statistics are damaged", self.path) from error


def read_tail(volume: Volume, path: str, length_bytes: int | None = None) -> OrcTail:
    """The tail of the file at `path`.

    `length_bytes` is the logical length, where a side file says that it is shorter than the file.
    Raises NotOrcError if this is no ORC file, AcidFormatError if its tail contradicts itself.
    """
    with volume.open_input(path) as file:
        return tail_of_file(file, path, length_bytes)


def tail_of_file(file: BinaryIO, path: str = "", length_bytes: int | None = None) -> OrcTail:
    """Like `read_tail`, for an open file."""
    real_length = file.seek(0, os.SEEK_END)
    length = real_length if length_bytes is None else length_bytes
    if length > real_length:
        raise AcidFormatError(f"{length} bytes are due, there are {real_length}", path)
    if length <= len(MAGIC):
        raise NotOrcError(f"{length} bytes are no ORC file", path)
    end = _read_range(file, max(0, length - FIRST_READ_BYTES), length)
    postscript = _parse_postscript(end, path)
    trailer_bytes = end[-1] + 1
    sections_bytes = postscript.metadata_length + postscript.footer_length
    if sections_bytes > SECTION_BYTES_MAX or sections_bytes + trailer_bytes > length:
        raise NotOrcError(f"the postscript claims a tail of {sections_bytes} bytes", path)
    if sections_bytes + trailer_bytes > len(end):
        end = _read_range(file, length - sections_bytes - trailer_bytes, length)
    footer_end = len(end) - trailer_bytes
    footer_start = footer_end - postscript.footer_length
    return _parse_tail(
        path=path,
        length=length,
        postscript=postscript,
        footer=end[footer_start:footer_end],
        statistics=end[footer_start - postscript.metadata_length : footer_start],
    )


def _read_range(file: BinaryIO, start: int, stop: int) -> bytes:
    file.seek(start)
    data = file.read(stop - start)
    if len(data) != stop - start:
        raise AcidFormatError(f"only {len(data)} of {stop - start} bytes could be read")
    return data


def _parse_postscript(end: bytes, path: str) -> Any:
    size = end[-1]
    try:
        postscript = proto.PostScript.FromString(end[-1 - size : -1])
    except DecodeError as error:
        raise NotOrcError("the end is no ORC postscript", path) from error
    if size == 0 or size >= len(end) or postscript.magic != MAGIC:
        raise NotOrcError("the end is no ORC postscript", path)
    return postscript


def _parse_tail(
    *, path: str, length: int, postscript: Any, footer: bytes, statistics: bytes
) -> OrcTail:
    try:
        compression = Compression(postscript.compression)
    except ValueError as error:
        raise AcidFormatError(f"compression {postscript.compression} is unknown", path) from error
    block_bytes = postscript.compression_block_size or DEFAULT_BLOCK_BYTES
    if block_bytes > BLOCK_BYTES_MAX and compression is not Compression.NONE:
        raise AcidFormatError(f"compression blocks of {block_bytes} bytes", path)
    plain_footer = decompress(footer, compression, block_bytes, SECTION_BYTES_MAX, path)
    plain_statistics = decompress(statistics, compression, block_bytes, SECTION_BYTES_MAX, path)
    try:
        message = proto.Footer.FromString(plain_footer)
        schema = tree_of_messages(message.types, path)
        user_metadata = {proto.text_of(item.name): item.value for item in message.metadata}
        software_version = proto.text_of(message.software_version)
    except (DecodeError, UnicodeDecodeError) as error:
        raise NotOrcError("the footer is damaged", path) from error
    known_calendars = {calendar.value for calendar in Calendar}
    if message.calendar not in known_calendars:
        raise AcidFormatError(f"calendar {message.calendar} is unknown", path)
    return OrcTail(
        path=path,
        length_bytes=length,
        compression=compression,
        block_size_bytes=block_bytes,
        version=tuple(postscript.version),
        writer_code=message.writer,
        writer_version=postscript.writer_version,
        software_version=software_version,
        schema=schema,
        stripes=_parse_stripes(message, length, path),
        row_count=message.number_of_rows,
        row_index_stride=message.row_index_stride,
        calendar=Calendar(message.calendar),
        is_encrypted=bool(message.encryption),
        user_metadata=MappingProxyType(user_metadata),
        footer_message=plain_footer,
        statistics_message=plain_statistics,
    )


def _parse_stripes(message: Any, length: int, path: str) -> tuple[StripeInfo, ...]:
    stripes = tuple(
        StripeInfo(
            offset_bytes=stripe.offset,
            index_bytes=stripe.index_length,
            data_bytes=stripe.data_length,
            footer_bytes=stripe.footer_length,
            row_count=stripe.number_of_rows,
        )
        for stripe in message.stripes
    )
    end = 0
    for number, stripe in enumerate(stripes):
        if stripe.offset_bytes < end or stripe.offset_bytes + stripe.size_bytes > length:
            raise AcidFormatError(f"stripe {number} lies outside of its place", path)
        if stripe.row_count > (stripe.data_bytes + 1) * ROWS_PER_BYTE_MAX:
            raise AcidFormatError(f"stripe {number} claims {stripe.row_count} rows", path)
        end = stripe.offset_bytes + stripe.size_bytes
    if sum(stripe.row_count for stripe in stripes) != message.number_of_rows:
        raise AcidFormatError("the rows of the stripes do not sum up to the file's", path)
    return stripes


def encode_tail(
    footer: Any,
    statistics: Any,
    *,
    compression: Compression,
    block_size_bytes: int,
    version: Sequence[int],
    writer_version: int,
) -> bytes:
    """The bytes after the last stripe, for a Footer and a Metadata message."""
    packed_statistics = compress(statistics.SerializeToString(), compression, block_size_bytes)
    packed_footer = compress(footer.SerializeToString(), compression, block_size_bytes)
    postscript = proto.PostScript(
        footer_length=len(packed_footer),
        compression=int(compression),
        version=version,
        metadata_length=len(packed_statistics),
        writer_version=writer_version,
        magic=MAGIC,
    )
    if compression is not Compression.NONE:
        postscript.compression_block_size = block_size_bytes
    packed_postscript = postscript.SerializeToString()
    return b"".join(
        (packed_statistics, packed_footer, packed_postscript, bytes([len(packed_postscript)]))
    )
