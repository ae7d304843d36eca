"""HDFS over HTTP, against a stand-in that answers as a NameNode 3.4.1 does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from changemanager.archive import ORIGINAL_LOCATION, REMAIN_IN_TRASH
from changemanager.checksum import composite_checksum
from changemanager.filesystem.volume import Placement
from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.location import FsspecResolver, volume_of
from changemanager.manifest import IntentState
from tests.support.archive_world import ArchiveWorld, context


class Answer:
    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def json(self) -> dict[str, Any]:
        return self._body


class StandInWebHdfs(MemoryFileSystem):
    """fsspec's WebHDFS as far as the volume uses it; refusals are RuntimeErrors, as there."""

    protocol = ("webhdfs", "webHDFS")
    cachable = False

    def __init__(self) -> None:
        super().__init__(global_store=False)
        self.times: dict[str, int] = {}
        self.attributes: dict[str, dict[str, str]] = {}
        self.calls: list[str] = []
        self.permissions: dict[str, str] = {}

    def info(self, path: str, **given: Any) -> dict[str, Any]:
        found = dict(super().info(path, **given))
        found["modificationTime"] = self.times.get(found["name"], 1)
        return found

    def ls(self, path: str, detail: bool = True, **given: Any) -> list[Any]:
        return [self.info(one["name"]) for one in super().ls(path, detail=True)]

    def ukey(self, path: str) -> dict[str, Any]:
        checksum = composite_checksum(io.BytesIO(self.cat_file(path)))
        return {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": checksum, "length": 28}

    def _call(self, op: str, method: str = "get", path: str = "", **args: str) -> Answer:
        self.calls.append(op)
        if op == "MKDIRS":
            self.makedirs(path)
            self.permissions[path] = args["permission"]
        if op == "RENAME":
            target = args["destination"]
            if not self.exists(path) or self.exists(target):
                return Answer({"boolean": False})
            self.pipe_file(target, self.cat_file(path))
            self.attributes[target] = self.attributes.pop(path, {})
            self.times[target] = self.times.pop(path, 1)
            self.rm_file(path)
        if op == "DELETE":
            if self.isdir(path) and super().ls(path):
                raise RuntimeError(f"`{path} is non empty': Directory is not empty")
            if self.isdir(path):
                self.pseudo_dirs.remove(path)
            else:
                self.rm_file(path)
        if op == "SETTIMES":
            self.times[path] = int(args["modificationtime"])
        if op == "GETXATTRS":
            held = self.attributes.get(path, {})
            return Answer({"XAttrs": [{"name": n, "value": v} for n, v in held.items()]})
        if op == "SETXATTR":
            held = self.attributes.setdefault(path, {})
            if (args["xattr.name"] in held) is (args["flag"] == "CREATE"):
                raise RuntimeError("The attribute exists, or does not")
            held[args["xattr.name"]] = args["xattr.value"]
        return Answer({"boolean": True})


@pytest.fixture
def fs() -> StandInWebHdfs:
    return StandInWebHdfs()


@pytest.fixture
def volume(fs: StandInWebHdfs) -> WebHdfsVolume:
    found = volume_of(fs)
    assert isinstance(found, WebHdfsVolume)
    return found


def test_files_have_times_attributes_and_checksums(volume: WebHdfsVolume) -> None:
    volume.make_directory("/d")
    volume.write_new("/d/f", [b"ro", b"ws"])
    volume.set_mtime("/d/f", 1_700_000_000_123)
    status = volume.status("/d/f")
    assert status is not None
    assert (status.size_bytes, status.mtime_ms) == (4, 1_700_000_000_123)
    assert volume.native_checksum("/d/f") == composite_checksum(io.BytesIO(b"rows"))
    assert volume.attribute("/d/f", "user.a") is None
    for value in (b"\0", b"one", b"two"):
        volume.set_attribute("/d/f", "user.a", value)
        assert volume.attribute("/d/f", "user.a") == value
    assert volume.keeps_attributes("/d")


def test_the_cmroot_is_for_owner_and_group(fs: StandInWebHdfs, volume: WebHdfsVolume) -> None:
    volume.make_directory("/cm")
    volume.make_directory("/cm")
    assert fs.permissions == {"/cm": "770"}
    assert fs.calls == ["MKDIRS"]


def test_a_rename_that_answers_false_is_an_error(volume: WebHdfsVolume) -> None:
    volume.write_new("/d/f", [b"x"])
    assert volume.place("/d/f", "/d/g") is Placement.MOVED
    with pytest.raises(OSError, match="answered false"):
        volume.place("/d/gone", "/d/h")
    volume.write_new("/d/f", [b"y"])
    with pytest.raises(FileExistsError):
        volume.place("/d/f", "/d/g")


def test_refusals_are_errors_of_the_file_system(volume: WebHdfsVolume) -> None:
    volume.write_new("/d/f", [b"x"])
    with pytest.raises(OSError, match="not empty"):
        volume.remove_empty_directory("/d")
    with pytest.raises(FileNotFoundError):
        volume.children("/nothing")


def test_a_victim_moves_into_the_archive_by_renames(tmp_path: Path, fs: StandInWebHdfs) -> None:
    world = ArchiveWorld(tmp_path)
    resolve = FsspecResolver(lambda *_: fs)
    config = type(world.config)(cmroot="hdfs://nn:8020/cm", retain_ms=1000)
    victim = resolve("hdfs://nn:8020/wh/t/delta_1_1")
    for path in ("bucket_00000", "sub/bucket_00001"):
        victim.volume.write_new(victim.child(path).path, [path.encode()])

    archive = type(world.archive)(config, resolve, world.store, world.clock, world.new_token)
    protocol = type(world.protocol)(
        resolve=resolve, intents=world.store, archive=archive,
        clock=world.clock, new_id=world.new_token,
    )  # fmt: skip
    report = protocol.remove(
        victim.uri, root="hdfs://nn:8020/wh", context=context(), is_archived=True, is_purge=False
    )
    assert report.archived_count == 2
    assert fs.calls.count("RENAME") == 2
    assert victim.status() is None
    (name,) = [
        one.name
        for one in archive.cmroot.volume.children("/cm")
        if one.name.startswith("bucket_00001")
    ]
    place = archive.cmroot.child(name)
    origin = b"hdfs://nn:8020/wh/t/delta_1_1/sub/bucket_00001"
    assert place.volume.attribute(place.path, ORIGINAL_LOCATION) == origin
    assert place.volume.attribute(place.path, REMAIN_IN_TRASH) == b"\0"
    assert place.status().mtime_ms == world.clock.now_ms()  # type: ignore[union-attr]
    assert world.store.intents([IntentState.DELETED])
