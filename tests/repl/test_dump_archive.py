"""An archive that is not there is no archive to name in a dump."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import Location
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.dump.archive import named_archive
from tests.support.program import Program
from tests.support.repl_world import ReplWorld

DATABASE = Database(name="sales", location="")


def test_a_missing_archive_is_refused_on_a_cluster_only(tmp_path: Path) -> None:
    here = file_systems(Settings())(f"{tmp_path}/cmroot")
    there = Location("hdfs://nn:8020/cmroot", here.path, here.volume)
    place = {"here": here, "there": there}.__getitem__
    assert named_archive(place, "here", DATABASE, is_elsewhere_allowed=False) == here.uri
    with pytest.raises(ReplError, match="hdfs://nn:8020/cmroot .* is not there"):
        named_archive(place, "there", DATABASE, is_elsewhere_allowed=False)
    (tmp_path / "cmroot").mkdir()
    assert named_archive(place, "there", DATABASE, is_elsewhere_allowed=False) == there.uri
    elsewhere = replace(DATABASE, location="there")
    assert named_archive(place, "there", elsewhere, is_elsewhere_allowed=False) == there.uri


@pytest.fixture(params=["the file itself", "below a file"])
def no_archive(world: ReplWorld, request: pytest.FixtureRequest) -> Path:
    """A place for an archive that cannot be one: somebody's file is there."""
    file = Path(world.cmroot).parent / "notes"
    file.write_text("mine")
    return file if request.param == "the file itself" else file / "in" / "it"


def test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written(
    world: ReplWorld, no_archive: Path
) -> None:
    before = world.source.get_database("src")
    with pytest.raises(ReplError, match=r"cmrootdir\).* a file, no directory.* set hive.repl"):
        world.dump(cm_root=f"file:{no_archive}")
    assert not world.repl_root.exists()
    assert world.source.get_database("src") == before


def test_an_archive_behind_a_link_is_one(world: ReplWorld, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    world.dump(cm_root=f"file:{tmp_path}/link")
    world.more_roots = (f"file:{tmp_path}",)
    world.load()
    world.assert_same()


def test_a_load_whose_dump_names_a_file_for_an_archive_changes_nothing(world: ReplWorld) -> None:
    archive = Path(world.cmroot).parent / "archive"
    world.dump(cm_root=f"file:{archive}")
    if archive.exists():
        shutil.rmtree(archive)
    archive.write_text("mine")
    with pytest.raises(ReplError, match="a file, no directory"):
        world.load()
    assert "dst" not in world.target.get_databases()
    archive.unlink()
    world.load()
    world.assert_same()


def test_a_server_does_not_start_with_a_file_for_an_archive(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    for place in ("notes", "notes/below"):
        answer = Program(tmp_path).run(
            "serve", "--database", f"sqlite:///{tmp_path}/m.db", "--warehouse", f"{tmp_path}/w",
            "--port", "0", "--cleaner", "--set", f"hive.repl.cmrootdir={tmp_path}/{place}",
        )  # fmt: skip
        assert answer.exit_code == 1
        assert f"hive.repl.cmrootdir: file:{tmp_path}/{place} is no directory" in answer.err


def test_no_dump_lies_in_the_archive(world: ReplWorld) -> None:
    for inner in ("", "/dumps"):
        with pytest.raises(ReplError, match="would lie in the archive"):
            world.dump(root=f"{world.cmroot}{inner}")
