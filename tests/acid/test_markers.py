import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.markers import (
    DataFormat,
    format_metadata,
    parse_flush_length,
    parse_metadata,
)
from hms_bridge.errors import AcidFormatError


@pytest.mark.parametrize("data_format", DataFormat)
def test_metadata_comes_back(data_format: DataFormat) -> None:
    assert parse_metadata(format_metadata(data_format)) is data_format


def test_metadata_is_hives_byte_for_byte() -> None:
    expected = b'{"thisFileVersion":"0","dataFormat":"truncated"}'
    assert format_metadata(DataFormat.TRUNCATED) == expected


def test_metadata_in_any_order_and_case() -> None:
    content = b' {"dataFormat": "COMPACTED", "thisFileVersion": "0"}\n'
    assert parse_metadata(content) is DataFormat.COMPACTED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"thisFileVersion":"1","dataFormat":"compacted"}', "version '1'"),
        (b'{"thisFileVersion":"0","dataFormat":"pickled"}', "pickled"),
        (b'{"thisFileVersion":"0"}', "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not a JSON object"),
        (b"", "not a JSON object"),
    ],
)
def test_other_metadata_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(AcidFormatError, match=why) as caught:
        parse_metadata(content, "t/base_1/_metadata_acid")
    assert caught.value.path == "t/base_1/_metadata_acid"


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5), st.binary(max_size=7))
def test_last_whole_flush_length_counts(lengths: list[int], partial: bytes) -> None:
    content = b"".join(length.to_bytes(8, "big") for length in lengths) + partial
    assert parse_flush_length(content, "x") == lengths[-1]


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"\xff" * 8])
def test_flush_length_is_never_guessed(content: bytes) -> None:
    with pytest.raises(AcidFormatError, match="side file"):
        parse_flush_length(content, "delta_1_9/bucket_00000_flush_length")
