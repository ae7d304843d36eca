"""An archive that is not there is no archive to name in a dump."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import Location
from hms_bridge.config.file_systems import file_systems
from hms_bridge.config.settings import Settings
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.dump.archive import named_archive

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
