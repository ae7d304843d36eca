"""Names as HDFS gives them."""

from __future__ import annotations

import hashlib
import io
import os
import random
import struct
from pathlib import Path

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changemanager.checksum import (
    ChecksumLayout,
    checksum_like,
    composite_checksum,
    is_checksum,
    layout_of,
    plain_checksum,
)
from changemanager.errors import ChangeManagerError

CHECKOUT = Path(__file__).resolve().parents[2]
SMALL = ChecksumLayout(crc_bytes=4, block_bytes=16)


def archives_of_real_hive() -> list[Path]:
    """The cmroot that Hive 4.2 filled on HDFS: the project's copy, and the shared one."""
    told = os.environ.get("HMS_BRIDGE_SHARED")
    beside = [CHECKOUT.parent / "shared", CHECKOUT.parent.parent / "shared"]
    golden = [CHECKOUT / "tests" / "golden"]
    golden += [folder / "golden" for folder in ([Path(told)] if told else beside)]
    roots = [folder / "repl" / "final_fs" / "cmroot" for folder in golden]
    return sorted(path for root in roots if root.is_dir() for path in root.iterdir())


@pytest.mark.golden
def test_every_name_that_hive_gave_on_hdfs() -> None:
    files = archives_of_real_hive()
    for path in files:
        expected = path.name.rpartition("_")[2]
        with path.open("rb") as stream:
            assert composite_checksum(stream) == expected
        with path.open("rb") as stream:
            assert checksum_like(stream, expected) == expected
    assert len({path.name for path in files}) == 74


def by_definition(data: bytes, layout: ChecksumLayout) -> str:
    """The rule again, word for word, with everything in memory."""
    sums = []
    for at in range(0, len(data), layout.block_bytes):
        block = data[at : at + layout.block_bytes]
        crcs = b"".join(
            struct.pack(">I", crc32c.crc32c(block[i : i + layout.crc_bytes]))
            for i in range(0, len(block), layout.crc_bytes)
        )
        sums.append(hashlib.md5(crcs).digest())
    padded = b"".join(sums)
    size = 32
    while size < len(padded):
        size *= 2
    padded += b"\0" * (size - len(padded))
    per_block = layout.block_bytes // layout.crc_bytes if len(sums) > 1 else 0
    header = struct.pack(">i", layout.crc_bytes if data else 0) + struct.pack(">q", per_block)
    return (header + hashlib.md5(padded).digest()).hex()


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65, 200])
def test_every_block_count_and_its_padding(length: int) -> None:
    data = random.Random(length).randbytes(length)
    assert composite_checksum(io.BytesIO(data), SMALL) == by_definition(data, SMALL)


@given(st.binary(max_size=300), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_any_content_and_layout(data: bytes, crc_bytes: int, pieces: int) -> None:
    layout = ChecksumLayout(crc_bytes=crc_bytes, block_bytes=crc_bytes * pieces)
    found = composite_checksum(io.BytesIO(data), layout)
    assert found == by_definition(data, layout)
    assert is_checksum(found)
    assert checksum_like(io.BytesIO(data), found) == found


def test_a_file_larger_than_what_is_read_at_once() -> None:
    data = random.Random(5).randbytes((1 << 20) + 777)
    layout = ChecksumLayout(crc_bytes=512, block_bytes=512 * 1000)
    assert composite_checksum(io.BytesIO(data), layout) == by_definition(data, layout)


class Dripping(io.RawIOBase):
    """A stream that gives less than it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def read(self, size: int = -1) -> bytes:
        given_now = self._rest[: min(size, 7)]
        self._rest = self._rest[len(given_now) :]
        return given_now


def test_a_stream_that_gives_less_than_asked() -> None:
    data = random.Random(6).randbytes(5000)
    assert composite_checksum(Dripping(data)) == composite_checksum(io.BytesIO(data))  # type: ignore[arg-type]


def test_composite_crc_mode_is_one_crc_over_all_bytes() -> None:
    data = random.Random(7).randbytes(3_000_000)
    found = plain_checksum(io.BytesIO(data))
    assert found == f"{crc32c.crc32c(data):08x}"
    assert checksum_like(io.BytesIO(data), found) == found


def test_the_layout_is_read_from_a_checksum() -> None:
    data = b"x" * 100
    found = composite_checksum(io.BytesIO(data), SMALL)
    assert layout_of(found) == SMALL
    assert checksum_like(io.BytesIO(data + b"y"), found) != found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "0" * 55,
        "X" * 56,
        "7fffffff" + "0" * 48,
        "ffffffff" + "0" * 48,
        "00000200" + "f" * 16 + "0" * 32,
    ],
)
def test_what_is_no_checksum_is_refused(text: str) -> None:
    with pytest.raises(ChangeManagerError):
        checksum_like(io.BytesIO(b""), text)


def test_a_layout_must_fit() -> None:
    with pytest.raises(ChangeManagerError, match="cannot be cut"):
        ChecksumLayout(crc_bytes=3, block_bytes=10)
