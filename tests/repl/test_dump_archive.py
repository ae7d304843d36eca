"""What a dump says of an archive that is not there."""

from __future__ import annotations

from pathlib import Path

from changemanager.location import Location
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.repl.dump_archive import absent_archive


def test_a_missing_archive_is_told_on_a_cluster_only(tmp_path: Path) -> None:
    here = file_systems(Settings())(f"{tmp_path}/cmroot")
    there = Location("hdfs://nn:8020/cmroot", here.path, here.volume)
    assert absent_archive(here) is None
    told = absent_archive(there)
    assert told is not None
    assert "hdfs://nn:8020/cmroot (hive.repl.cmrootdir) is not there" in told
    (tmp_path / "cmroot").mkdir()
    assert absent_archive(there) is None
