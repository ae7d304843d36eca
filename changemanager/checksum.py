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
from functools import lru_cache
from typing import BinaryIO, Protocol

import crc32c

from changemanager.errors import ChangeManagerError

READ_BYTES = 256 << 10
"""How much is read at once. Larger pieces are got from and given back to the operating system each
time, which takes longer than to copy them."""
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
"""What HDFS does unless its settings say otherwise."""


class RunningSum(Protocol):
    """A checksum of bytes that come piece by piece."""

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        ...

    def hexdigest(self) -> str:
        """The checksum of all that was added, in hex; nothing is added afterwards."""
        ...


class CompositeSum:
    """What HDFS gives by default: 56 hex characters. Memory: some of what is added at once."""

    def __init__(self, layout: ChecksumLayout = HDFS_LAYOUT) -> None:
        self._layout = layout
        self._block_sums: list[bytes] = []
        self._block = hashlib.md5(usedforsecurity=False)
        self._block_length = 0
        self._rest = b""
        """Fewer bytes than have a CRC of their own."""

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        if self._rest:
            data = self._rest + data
        whole = len(data) - len(data) % self._layout.crc_bytes
        at = 0
        while at < whole:
            end = min(whole, at + self._layout.block_bytes - self._block_length)
            self._add(data[at:end])
            at = end
        self._rest = data[whole:]

    def _add(self, data: bytes) -> None:
        """Bytes of one block; fewer than a CRC takes only at the end of the file."""
        step = self._layout.crc_bytes
        count, rest = divmod(len(data), step)
        pieces = _cut(step, count, rest).unpack(data)
        self._block.update(_packed(len(pieces)).pack(*map(crc32c.crc32c, pieces)))
        self._block_length += len(data)
        if self._block_length == self._layout.block_bytes:
            self._end_block()

    def _end_block(self) -> None:
        self._block_sums.append(self._block.digest())
        self._block = hashlib.md5(usedforsecurity=False)
        self._block_length = 0

    def hexdigest(self) -> str:
        """The checksum of all that was added."""
        if self._rest:
            self._add(self._rest)
            self._rest = b""
        if self._block_length:
            self._end_block()
        joined = b"".join(self._block_sums)
        buffer_bytes = _BUFFER_BYTES
        while buffer_bytes < len(joined):
            buffer_bytes *= 2
        total = hashlib.md5(joined.ljust(buffer_bytes, b"\0"), usedforsecurity=False).digest()
        layout, count = self._layout, len(self._block_sums)
        crcs_per_block = layout.block_bytes // layout.crc_bytes if count > 1 else 0
        return (struct.pack(">iq", layout.crc_bytes if count else 0, crcs_per_block) + total).hex()


@lru_cache(maxsize=16)
def _cut(step: int, count: int, rest: int) -> struct.Struct:
    """Cuts bytes into pieces, far faster than slices do."""
    return struct.Struct(f"{step}s" * count + (f"{rest}s" if rest else ""))


@lru_cache(maxsize=16)
def _packed(count: int) -> struct.Struct:
    return struct.Struct(f">{count}I")


class PlainSum:
    """What HDFS gives in its COMPOSITE_CRC mode, 8 hex characters: one CRC32C over all bytes. It is
    far cheaper than :class:`CompositeSum`."""

    def __init__(self) -> None:
        self._crc = 0

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        self._crc = crc32c.crc32c(data, self._crc)

    def hexdigest(self) -> str:
        """The checksum of all that was added."""
        return f"{self._crc:08x}"


def composite_checksum(stream: BinaryIO, layout: ChecksumLayout = HDFS_LAYOUT) -> str:
    """The 56 hex characters that HDFS gives for these bytes. Memory: less than 2 MiB."""
    return _summed(stream, CompositeSum(layout))


def plain_checksum(stream: BinaryIO) -> str:
    """The 8 hex characters of HDFS's COMPOSITE_CRC mode: one CRC32C over all bytes."""
    return _summed(stream, PlainSum())


def _summed(stream: BinaryIO, running: RunningSum) -> str:
    while data := stream.read(READ_BYTES):
        running.update(data)
    return running.hexdigest()


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


def running_like(like: str) -> RunningSum:
    """A sum in the mode and layout of another one, to compare with it."""
    if not is_checksum(like):
        raise ChangeManagerError(f"{like!r} is no checksum of HDFS (8 or 56 hex characters)")
    if len(like) == _PLAIN_CRC_HEX:
        return PlainSum()
    return CompositeSum(layout_of(like))


def checksum_like(stream: BinaryIO, like: str) -> str:
    """The checksum of these bytes, in the mode and layout of another one, to compare with it."""
    return _summed(stream, running_like(like))
