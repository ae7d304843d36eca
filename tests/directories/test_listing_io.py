from pathlib import Path

import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.volume import FileStatus, Volume
from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.location import FsspecResolver
from hms_bridge.acid.markers import DataFormat, format_metadata
from hms_bridge.directories.listing import find_acid_roots, list_acid_directory
from hms_bridge.errors import AcidFormatError
from tests.support.golden import GoldenStage, golden_stages
from tests.support.web_hdfs import NameNode, over_http

FILES = {
    "000000_0": b"12345",
    "base_0000002/_metadata_acid": format_metadata(DataFormat.TRUNCATED),
    "delta_0000003_0000003_0000/bucket_00000": b"123",
    "delta_0000003_0000003_0000/_orc_acid_version": b"2",
    "delta_0000004_0000004_0000/000000_0": b"1",
    "_tmp_x/base_0000009/bucket_00000": b"1",
}


@pytest.fixture(params=["file", "memory", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Volume, str]:
    """A whole prefix is listed at once in memory, as in an object store."""
    is_http = request.param == "http"
    volume = WebHdfsVolume(over_http(NameNode())) if is_http else open_volume(request.param, "")
    root = f"{tmp_path}/t" if request.param == "file" else f"/{tmp_path.name}/t"
    for path, content in FILES.items():
        volume.make_directory(f"{root}/{path}".rpartition("/")[0])
        volume.write_new(f"{root}/{path}", [content])
    volume.make_working_directory(f"{root}/base_0000001_v0000007")
    return volume, root


def test_everything_below_a_root(place: tuple[Volume, str]) -> None:
    volume, root = place
    found = list_acid_directory(volume, f"{root}/")
    assert [one.path for one in found.directories] == [
        "base_0000001_v0000007",
        "base_0000002",
        "delta_0000003_0000003_0000",
        "delta_0000004_0000004_0000",
    ]
    assert [one.path for one in found.originals] == ["000000_0"]
    assert found.hidden == ("_tmp_x",)
    assert found.directories[1].data_format is DataFormat.TRUNCATED
    assert found.directories[2].has_acid_version
    assert found.directories[3].is_raw
    (original,) = found.originals
    assert original.size_bytes == 5
    assert original.modified_ms is not None
    assert volume.read(found.full_path("000000_0")) == b"12345"


def test_root_may_be_a_url(tmp_path: Path) -> None:
    (tmp_path / "delta_0000001_0000001_0000").mkdir()
    for url in (tmp_path.as_uri(), f"file:{tmp_path}"):
        place = FsspecResolver()(url)
        found = list_acid_directory(place.volume, place.path)
        assert [one.path for one in found.directories] == ["delta_0000001_0000001_0000"]
        assert found.root == str(tmp_path)


def test_probe_is_asked_with_full_paths(place: tuple[Volume, str]) -> None:
    volume, root = place
    asked: list[str] = []

    def has_raw_rows(path: str) -> bool:
        asked.append(path)
        assert volume.status(path) is not None
        return False

    found = list_acid_directory(volume, root, has_raw_rows=has_raw_rows)
    assert [path.rpartition("/t/")[2] for path in asked] == ["delta_0000004_0000004_0000/000000_0"]
    assert not any(one.is_raw for one in found.directories)


def test_root_that_is_not_there_is_empty(tmp_path: Path) -> None:
    found = list_acid_directory(LocalVolume(), str(tmp_path / "nowhere"))
    assert (found.directories, found.originals, found.unknown) == ((), (), ())


def test_file_is_no_root(place: tuple[Volume, str]) -> None:
    volume, root = place
    with pytest.raises(AcidFormatError, match="is a file"):
        list_acid_directory(volume, f"{root}/000000_0")


class VanishingVolume(LocalVolume):
    """A cleaner at work: some directories are gone once they were seen, some contents too."""

    def __init__(self, *gone: str) -> None:
        super().__init__()
        self._gone = gone

    def children(self, path: str) -> tuple[FileStatus, ...]:
        if path.endswith(self._gone):
            raise FileNotFoundError(path)
        return super().children(path)

    def read(self, path: str, length_bytes: int | None = None) -> bytes:
        if path.endswith(self._gone):
            raise FileNotFoundError(path)
        return super().read(path, length_bytes)


def test_what_vanishes_counts_as_empty(tmp_path: Path) -> None:
    """HIVE-22001."""
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(content)

    def has_raw_rows(path: str) -> bool:
        raise FileNotFoundError(path)

    volume = VanishingVolume("delta_0000003_0000003_0000", "_metadata_acid")
    found = list_acid_directory(volume, str(tmp_path), has_raw_rows=has_raw_rows)
    base, vanished, loaded = found.directories
    assert (base.path, base.data_format) == ("base_0000002", None)
    assert vanished.files == ()
    assert not loaded.is_raw


class FailingVolume(LocalVolume):
    def children(self, path: str) -> tuple[FileStatus, ...]:
        if "delta_" in path:
            raise PermissionError(path)
        return super().children(path)


def test_directory_that_cannot_be_listed_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "delta_0000001_0000001_0000").mkdir()
    with pytest.raises(PermissionError):
        list_acid_directory(FailingVolume(), str(tmp_path))


