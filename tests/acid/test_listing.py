import pytest

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat
from tests.support.acid_tree import tree


def test_everything_finds_its_place() -> None:
    found = tree(
        "000000_0",
        "000000_0_copy_10",
        "000000_0_copy_2",
        "HIVE_UNION_SUBDIR_1/000000_0",
        "delta_0000001_0000001_0000/bucket_00000",
        "delta_0000001_0000001_0000/_orc_acid_version",
        "delta_0000001_0000001_0000/.bucket_00000.crc",
        "delta_0000002_0000004/bucket_00000",
        "delta_0000002_0000004/bucket_00000_flush_length",
        "README.txt",
        "_tmp_1/base_0000004/bucket_00000",
        ".hive-staging/x/000000_0",
        "sub/_x/000000_0",
    )
    assert [one.path for one in found.originals] == [
        "000000_0",
        "000000_0_copy_10",
        "000000_0_copy_2",
        "HIVE_UNION_SUBDIR_1/000000_0",
    ]
    first, batch = found.directories
    assert first.has_acid_version
    assert [file.name for file in first.files] == ["bucket_00000"]
    assert not batch.has_acid_version
    assert [file.name for file in batch.side_files] == ["bucket_00000_flush_length"]
    assert batch.size_bytes == 10
    assert [one.path for one in found.unknown] == ["README.txt"]
    assert found.hidden == (".hive-staging", "_tmp_1", "sub/_x")
    assert found.full_path("a/b") == "/t/a/b"


def test_empty_directories_count() -> None:
    found = tree("base_0000003_v0000009/", "delta_0000004_0000004_0000/", "elsewhere/", "_tmp/")
    assert [one.path for one in found.directories] == [
        "base_0000003_v0000009",
        "delta_0000004_0000004_0000",
    ]
    assert found.hidden == ("_tmp",)


def test_nested_files_belong_to_their_directory() -> None:
    path = "delta_0000004_0000004_0001/HIVE_UNION_SUBDIR_1/000000_0"
    (directory,) = tree(path).directories
    assert [file.path for file in directory.files] == [path]
    assert directory.is_raw


def test_files_of_other_roots_are_unknown() -> None:
    found = tree("p=1/000000_0", "p=1/delta_1_1_0/bucket_00000", "sub/base_5/bucket_00000")
    assert found.originals == ()
    assert found.directories == ()
    assert len(found.unknown) == 3


@pytest.mark.parametrize("is_insert_only", [False, True])
@pytest.mark.parametrize(
    "name", ["delta_x", "delta_0000005_0000003", "delete_delta_1_1_0_v", "base_", "base_1_v2_3"]
)
def test_no_originals_lie_where_hive_fails(name: str, is_insert_only: bool) -> None:
    """As rows of write id 0 they would be everybody's, and a cleaner would remove them."""
    files = [ListedFile(path=f"{name}/000000_0", size_bytes=1)]
    found = DirectoryListing.build("/t", files=files, is_insert_only=is_insert_only)
    assert (found.directories, found.originals, list(found.unknown)) == ((), (), files)


def test_file_named_like_a_directory_is_unknown() -> None:
    found = tree("delta_0000001_0000001_0000")
    assert found.directories == ()
    assert [one.path for one in found.unknown] == ["delta_0000001_0000001_0000"]


def test_insert_only_tables_take_any_name() -> None:
    found = DirectoryListing.build(
        "/t",
        files=[ListedFile(path=path, size_bytes=1) for path in ("part-0.parquet", "p=1/x", "_x")],
        is_insert_only=True,
    )
    assert [one.path for one in found.originals] == ["part-0.parquet"]


def test_one_file_of_a_directory_is_probed() -> None:
    asked: list[str] = []

    def is_raw(path: str) -> bool:
        asked.append(path)
        return path.startswith("base_")

    files = [
        "base_0000001/000000_0",
        "base_0000001/000001_0",
        "base_0000002_v0000009/000000_0",
        "delta_0000003_0000003_0000/000000_0",
        "delta_0000004_0000005/000000_0",
        "delete_delta_0000006_0000006_0000/000000_0",
        "delta_0000007_0000007_0000/bucket_00000",
    ]
    found = DirectoryListing.build(
        "/t", files=[ListedFile(path=path, size_bytes=1) for path in files], is_raw=is_raw
    )
    assert asked == ["base_0000001/000000_0", "delta_0000003_0000003_0000/000000_0"]
    assert [one.path for one in found.directories if one.is_raw] == ["base_0000001"]


def test_metadata_tells_the_kind_of_base() -> None:
    found = tree(
        "base_0000001/000000_0",
        formats={"base_0000001": DataFormat.COMPACTED, "base_0000002": DataFormat.TRUNCATED},
    )
    compacted, truncated = found.directories
    assert (compacted.is_compacted, compacted.is_raw) == (True, False)
    assert (truncated.is_compacted, truncated.data_format) == (False, DataFormat.TRUNCATED)
