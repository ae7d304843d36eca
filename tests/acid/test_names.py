import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.names import (
    ORIGINALS_BASE,
    BucketFileName,
    DirectoryKind,
    DirectoryName,
    OriginalFileName,
    is_hidden,
    is_side_file,
    side_file_of,
)
from hms_bridge.model.ids import TxnId, WriteId

numbers = st.integers(0, 2**63 - 1)


@st.composite
def names(draw: st.DrawFn) -> DirectoryName:
    first, last = sorted([draw(numbers), draw(numbers)])
    visible = TxnId(draw(st.one_of(st.just(0), numbers)))
    kind = draw(st.sampled_from(DirectoryKind))
    if kind is DirectoryKind.BASE:
        return DirectoryName.base(WriteId(draw(st.sampled_from([first, ORIGINALS_BASE]))), visible)
    return DirectoryName(
        kind=kind,
        min_write_id=WriteId(first),
        max_write_id=WriteId(last),
        statement_id=draw(st.one_of(st.none(), st.integers(0, 9999))),
        visibility_txn_id=visible,
    )


@given(names())
def test_directory_names_come_back(name: DirectoryName) -> None:
    assert DirectoryName.parse(name.format()) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("base_0000005", DirectoryName.base(WriteId(5))),
        ("base_0000005_v0000010", DirectoryName.base(WriteId(5), TxnId(10))),
        ("base_-9223372036854775808_v0000331", DirectoryName.base(ORIGINALS_BASE, TxnId(331))),
        ("delta_0000001_0000005", DirectoryName.delta(WriteId(1), WriteId(5))),
        ("delta_0000005_0000005_0001", DirectoryName.delta(WriteId(5), WriteId(5), 1)),
        (
            "delete_delta_10000001_10000004_v0000294",
            DirectoryName.delete_delta(WriteId(10000001), WriteId(10000004), None, TxnId(294)),
        ),
        (
            "delta_0000005_0000005_0000_v0000012",
            DirectoryName.delta(WriteId(5), WriteId(5), 0, TxnId(12)),
        ),
    ],
)
def test_hives_directory_names(text: str, name: DirectoryName) -> None:
    assert DirectoryName.parse(text) == name
    assert name.format() == text


@pytest.mark.parametrize(
    ("text", "padded"),
    [("base_5", "base_0000005"), ("delta_1_5_v9", "delta_0000001_0000005_v0000009")],
)
def test_names_without_padding_are_read(text: str, padded: str) -> None:
    assert DirectoryName.parse(text) == DirectoryName.parse(padded)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "base_",
        "base_x",
        "base_5_0",
        "base_5_v",
        "delta_5",
        "delta_5_4",
        "delta_1_2_3_4",
        "delta_1_2_v-3",
        "delta_-1_2",
        "delete_delta_",
        "_delta_1_1",
        "xdelta_1_1",
        "delta_1_1\n",
        "delta_١_١",
        "base_9223372036854775808",
        "base_-9223372036854775809",
        "base_1_v9223372036854775808",
        "delta_1_9223372036854775808",
        "delta_1_1_2147483648",
        "HIVE_UNION_SUBDIR_1",
        "p=1",
    ],
)
def test_other_names_are_none(text: str) -> None:
    assert DirectoryName.parse(text) is None


def test_kinds() -> None:
    assert DirectoryName.base(WriteId(1)).is_base
    assert DirectoryName.delete_delta(WriteId(1), WriteId(1)).is_delete
    assert not DirectoryName.delta(WriteId(1), WriteId(1)).is_delete


@given(st.integers(0, 10**9), st.one_of(st.none(), st.integers(0, 99)))
def test_bucket_files_come_back(bucket_id: int, attempt_id: int | None) -> None:
    name = BucketFileName(bucket_id=bucket_id, attempt_id=attempt_id)
    assert BucketFileName.parse(name.format()) == name


@given(st.integers(0, 10**9), st.integers(0, 99), st.one_of(st.none(), st.integers(0, 99)))
def test_original_files_come_back(bucket_id: int, attempt_id: int, copy: int | None) -> None:
    name = OriginalFileName(bucket_id=bucket_id, attempt_id=attempt_id, copy_number=copy)
    assert OriginalFileName.parse(name.format()) == name


def test_hives_file_names() -> None:
    assert BucketFileName(bucket_id=3, attempt_id=0).format() == "bucket_00003_0"
    assert BucketFileName(bucket_id=3).format() == "bucket_00003"
    copy = OriginalFileName(bucket_id=0, attempt_id=0, copy_number=12)
    assert copy.format() == "000000_0_copy_12"


@pytest.mark.parametrize(
    "name",
    [
        "bucket_00000_flush_length",
        "bucket_",
        "bucket_0_1_2",
        "x",
        "bucket_2147483648",
        "bucket_0_2147483648",
    ],
)
def test_other_files_are_no_bucket_files(name: str) -> None:
    assert BucketFileName.parse(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "000000",
        "000000_0_copy_",
        "000000_0.orc",
        "bucket_00000",
        "2147483648_0",
    ],
)
def test_other_files_are_no_originals(name: str) -> None:
    assert OriginalFileName.parse(name) is None


def test_hidden_and_side_files() -> None:
    assert is_hidden("_tmp_1")
    assert is_hidden(".x.crc")
    assert not is_hidden("000000_0")
    assert side_file_of("d/bucket_00000") == "d/bucket_00000_flush_length"
    assert is_side_file("bucket_00000_flush_length")
    assert not is_side_file("bucket_00000")
