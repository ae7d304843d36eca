"""The behaviour of volumes on a real HDFS: natively (with and without HTTP), and over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest

from changemanager.filesystem.hdfs import HdfsVolume
from changemanager.filesystem.hdfs_client import HdfsClientVolume
from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.hadoop import HadoopConfig
from changemanager.location import FsspecResolver, Location
from integration.referees.hdfs import Hdfs
from tests.support.volume_behaviour import *  # noqa: F403

pytestmark = pytest.mark.hdfs

WAYS = {
    "native": ({"is_native_allowed": True}, HdfsVolume),
    "native without http": ({"is_native_allowed": True}, HdfsVolume),
    "http": ({"is_native_allowed": False}, WebHdfsVolume),
}


@pytest.fixture(scope="module")
def as_ourselves(hdfs: Hdfs) -> Iterator[None]:
    """The native client takes its user from the environment of the process."""
    hdfs.make_home("/volumes")
    before = os.environ.get("HADOOP_USER_NAME")
    yield
    os.environ.pop("HADOOP_USER_NAME", None)
    if before is not None:
        os.environ["HADOOP_USER_NAME"] = before


@pytest.fixture(params=WAYS)
def place(request: pytest.FixtureRequest, hdfs: Hdfs, as_ourselves: None) -> Location:
    chosen, volume_class = WAYS[request.param]
    known = hdfs.hadoop()
    values = dict(known.values)
    if request.param == "native without http":
        del values["dfs.namenode.http-address"]
    hadoop = HadoopConfig(values=values, user=known.user, **chosen)
    resolve = FsspecResolver(partial(open_volume, hadoop=hadoop), hadoop.default_fs)
    found = resolve(f"/volumes/{uuid4().hex}")
    found.volume.make_directory(found.path)
    assert type(found.volume) is volume_class
    assert found.volume.keeps_attributes(found.path) == ("without" not in request.param)
    return found


def test_what_is_made_is_ours_and_open_to_the_group_as_the_umask_says(place: Location) -> None:
    place.volume.make_directory(place.child("plain").path)
    place.volume.make_directory(place.child("cmroot").path, 0o770)
    place.volume.write_new(place.child("plain/f").path, [b"x"])
    assert isinstance(place.volume, HdfsClientVolume)
    infos = {name: place.volume.fs.info(place.child(name).path) for name in ("plain", "cmroot")}
    infos["f"] = place.volume.fs.info(place.child("plain/f").path)
    found = {
        name: (info["owner"], info["group"], _octal(info["permission"]))
        for name, info in infos.items()
    }
    assert found == {
        "plain": ("hmsbridge", "hadoop", 0o755),
        "cmroot": ("hmsbridge", "hadoop", 0o770),
        "f": ("hmsbridge", "hadoop", 0o644),
    }


def _octal(permission: int | str) -> int:
    return permission if isinstance(permission, int) else int(permission, 8)


def test_no_right_is_an_error_with_place_and_advice(place: Location) -> None:
    for call in (
        lambda: place.volume.make_directory("/not-ours"),
        lambda: place.volume.write_new("/volumes-not-ours", [b"x"]),
        lambda: place.volume.rename("/volumes", "/elsewhere"),
        lambda: place.volume.remove_tree("/volumes"),
    ):
        with pytest.raises(
            PermissionError, match=r"user=hmsbridge, access=WRITE.*HADOOP_USER_NAME"
        ):
            call()
