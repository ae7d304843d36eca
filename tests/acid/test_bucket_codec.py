import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.bucket_codec import BucketProperty, bucket_id_of, decode_bucket, encode_bucket
from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_what_is_encoded_comes_back(bucket_id: int, statement_id: int) -> None:
    assert decode_bucket(encode_bucket(bucket_id, statement_id)) == BucketProperty(
        1, bucket_id, statement_id
    )


@given(st.integers(0, 2**29 - 1))
def test_version_0_is_the_bucket_id(bucket_id: int) -> None:
    assert decode_bucket(bucket_id) == BucketProperty(0, bucket_id, 0)


@given(st.integers(-(2**40), 2**40))
def test_any_number_is_decoded_or_refused(number: int) -> None:
    if 0 <= number < 2**30:
        assert decode_bucket(number).version == number >> 29
        assert bucket_id_of(number) == decode_bucket(number).bucket_id
    else:
        with pytest.raises(AcidFormatError, match="unknown codec version"):
            decode_bucket(number)


@pytest.mark.parametrize(
    ("bucket_id", "statement_id", "number"),
    [(0, 0, 536870912), (1, 0, 536936448), (2, 0, 537001984), (0, 1, 536870913)],
)
def test_hives_numbers(bucket_id: int, statement_id: int, number: int) -> None:
    assert encode_bucket(bucket_id, statement_id) == number


@pytest.mark.parametrize("statement_id", [None, -1])
def test_no_statement_is_statement_0(statement_id: int | None) -> None:
    assert encode_bucket(1, statement_id) == encode_bucket(1, 0)


@pytest.mark.parametrize(("bucket_id", "statement_id"), [(4096, 0), (-1, 0), (0, 4096), (0, -2)])
def test_more_than_12_bits_are_refused(bucket_id: int, statement_id: int) -> None:
    with pytest.raises(AcidFormatError, match="is not in 0"):
        encode_bucket(bucket_id, statement_id)


def test_row_ids_sort_as_acid_files_do() -> None:
    mixed = [RowId(1, 2, 1), RowId(0, 5, 5), RowId(1, 1, 7), RowId(-1, 9, 9), RowId(1, 2, 0)]
    assert [mixed.index(one) for one in sorted(mixed)] == [3, 1, 2, 4, 0]
