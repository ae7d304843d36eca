"""Paths and URIs, and what file systems can do."""

from __future__ import annotations

import inspect
import io
import re
import sys
from collections.abc import Iterator
from functools import partial

import fsspec
import pytest

from changemanager.errors import LocationError
from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.opening import one_name_of, open_volume, volume_of
from changemanager.filesystem.plain import OBJECT_STORE, PlainVolume
from changemanager.filesystem.s3 import s3_options
from changemanager.filesystem.volume import FileKind, Volume
from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.hadoop import HadoopConfig
from changemanager.location import (
    FsspecResolver,
    is_within,
    list_tree,
    parse_uri,
    path_below,
    spellings,
)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("/wh/t", "/wh/t"),
        ("//wh///t/", "/wh/t"),
        ("file:/wh/t", "file:/wh/t"),
        ("file:///wh/t", "file:/wh/t"),
        ("FILE://localhost/wh", "file:/wh"),
        ("hdfs://nn:8020/wh/p=a%2Fb c", "hdfs://nn:8020/wh/p=a%2Fb c"),
        ("s3a://bucket/wh", "s3a://bucket/wh"),
        ("s3://bucket", "s3://bucket/"),
        ("memory://a/b", "memory://a/b"),
        ("memory:/a/b", "memory://a/b"),
        ("/with:colon/x", "/with:colon/x"),
    ],
)
def test_one_form_for_one_place(text: str, uri: str) -> None:
    assert parse_uri(text).uri == uri
    assert parse_uri(uri).uri == uri


@pytest.mark.parametrize(
    "text",
    ["", "wh/t", "./t", "/wh/../etc", "/wh/./t", "file:t", "file://host/x", "/a\nb", "hdfs:"],
)
def test_what_is_no_absolute_path(text: str) -> None:
    with pytest.raises(LocationError):
        parse_uri(text)


def test_levels_are_compared_not_letters() -> None:
    assert is_within("/wh/t", "/wh")
    assert is_within("/wh", "/wh")
    assert not is_within("/wh2/t", "/wh")
    assert not is_within("/", "/wh")
    assert path_below("file:/wh/t/p=1", "file:/wh/t/") == "p=1"
    assert path_below("file:/wh/t", "file:/wh/t") == ""
    assert path_below("s3://bucket/t", "s3://bucket/") == "t"
    assert path_below("file:/wh/t2/p=1", "file:/wh/t") is None
    assert path_below("hdfs://two/wh/t", "hdfs://one/wh") is None


def test_a_place_is_below_another_one_of_its_own_file_system_only() -> None:
    table = parse_uri("file:///wh/t")
    assert table.is_below(parse_uri("/wh"))
    assert not parse_uri("/wh").is_below(table)
    assert not parse_uri("hdfs://one/wh/t").is_below(parse_uri("hdfs://two/wh"))
    assert not parse_uri("hdfs://one/wh/t").is_below(parse_uri("/wh"))


def test_local_paths_are_one_volume(tmp_path) -> None:
    resolve = FsspecResolver()
    one, two = resolve(str(tmp_path)), resolve(f"file://{tmp_path}/x")
    assert one.uri == f"file:{tmp_path}"
    assert two.path == f"{tmp_path}/x"
    assert one.volume is two.volume
    assert isinstance(one.volume, LocalVolume)
    assert two.parent == one
    assert one.child("x") == two
    assert one.child("") is one


def test_buckets_are_paths_of_one_volume() -> None:
    opened: list[tuple[str, str]] = []

    def factory(scheme: str, authority: str) -> Volume:
        opened.append((scheme, authority))
        return volume_of(fsspec.filesystem("memory"))

    resolve = FsspecResolver(factory)
    one, two = resolve("s3a://one/wh/t"), resolve("s3://two/x")
    assert (one.path, two.path) == ("one/wh/t", "two/x")
    assert one.volume is two.volume
    assert opened == [("s3", "")]
    assert one.parent.uri == "s3a://one/wh"
    assert one.parent.parent.path == "one"
    assert resolve("s3://two").child("y").path == "two/y"


