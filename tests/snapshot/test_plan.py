import pytest

from hms_bridge.acid.bucket_codec import encode_bucket
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.snapshot.plan import FileRole, RawRows, ReadPlan, plan_read
from tests.support.acid_tree import tree, txns, write_ids

NONE_OPEN = "9223372036854775807"
ALL_SEEN = f"99:{NONE_OPEN}::"


def _plan(*paths: str, seen: str = ALL_SEEN, is_bucketed: bool = False) -> ReadPlan:
    return plan_read(tree(*paths), txns=txns(), write_ids=write_ids(seen), is_bucketed=is_bucketed)


def test_files_and_their_roles() -> None:
    plan = _plan(
        "base_0000003_v0000009/bucket_00000",
        "delta_0000004_0000004_0001/bucket_00001_0",
        "delete_delta_0000004_0000004_0000/bucket_00000_0",
        "delta_0000005_0000005_0000/_orc_acid_version",
    )
    base, delta = plan.files
    (delete,) = plan.deletes
    assert (base.path, base.role, base.bucket_id) == (
        "/t/base_0000003_v0000009/bucket_00000",
        FileRole.BASE,
        0,
    )
    assert (base.min_write_id, base.max_write_id, base.statement_id) == (0, 3, None)
    assert (delta.role, delta.bucket_id, delta.statement_id) == (FileRole.DELTA, 1, 1)
    assert (delta.min_write_id, delta.max_write_id, delta.size_bytes) == (4, 4, 10)
    assert delete.role is FileRole.DELETE_DELTA
    assert not any(file.is_filtered or file.raw or file.side_file for file in plan.files)


def test_originals_are_numbered_in_path_order_by_bucket() -> None:
    plan = _plan(
        "000000_0",
        "000000_0_copy_10",
        "000000_0_copy_2",
        "000001_0",
        "HIVE_UNION_SUBDIR_1/000000_0",
    )
    numbering = {file.path: file.raw for file in plan.files}
    first, tenth, second = (f"/t/000000_0{end}" for end in ("", "_copy_10", "_copy_2"))

    preceding = {path: raw.preceding for path, raw in numbering.items() if raw}
    assert preceding == {
        first: (),
        tenth: (first,),
        second: (first, tenth),
        "/t/000001_0": (),
        "/t/HIVE_UNION_SUBDIR_1/000000_0": (first, tenth, second),
    }
    assert numbering["/t/000001_0"] == RawRows(
        write_id=0, bucket_property=encode_bucket(1), group=("/t/000001_0",)
    )
    assert numbering[second] == RawRows(
        write_id=0,
        bucket_property=encode_bucket(0),
        group=(first, tenth, second, "/t/HIVE_UNION_SUBDIR_1/000000_0"),
        index=2,
    )
    assert {file.role for file in plan.files} == {FileRole.ORIGINAL}


def test_loaded_files_carry_write_id_and_statement_of_their_directory() -> None:
    plan = _plan(
        "base_0000002/000000_0",
        "delta_0000003_0000003_0002/000000_0",
        "delta_0000003_0000003_0002/000000_0_copy_1",
    )
    group = tuple(f"/t/delta_0000003_0000003_0002/000000_0{end}" for end in ("", "_copy_1"))
    assert [file.raw for file in plan.files] == [
        RawRows(write_id=2, bucket_property=encode_bucket(0), group=("/t/base_0000002/000000_0",)),
        RawRows(write_id=3, bucket_property=encode_bucket(0, 2), group=group),
        RawRows(write_id=3, bucket_property=encode_bucket(0, 2), group=group, index=1),
    ]


def test_unbucketed_rows_look_into_every_delete_file() -> None:
    plan = _plan(
        "delta_0000001_0000001_0000/bucket_00000",
        "delta_0000001_0000001_0000/bucket_00001",
        "delete_delta_0000002_0000002_0000/bucket_00000",
        "delete_delta_0000002_0000002_0000/bucket_00007",
    )
    splits = plan.bucket_splits()
    assert [split.bucket_id for split in splits] == [0, 1]
    assert all(split.deletes == plan.deletes for split in splits)


