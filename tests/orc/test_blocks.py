from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.blocks import Compression, compress, decompress

WRITABLE = [one for one in Compression if one not in {Compression.LZO, Compression.BROTLI}]
LIMIT = 1 << 20


@given(
    st.binary(max_size=400) | st.text("ab", max_size=2000).map(str.encode),
    st.sampled_from(WRITABLE),
    st.integers(1, 500),
)
def test_what_is_packed_unpacks(data: bytes, compression: Compression, block: int) -> None:
    packed = compress(data, compression, block)
    assert decompress(packed, compression, block, LIMIT) == data


def test_a_long_lz4_literal_and_match() -> None:
    data = bytes(range(256)) * 3 + b"x" * 1000 + bytes(range(255, -1, -1))
    packed = compress(data, Compression.LZ4, 65536)
    assert len(packed) < len(data)
    assert decompress(packed, Compression.LZ4, 65536, LIMIT) == data


@pytest.mark.parametrize("compression", [one for one in WRITABLE if one])
def test_damage_is_an_error(compression: Compression) -> None:
    packed = compress(b"abc" * 1000, compression, 65536)
    with pytest.raises(AcidFormatError, match="here"):
        decompress(packed[:-1], compression, 65536, LIMIT, "here")
    with pytest.raises(AcidFormatError, match="here"):
        decompress(packed, compression, 100, LIMIT, "here")


def test_a_section_is_bounded() -> None:
    packed = compress(b"a" * 10_000, Compression.ZLIB, 1000)
    with pytest.raises(AcidFormatError, match="larger than 5000"):
        decompress(packed, Compression.ZLIB, 1000, 5000)
    # A chunk that would blow up stops at its block.
    bomb = zlib.compressobj(wbits=-15)
    chunk = bomb.compress(bytes(10_000_000)) + bomb.flush()
    header = (len(chunk) << 1).to_bytes(3, "little")
    with pytest.raises(AcidFormatError, match="larger than its block"):
        decompress(header + chunk, Compression.ZLIB, 65536, LIMIT)


@pytest.mark.parametrize("compression", [Compression.LZO, Compression.BROTLI])
def test_what_nobody_can_read_is_named(compression: Compression) -> None:
    with pytest.raises(AcidFormatError, match=compression.name):
        decompress(b"\x02\x00\x00x", compression, 100, 100)
    with pytest.raises(AcidFormatError, match=compression.name):
        compress(b"x", compression, 100)