def test_bare_paths_belong_to_the_default_file_system() -> None:
    resolve = FsspecResolver(lambda *_: open_volume("memory", ""), default="hdfs://nn:8020")
    assert resolve("/wh/t").uri == "hdfs://nn:8020/wh/t"
    assert resolve("hdfs://nn:8020/wh").volume is resolve("/other").volume
    assert resolve("hdfs://nn:8020/").parent.path == "/"


def test_an_unknown_scheme_says_what_to_do() -> None:
    with pytest.raises(LocationError, match="no file system for nope"):
        FsspecResolver()("nope://x/y")


def test_hdfs_goes_over_http_where_an_address_is_given() -> None:
    hadoop = HadoopConfig(web_addresses={"nn:8020": "web.example:9870"}, is_native_allowed=False)
    volume = open_volume("hdfs", "nn:8020", hadoop)
    assert isinstance(volume, WebHdfsVolume)
    assert volume.fs.addresses == ("web.example:9870",)


def test_all_names_of_a_name_node_are_one_file_system() -> None:
    hadoop = HadoopConfig(
        values={
            "dfs.nameservices": "dr",
            "dfs.ha.namenodes.dr": "a",
            "dfs.namenode.rpc-address.dr.a": "nn:8020",
        }
    )
    opened: list[str] = []

    def factory(_: str, authority: str) -> Volume:
        opened.append(authority)
        return volume_of(fsspec.filesystem("memory", skip_instance_cache=True))

    resolve = FsspecResolver(factory, "file:/", partial(one_name_of, hadoop=hadoop))
    assert resolve("hdfs://nn/a").volume is resolve("hdfs://NN:8020/b").volume
    assert resolve("hdfs://nn/a").uri == "hdfs://nn/a"
    assert resolve("hdfs://nn:8021/a").volume is not resolve("hdfs://nn/a").volume
    assert resolve("hdfs://dr/a").volume is resolve("hdfs://dr/b").volume
    assert opened == ["nn:8020", "nn:8021", "dr"]


def test_memory_is_an_object_store() -> None:
    place = FsspecResolver()("memory://location-test/a")
    assert isinstance(place.volume, PlainVolume)
    assert not place.volume.capabilities.has_atomic_rename
    assert place.status() is None
    place.volume.write_new(place.child("f").path, [b"ab", b"c"])
    status = place.child("f").status()
    assert status is not None
    assert (status.kind, status.size_bytes, status.name) == (FileKind.FILE, 3, "f")
    assert [file.path for file in list_tree(place)] == ["f"]
    with pytest.raises(FileExistsError):
        place.volume.place(place.child("f").path, place.child("f").path)
    place.volume.remove_file(place.child("f").path)


def test_a_tree_lists_links_without_following_them(tmp_path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"12")
    (tmp_path / "a" / "l").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / ".h").write_bytes(b"")
    found = {file.path: file for file in list_tree(FsspecResolver()(str(tmp_path / "a")))}
    assert list(found) == [".h", "b", "b/f", "l"]
    assert found["l"].kind is FileKind.LINK
    assert found["b/f"].size_bytes == 2
    assert found[".h"].is_hidden
    assert not found["b/f"].is_hidden
    (only,) = list_tree(FsspecResolver()(str(tmp_path / "a" / "b" / "f")))
    assert (only.path, only.kind, only.is_hidden) == ("", FileKind.FILE, False)
    assert list_tree(FsspecResolver()(str(tmp_path / "nothing"))) == ()