def test_bucketed_rows_look_into_their_own() -> None:
    plan = _plan(
        "delta_0000001_0000001_0000/bucket_00000",
        "delta_0000001_0000001_0000/bucket_00001",
        "delete_delta_0000002_0000002_0000/bucket_00000",
        is_bucketed=True,
    )
    zero, one = plan.bucket_splits()
    assert (len(zero.deletes), len(one.deletes)) == (1, 0)


def test_later_rows_need_no_earlier_deletes() -> None:
    plan = _plan(
        "base_0000001_v0000009/bucket_00000",
        "delete_delta_0000002_0000002_0000/bucket_00000",
        "delta_0000002_0000002_0001/bucket_00000",
        "delta_0000003_0000003_0000/bucket_00000",
    )
    assert [len(split.deletes) for split in plan.file_splits()] == [1, 1, 0]
    (bucket,) = plan.bucket_splits()
    assert (len(bucket.files), len(bucket.deletes)) == (3, 1)


@pytest.mark.parametrize(
    ("path", "seen", "is_filtered"),
    [
        ("delta_0000001_0000003/bucket_00000", ALL_SEEN, False),
        ("delta_0000001_0000003/bucket_00000", f"9:{NONE_OPEN}::2", True),
        ("delta_0000001_0000003/bucket_00000", "9:2:2:", True),
        ("delta_0000001_0000003/bucket_00000", f"2:{NONE_OPEN}::", True),
        ("delta_0000001_0000003_v9/bucket_00000", f"9:{NONE_OPEN}::2", False),
        ("delta_0000001_0000003_v9/bucket_00000", "9:2:2:", True),
        ("delta_0000001_0000003_v9/bucket_00000", f"2:{NONE_OPEN}::", True),
        ("base_0000003_v9/bucket_00000", f"9:{NONE_OPEN}::2", False),
    ],
)
def test_rows_are_tested_where_some_may_be_invalid(path: str, seen: str, is_filtered: bool) -> None:
    (file,) = _plan(path, seen=seen).files
    assert file.is_filtered == is_filtered


def test_side_files_go_with_their_bucket_files() -> None:
    plan = _plan(
        "delta_0000001_0000003/bucket_00000",
        "delta_0000001_0000003/bucket_00000_flush_length",
        "delta_0000001_0000003/bucket_00001",
        seen="2:2:2:",
    )
    assert [file.side_file for file in plan.files] == [
        "/t/delta_0000001_0000003/bucket_00000_flush_length",
        None,
    ]
    assert all(file.is_filtered for file in plan.files)


def test_strangers_are_told_and_empty_files_are_missing() -> None:
    listing = DirectoryListing.build(
        "/t",
        files=[
            ListedFile(path="delta_0000001_0000001_0000/bucket_00000", size_bytes=0),
            ListedFile(path="delta_0000001_0000001_0000/bucket_00001", size_bytes=1),
            ListedFile(path="delta_0000001_0000001_0000/data.csv", size_bytes=1),
            ListedFile(path="strange.csv", size_bytes=1),
        ],
    )
    plan = plan_read(listing, txns=txns(), write_ids=write_ids(ALL_SEEN))
    assert [file.bucket_id for file in plan.files] == [1]
    assert plan.unread == ("/t/delta_0000001_0000001_0000/data.csv", "/t/strange.csv")


def test_empty_base_reads_nothing() -> None:
    plan = _plan("base_0000003_v0000009/_orc_acid_version", "delta_0000001_0000001_0000/bucket_0")
    assert (plan.files, plan.deletes, plan.bucket_splits()) == ((), (), ())


def test_insert_only_files_have_no_row_ids() -> None:
    paths = ("base_0000001/part-0.parquet", "delta_0000002_0000002_0001/SUB/000000_0")
    listing = DirectoryListing.build(
        "/t", files=[ListedFile(path=path, size_bytes=1) for path in paths], is_insert_only=True
    )
    plan = plan_read(listing, txns=txns(), write_ids=write_ids(ALL_SEEN), is_insert_only=True)
    assert [file.path for file in plan.files] == [f"/t/{path}" for path in paths]
    assert all(file.raw is None and file.bucket_id is None for file in plan.files)
    assert len(plan.bucket_splits()) == 1


def test_lost_history_reaches_the_reader() -> None:
    with pytest.raises(NotEnoughHistoryError, match="read again"):
        _plan("base_0000005_v0000009/bucket_00000", seen="4:4:4:")
