"""HDFS over HTTP: our client against a NameNode's answers as 3.4.1 gives them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from changemanager.archive import ORIGINAL_LOCATION, REMAIN_IN_TRASH
from changemanager.checksum import composite_checksum
from changemanager.filesystem.volume import Placement
from changemanager.filesystem.webhdfs import WebHdfsVolume
from changemanager.location import FsspecResolver
from changemanager.manifest import IntentState
from tests.support.archive_world import ArchiveWorld, context
from tests.support.web_hdfs import NameNode, over_http


@pytest.fixture
def node() -> NameNode:
    return NameNode()


@pytest.fixture
def volume(node: NameNode) -> WebHdfsVolume:
    return WebHdfsVolume(over_http(node))


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


def test_directories_get_exact_permissions_or_the_umasks(
    node: NameNode, volume: WebHdfsVolume
) -> None:
    volume.make_directory("/cm", 0o770)
    volume.make_directory("/cm")
    volume.make_directory("/plain")
    assert (node.nodes["/cm"].permission, node.nodes["/plain"].permission) == ("770", "755")
    assert node.calls.count("MKDIRS") == 2


def test_a_small_file_is_one_create(node: NameNode, volume: WebHdfsVolume) -> None:
    volume.make_directory("/d")
    node.calls.clear()
    with volume.open_output("/d/f") as output:
        output.write(b"ro")
        output.write(b"ws")
    # The directory, which a file is never wider than; then to the name node, to the data node.
    assert node.calls == ["GETFILESTATUS", "CREATE", "CREATE"]
    assert node.nodes["/d/f"].content == b"rows"
    assert node.nodes["/d/f"].permission == "644"


def test_what_failed_while_it_was_written_is_not_there(
    node: NameNode, volume: WebHdfsVolume
) -> None:
    with pytest.raises(ZeroDivisionError), volume.open_output("/f") as output:
        output.write(b"half")
        raise ZeroDivisionError
    assert "/f" not in node.nodes


def test_a_rename_never_replaces_and_never_nests(volume: WebHdfsVolume) -> None:
    volume.write_new("/d/f", [b"x"])
    assert volume.place("/d/f", "/d/g") is Placement.MOVED
    with pytest.raises(FileNotFoundError):
        volume.place("/d/gone", "/d/h")
    volume.write_new("/d/f", [b"y"])
    volume.make_directory("/e")
    for target in ("/d/g", "/e"):
        with pytest.raises(FileExistsError):
            volume.place("/d/f", target)
        with pytest.raises(FileExistsError):
            volume.rename("/d", target)


def test_refusals_are_errors_of_the_file_system(volume: WebHdfsVolume) -> None:
    volume.write_new("/d/f", [b"x"])
    with pytest.raises(OSError, match="not empty"):
        volume.remove_empty_directory("/d")
    for call in (volume.children, volume.remove_file, volume.open_input, volume.remove_tree):
        with pytest.raises(FileNotFoundError):
            call("/nothing")
    with pytest.raises(PermissionError):
        volume.remove_tree("/")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("refuses", "Could not obtain block"),
        ("silent", "a DataNode gives no answer: connection reset"),
        ("short", "1 of 4 bytes came from 0 on"),
    ],
)
def test_what_a_data_node_refuses_is_no_content(
    node: NameNode, volume: WebHdfsVolume, state: str, told: str
) -> None:
    volume.write_new("/f", [b"rows"])
    node.data_state = "ready"
    assert volume.read("/f") == b"rows"
    node.data_state = state
    for read in (volume.read, lambda path: volume.open_input(path).read()):
        with pytest.raises(OSError, match=told) as refused:
            read("/f")
        assert refused.value.filename == "/f"


def test_a_standby_is_passed_over_and_safe_mode_is_told() -> None:
    first, second = NameNode(), NameNode()
    fs = over_http(first, second)
    first.state = "standby"
    fs.makedirs("/d")
    assert "/d" in second.nodes
    second.state = "safe mode"
    with pytest.raises(OSError, match="safe mode.*try again"):
        fs.makedirs("/e")
    second.state = "standby"
    with pytest.raises(OSError, match="no NameNode of this cluster is active"):
        fs.info("/d")


def test_a_victim_moves_into_the_archive_by_renames(tmp_path: Path, node: NameNode) -> None:
    world = ArchiveWorld(tmp_path)
    fs = over_http(node)
    resolve = FsspecResolver(lambda *_: WebHdfsVolume(fs))
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
    assert node.calls.count("RENAME") == 2
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
