import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_each_part_has_its_bits(bucket_id: int, statement_id: int) -> None:
    assert f"{encode_bucket(bucket_id, statement_id):032b}" == (
        f"0010{bucket_id:012b}0000{statement_id:012b}"
    )


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