def test_a_tree_is_as_deep_as_a_path_is_long(tmp_path) -> None:
    """A client names such a location below the table of another, whose drop would fail for ever."""
    levels, limit = 400, sys.getrecursionlimit()
    tmp_path.joinpath(*["d"] * levels).mkdir(parents=True)
    sys.setrecursionlimit(len(inspect.stack()) + levels // 2)  # in place of thousands of levels
    try:
        found = [file.path for file in list_tree(FsspecResolver()(str(tmp_path)))]
    finally:
        sys.setrecursionlimit(limit)
    assert found == ["/".join(["d"] * count) for count in range(1, levels + 1)]


def test_the_local_volume_sets_times_attributes_and_never_replaces(tmp_path) -> None:
    volume = FsspecResolver()(str(tmp_path)).volume
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    volume.write_new(one, [b"x"])
    with pytest.raises(FileExistsError):
        volume.write_new(one, [b"y"])
    volume.set_mtime(one, 1_700_000_000_123)
    status = volume.status(one)
    assert status is not None
    assert status.mtime_ms == 1_700_000_000_123
    volume.write_new(two, [b"y"])
    with pytest.raises(FileExistsError):
        volume.place(one, two)
    volume.sync_file(two)
    volume.sync_directory(str(tmp_path))
    if volume.keeps_attributes(str(tmp_path)):
        assert volume.attribute(one, "user.original-loc") is None
        volume.set_attribute(one, "user.original-loc", b"\0x")
        assert volume.attribute(one, "user.original-loc") == b"\0x"
    volume.make_directory(str(tmp_path / "d" / "e"), 0o770)
    assert (tmp_path / "d" / "e").stat().st_mode & 0o777 == 0o770
    with pytest.raises(OSError):
        volume.remove_empty_directory(str(tmp_path / "d"))


def test_kerberos_is_never_spoken_to_over_http() -> None:
    hadoop = HadoopConfig(
        values={"hadoop.security.authentication": "kerberos"},
        web_addresses={"nn:8020": "web.example:9870"},
        is_native_allowed=False,
    )
    with pytest.raises(LocationError, match="asks for Kerberos.*native client"):
        open_volume("hdfs", "nn:8020", hadoop)


def test_settings_of_s3a_are_taken() -> None:
    hadoop = HadoopConfig(
        values={
            "fs.s3a.endpoint": "store.example:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "s",
            "fs.s3a.endpoint.region": "eu-central-1",
            "fs.s3a.path.style.access": "true",
        }
    )
    options = dict(s3_options(hadoop))
    config = options.pop("config_kwargs")
    assert options == {
        "key": "a",
        "secret": "s",
        "endpoint_url": "http://store.example:9000",
        "client_kwargs": {"region_name": "eu-central-1"},
    }
    assert config["s3"] == {"addressing_style": "path"}
    assert s3_options(HadoopConfig(values={"fs.s3a.endpoint": "h"}))["endpoint_url"] == "https://h"
    assert "key" not in s3_options(HadoopConfig())


def test_settings_of_one_bucket_are_refused_by_name() -> None:
    name = "fs.s3a.bucket.logs.endpoint"
    with pytest.raises(LocationError, match=re.escape(name)):
        s3_options(HadoopConfig(values={name: "h"}))


def test_a_file_that_fails_in_the_middle_is_not_there() -> None:
    class Stream(io.BytesIO):
        discarded = False

        def discard(self) -> None:
            Stream.discarded = True

    class Store:
        def open(self, path: str, mode: str) -> Stream:
            return Stream()

    def chunks() -> Iterator[bytes]:
        yield b"x"
        raise OSError("the source went away")

    with pytest.raises(OSError, match="went away"):
        PlainVolume(Store(), OBJECT_STORE).write_new("b/f", chunks())
    assert Stream.discarded


@pytest.mark.parametrize("scheme", ["ftp", "viewfs", "http", "no-such"])
def test_a_scheme_that_is_not_served_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(LocationError, match=f"no file system for {scheme}://host"):
        FsspecResolver()(f"{scheme}://host/path")


@pytest.mark.parametrize("uri", ["s3a:///bucket/path", "s3:/bucket/path"])
def test_a_place_in_no_bucket_is_refused(uri: str) -> None:
    """Else its first level would be taken for one, under another name than the bucket's own."""
    with pytest.raises(LocationError, match="names no bucket"):
        FsspecResolver()(uri)


@pytest.mark.parametrize(
    ("text", "all_texts"),
    [
        ("s3a://b/x", ["s3://b/x", "s3a://b/x", "s3n://b/x"]),
        ("hdfs://nn:8020/x", ["/x", "hdfs://nn/x", "hdfs://nn:8020/x"]),
        ("hdfs://nn:9000/x", ["/x", "hdfs://nn:9000/x"]),
        ("file:/x", ["/x", "file:///x", "file:/x"]),
        ("no place", ["no place"]),
    ],
)
def test_spellings_of_one_place(text: str, all_texts: list[str]) -> None:
    assert sorted(spellings(text)) == all_texts
    assert spellings(text)[0] == text
