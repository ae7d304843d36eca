"""ORC's compressed sections: chunks behind a three-byte header, at most one block each."""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final

import pyarrow as pa

from hms_bridge.errors import AcidFormatError

_HEADER_BYTES: Final = 3
_CHUNK_BYTES_MAX: Final = (1 << 23) - 1
"""What the header's 23 bits can say."""


class Compression(IntEnum):
    """How the sections of a file are compressed; the value is what ORC stores."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5
    BROTLI = 6


def decompress(
    data: bytes, compression: Compression, block_size_bytes: int, limit_bytes: int, path: str = ""
) -> bytes:
    """The plain bytes of a section.

    Raises AcidFormatError if a chunk is damaged or larger than a block, if the section would be
    larger than `limit_bytes`, or for LZO and BROTLI, which no one here can read.
    """
    if compression is Compression.NONE:
        return data
    parts: list[bytes] = []
    size = 0
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + _HEADER_BYTES], "little")
        start, at = at + _HEADER_BYTES, at + _HEADER_BYTES + (header >> 1)
        chunk = data[start:at]
        if at > len(data):
            raise AcidFormatError("a compressed section ends inside a chunk", path)
        is_plain = bool(header & 1)
        part = chunk if is_plain else _unpack(chunk, compression, block_size_bytes, path)
        size += len(part)
        if size > limit_bytes:
            raise AcidFormatError(f"a section is larger than {limit_bytes} bytes", path)
        parts.append(part)
    return b"".join(parts)


def _unpack(chunk: bytes, compression: Compression, limit_bytes: int, path: str) -> bytes:
    try:
        match compression:
            case Compression.ZLIB:
                inflate = zlib.decompressobj(wbits=-15)
                part = inflate.decompress(chunk, limit_bytes + 1)
            case Compression.ZSTD:
                with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                    part = stream.read(limit_bytes + 1)
            case Compression.SNAPPY:
                part = _decompress_sized(chunk, "snappy", _snappy_size(chunk), limit_bytes)
            case Compression.LZ4:
                part = _decompress_sized(chunk, "lz4_raw", _lz4_size(chunk), limit_bytes)
            case _:
                raise AcidFormatError(f"compression {compression.name} cannot be read", path)
    except (zlib.error, OSError, IndexError, pa.ArrowException) as error:
        raise AcidFormatError(f"a {compression.name} chunk is damaged: {error}", path) from error
    if len(part) > limit_bytes:
        raise AcidFormatError(f"a chunk is larger than its block of {limit_bytes} bytes", path)
    return part


def _decompress_sized(chunk: bytes, codec: str, size_bytes: int, limit_bytes: int) -> bytes:
    if size_bytes > limit_bytes:
        raise OSError(f"{size_bytes} bytes in a block of {limit_bytes}")
    plain: bytes = pa.Codec(codec).decompress(chunk, size_bytes, asbytes=True)
    return plain


def _snappy_size(chunk: bytes) -> int:
    size = shift = at = 0
    while True:
        size |= (chunk[at] & 0x7F) << shift
        if not chunk[at] & 0x80:
            return size
        at, shift = at + 1, shift + 7


def _lz4_size(chunk: bytes) -> int:
    """Plain size of an LZ4 block, which does not state it: the sum over its sequences."""
    size = at = 0
    while at < len(chunk):
        token = chunk[at]
        literals, at = _lz4_length(chunk, at + 1, token >> 4)
        size += literals
        at += literals
        if at >= len(chunk):
            break
        match_length, at = _lz4_length(chunk, at + 2, token & 15)
        size += match_length + 4
    return size


def _lz4_length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            length += chunk[at]
            at += 1
            if chunk[at - 1] != 255:
                break
    return length, at


def compress(data: bytes, compression: Compression, block_size_bytes: int) -> bytes:
    """The section that `decompress` turns back into `data`."""
    if compression is Compression.NONE:
        return data
    step = min(block_size_bytes, _CHUNK_BYTES_MAX)
    parts = []
    for start in range(0, len(data), step):
        plain = data[start : start + step]
        packed = _compress_chunk(plain, compression)
        is_plain = len(packed) >= len(plain)
        chunk = plain if is_plain else packed
        parts.append((len(chunk) << 1 | is_plain).to_bytes(_HEADER_BYTES, "little"))
        parts.append(chunk)
    return b"".join(parts)


def _compress_chunk(plain: bytes, compression: Compression) -> bytes:
    if compression is Compression.ZLIB:
        deflate = zlib.compressobj(wbits=-15)
        return deflate.compress(plain) + deflate.flush()
    codec = {
        Compression.SNAPPY: "snappy",
        Compression.LZ4: "lz4_raw",
        Compression.ZSTD: "zstd",
    }.get(compression)
    if codec is None:
        raise AcidFormatError(f"compression {compression.name} cannot be written")
    packed: bytes = pa.Codec(codec).compress(plain, asbytes=True)
    return packed
