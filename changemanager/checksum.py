"""The checksum that HDFS gives a file, computed from its bytes.

HDFS's default is an MD5 of MD5s of CRC32C values: every 512 bytes have a CRC32C (big-endian), every
block has the MD5 of its CRCs, the file has the MD5 of its blocks' MD5s. Its 28 bytes are
`int32 bytes per CRC | int64 CRCs per block | MD5`. The last MD5 runs over Hadoop's whole output
buffer, which starts at 32 bytes and doubles, so the block MD5s are followed by zero bytes.
CRCs per block is 0 for a file of one block; all is zero in the header of an empty file.

Names of archived files and lines of dumps carry these bytes as 56 hex characters. A cluster with
`dfs.checksum.combine.mode=COMPOSITE_CRC` writes 8 characters instead: one CRC32C of the whole file.
Seen on HDFS 3.4, and what Hive does elsewhere: docs/hive/replication.md §3.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import BinaryIO

import crc32c

from changemanager.errors import ChangeManagerError

_READ_BYTES = 1 << 20
_CRC_BYTES_MAX = 1 << 20
_BUFFER_BYTES = 32
_COMPOSITE_HEX = 56
_PLAIN_CRC_HEX = 8
_CHECKSUM = re.compile(rf"[0-9a-f]{{{_PLAIN_CRC_HEX}}}|[0-9a-f]{{{_COMPOSITE_HEX}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChecksumLayout:
    """How bytes are cut before they are summed; the block is a whole number of pieces."""

    crc_bytes: int = 512
    block_bytes: int = 128 << 20

    def __post_init__(self) -> None:
        if self.crc_bytes <= 0 or self.block_bytes <= 0 or self.block_bytes % self.crc_bytes:
            raise ChangeManagerError(
                f"blocks of {self.block_bytes} bytes cannot be cut into pieces of {self.crc_bytes}"
            )


HDFS_LAYOUT = ChecksumLayout()
"""What HDFS does unless it is told otherwise."""


def composite_checksum(stream: BinaryIO, layout: ChecksumLayout = HDFS_LAYOUT) -> str:
    """The 56 hex characters that HDFS gives for these bytes. Memory: about 2 MiB."""
    block_sums: list[bytes] = []
    while True:
        block_sum, length = _block_checksum(stream, layout)
        if length:
            block_sums.append(block_sum)
        if length < layout.block_bytes:
            break
    joined = b"".join(block_sums)
    buffer_bytes = _BUFFER_BYTES
    while buffer_bytes < len(joined):
        buffer_bytes *= 2
    total = hashlib.md5(joined.ljust(buffer_bytes, b"\0"), usedforsecurity=False).digest()
    crcs_per_block = layout.block_bytes // layout.crc_bytes if len(block_sums) > 1 else 0
    header = struct.pack(">iq", layout.crc_bytes if block_sums else 0, crcs_per_block)
    return (header + total).hex()


def _block_checksum(stream: BinaryIO, layout: ChecksumLayout) -> tuple[bytes, int]:
    """MD5 of the CRCs of one block, and how many bytes it had (0 at the end of the file)."""
    digest = hashlib.md5(usedforsecurity=False)
    step = layout.crc_bytes
    read_bytes = max(step, _READ_BYTES // step * step)
    length = 0
    while length < layout.block_bytes:
        data = memoryview(_read_fully(stream, min(read_bytes, layout.block_bytes - length)))
        if not data:
            break
        crcs = [crc32c.crc32c(data[at : at + step]) for at in range(0, len(data), step)]
        digest.update(struct.pack(f">{len(crcs)}I", *crcs))
        length += len(data)
    return digest.digest(), length


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    """Exactly `size` bytes, or fewer at the end of the file; a stream may give less than asked."""
    data = stream.read(size)
    if not data or len(data) == size:
        return data
    pieces = [data]
    missing = size - len(data)
    while missing:
        data = stream.read(missing)
        if not data:
            break
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)


def plain_checksum(stream: BinaryIO) -> str:
    """The 8 hex characters of HDFS's COMPOSITE_CRC mode: one CRC32C over all bytes."""
    crc = 0
    while data := stream.read(_READ_BYTES):
        crc = crc32c.crc32c(data, crc)
    return f"{crc:08x}"


def is_checksum(text: str) -> bool:
    """Whether a text has the form of one of HDFS's checksums."""
    return _CHECKSUM.fullmatch(text) is not None


def layout_of(checksum: str) -> ChecksumLayout:
    """The layout that a checksum of 56 characters was computed with.

    One block says nothing about the block size: any size that holds the file gives the same.
    """
    crc_bytes, crcs_per_block = struct.unpack(">iq", bytes.fromhex(checksum[:24]))
    if crc_bytes == 0:
        return HDFS_LAYOUT
    if not 0 < crc_bytes <= _CRC_BYTES_MAX or crcs_per_block < 0:
        raise ChangeManagerError(
            f"{checksum!r} is no checksum of HDFS: one CRC for {crc_bytes} bytes, "
            f"{crcs_per_block} CRCs in a block"
        )
    if crcs_per_block == 0:
        return ChecksumLayout(crc_bytes=crc_bytes, block_bytes=crc_bytes << 40)
    return ChecksumLayout(crc_bytes=crc_bytes, block_bytes=crc_bytes * crcs_per_block)


def checksum_like(stream: BinaryIO, like: str) -> str:
    """The checksum of these bytes, in the mode and layout of another one, to compare with it."""
    if not is_checksum(like):
        raise ChangeManagerError(f"{like!r} is no checksum of HDFS (8 or 56 hex characters)")
    if len(like) == _PLAIN_CRC_HEX:
        return plain_checksum(stream)
    return composite_checksum(stream, layout_of(like))
