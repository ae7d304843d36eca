"""The behaviour of volumes that need no server; real HDFS and S3 are in integration/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.location import FsspecResolver, Location
from tests.support.volume_behaviour import *  # noqa: F403
from tests.support.web_hdfs import NameNode, over_http


@pytest.fixture(params=["local", "memory", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "http":
        return FsspecResolver(lambda *_: WebHdfsVolume(over_http(NameNode())))(
            "hdfs://nn:8020/place"
        )
    if request.param == "memory":
        return FsspecResolver()(f"memory://{tmp_path.name}")
    return FsspecResolver()(str(tmp_path))