def test_metadata_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base_0000001").mkdir()
    (tmp_path / "base_0000001" / "_metadata_acid").write_text('{"thisFileVersion":"9"}')
    with pytest.raises(AcidFormatError, match="_metadata_acid"):
        list_acid_directory(LocalVolume(), str(tmp_path))


def test_roots_of_a_partitioned_table(tmp_path: Path) -> None:
    volume = LocalVolume()
    below = ["a=1/b=x/delta_1_1_0", "a=1/b=y/base_2/sub/delta_9_9", "a=2/b=z", "_tmp/delta_1_1"]
    for path in below:
        (tmp_path / path).mkdir(parents=True)
    assert find_acid_roots(volume, str(tmp_path)) == (f"{tmp_path}/a=1/b=x", f"{tmp_path}/a=1/b=y")
    (tmp_path / "delta_1_1").mkdir()
    assert str(tmp_path) in find_acid_roots(volume, f"{tmp_path}/")


@pytest.mark.golden
@pytest.mark.parametrize("stage", golden_stages("full_acid", "insert_only"), ids=str)
def test_look_at_the_files_agrees_with_hives_listing(stage: GoldenStage) -> None:
    volume = LocalVolume()
    for partition in stage.partitions:
        found = list_acid_directory(
            volume, stage.root(partition), is_insert_only=stage.kind == "insert_only"
        )
        told = stage.listing(partition)
        assert [one.path for one in found.directories] == [one.path for one in told.directories]
        for ours, hives in zip(found.directories, told.directories, strict=True):
            sizes = [(file.path, file.size_bytes) for file in ours.files]
            assert sizes == [(file.path, file.size_bytes) for file in hives.files]
            assert ours.data_format == hives.data_format
            assert ours.is_raw == hives.is_raw


def test_a_root_may_be_a_link_but_not_to_a_file_or_nowhere(tmp_path: Path) -> None:
    (tmp_path / "t" / "delta_0000001_0000001_0000").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    for target in ("t", "empty", "file", "nowhere"):
        (tmp_path / f"to_{target}").symlink_to(tmp_path / target)
    listings = [list_acid_directory(LocalVolume(), f"{tmp_path}/to_{to}") for to in ("t", "empty")]
    assert [len(listing.directories) for listing in listings] == [1, 0]
    with pytest.raises(AcidFormatError, match="is a file"):
        list_acid_directory(LocalVolume(), f"{tmp_path}/to_file")
    with pytest.raises(AcidFormatError, match="leads nowhere"):
        list_acid_directory(LocalVolume(), f"{tmp_path}/to_nowhere")
