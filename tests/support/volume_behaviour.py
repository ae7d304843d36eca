"""What every volume does alike: one suite for the local disk, HDFS in both ways, and S3.

A module that uses it imports these tests and offers a fixture `place`: an empty directory (or
prefix) of the file system in question, as a Location.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import orc

from changemanager.checksum import composite_checksum
from changemanager.filesystem.permissions import Permissions
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import Location, list_tree

ODD_NAME = "p=a%2Fb c#ä[1]{x}?+"


def write(place: Location, content: bytes) -> Location:
    place.volume.make_directory(place.parent.path)
    place.volume.write_new(place.path, [content[:1], content[1:]] if content else [])
    return place


def names(place: Location) -> list[str]:
    return [file.path for file in list_tree(place) if file.kind is FileKind.FILE]


def test_a_file_is_read_as_it_was_written(place: Location) -> None:
    file = write(place.child("d/f"), b"rows")
    status = file.status()
    assert status is not None
    assert (status.name, status.kind, status.size_bytes) == ("f", FileKind.FILE, 4)
    assert status.mtime_ms is None or status.mtime_ms > 1_600_000_000_000
    assert b"".join(file.chunks()) == b"rows"
    assert file.checksum() == composite_checksum(io.BytesIO(b"rows"))


def test_an_empty_file_is_a_file(place: Location) -> None:
    file = write(place.child("d/_finished"), b"")
    assert file.status().size_bytes == 0  # type: ignore[union-attr]
    assert list(file.chunks()) == []


def test_names_are_taken_as_they_are(place: Location) -> None:
    file = write(place.child(f"{ODD_NAME}/{ODD_NAME}"), b"x")
    assert file.status().name == ODD_NAME  # type: ignore[union-attr]
    assert [s.name for s in place.volume.children(place.path)] == [ODD_NAME]
    moved = place.child(f"{ODD_NAME} 2")
    place.volume.rename(file.parent.path, moved.path)
    assert names(place) == [f"{ODD_NAME} 2/{ODD_NAME}"]


def test_what_is_not_there(place: Location) -> None:
    volume, gone = place.volume, place.child("gone")
    assert gone.status() is None
    assert list_tree(gone) == ()
    with pytest.raises(FileNotFoundError):
        volume.open_input(gone.path).read()
    with pytest.raises(FileNotFoundError):
        volume.read(gone.path)
    with pytest.raises(FileNotFoundError):
        volume.rename(gone.path, place.child("new").path)
    with pytest.raises(FileNotFoundError):
        volume.place(gone.path, place.child("new").path)
    assert names(place) == []


def test_a_new_file_never_replaces(place: Location) -> None:
    if not place.volume.capabilities.has_directories:
        pytest.skip("an object store replaces")
    file = write(place.child("d/f"), b"one")
    with pytest.raises(FileExistsError):
        file.volume.write_new(file.path, [b"two"])
    assert b"".join(file.chunks()) == b"one"


def test_a_rename_moves_everything_below(place: Location) -> None:
    write(place.child("a/x/f"), b"f")
    write(place.child("a/g"), b"g")
    place.volume.rename(place.child("a").path, place.child("b").path)
    assert sorted(names(place)) == ["b/g", "b/x/f"]
    assert b"".join(place.child("b/x/f").chunks()) == b"f"


def test_a_rename_never_replaces_and_never_nests(place: Location) -> None:
    write(place.child("a/f"), b"a")
    write(place.child("b/f"), b"b")
    with pytest.raises(FileExistsError):
        place.volume.rename(place.child("a").path, place.child("b").path)
    with pytest.raises(FileExistsError):
        place.volume.rename(place.child("a/f").path, place.child("b/f").path)
    with pytest.raises(FileExistsError):
        place.volume.place(place.child("a/f").path, place.child("b/f").path)
    if place.volume.capabilities.has_directories:
        place.volume.make_directory(place.child("empty").path)
        with pytest.raises(FileExistsError):
            place.volume.rename(place.child("a").path, place.child("empty").path)
    assert sorted(names(place)) == ["a/f", "b/f"]
    assert b"".join(place.child("b/f").chunks()) == b"b"


def test_a_file_gets_another_name(place: Location) -> None:
    file, target = write(place.child("d/f"), b"rows"), place.child("d/g")
    placement = place.volume.place(file.path, target.path)
    assert b"".join(target.chunks()) == b"rows"
    assert (file.status() is None) == (placement is Placement.MOVED)


def test_only_empty_directories_are_removed(place: Location) -> None:
    if not place.volume.capabilities.has_directories:
        pytest.skip("an object store has no directories")
    write(place.child("d/f"), b"x")
    with pytest.raises(OSError, match=r"(?i)not empty"):
        place.volume.remove_empty_directory(place.child("d").path)
    place.volume.remove_file(place.child("d/f").path)
    place.volume.remove_empty_directory(place.child("d").path)
    assert place.child("d").status() is None


def test_times_and_attributes(place: Location) -> None:
    file, volume = write(place.child("d/f"), b"x"), place.volume
    if volume.capabilities.can_set_mtime:
        volume.set_mtime(file.path, 1_700_000_000_123)
        assert file.status().mtime_ms == 1_700_000_000_123  # type: ignore[union-attr]
    if volume.keeps_attributes(place.path):
        assert volume.attribute(file.path, "user.a") is None
        for value in (b"\0", b"one", b"two"):
            volume.set_attribute(file.path, "user.a", value)
            assert volume.attribute(file.path, "user.a") == value


def test_readers_seek_and_end_as_files_do(place: Location) -> None:
    content = bytes(range(256)) * 5000
    file = write(place.child("d/f"), content)
    with file.volume.open_input(file.path) as stream:
        assert stream.seek(-5, io.SEEK_END) == len(content) - 5
        assert stream.read(100) == content[-5:]
        assert stream.read(1) == b""
        assert stream.seek(1000) == 1000
        assert stream.read(10) == content[1000:1010]
        assert stream.tell() == 1010
        assert stream.seek(10, io.SEEK_CUR) == 1020
        assert stream.read(3) == content[1020:1023]
        stream.seek(0)
        assert stream.read() == content
    assert file.volume.read(file.path) == content
    assert file.volume.read(file.path, 12) == content[:12]
    assert file.volume.read(file.path, 0) == b""
    assert file.volume.read(file.path, len(content) + 1) == content
    assert file.volume.read(write(place.child("d/empty"), b"").path) == b""


def test_a_file_is_written_piece_by_piece(place: Location) -> None:
    file = place.child("w/x/f")
    file.volume.make_working_directory(file.parent.path)
    file.volume.make_working_directory(file.parent.path)
    for pieces in ([b"a longer one", b""], [b"on", b"e"], []):
        with file.volume.open_output(file.path) as output:
            for piece in pieces:
                output.write(piece)
        assert file.volume.read(file.path) == b"".join(pieces)


def test_a_copy_replaces(place: Location) -> None:
    if place.volume.capabilities.has_atomic_rename:
        pytest.skip("files are renamed")
    file, target = write(place.child("d/f"), b"rows"), write(place.child("e/f"), b"more rows")
    place.volume.copy_file(file.path, target.path)
    assert [place.volume.read(one.path) for one in (file, target)] == [b"rows", b"rows"]


def test_a_tree_is_removed_whole_and_no_other(place: Location) -> None:
    for path in (f"{ODD_NAME}/x/f", f"{ODD_NAME}/g", "d[1]/f", "d1/f", "d/f", "dd/f"):
        write(place.child(path), b"x")
    volume = place.volume
    for name in (ODD_NAME, "d[1]", "d", "dd/f"):
        volume.remove_tree(place.child(name).path)
    assert names(place) == ["d1/f"]
    for gone in ("d", "d[1]", "dd/f"):
        with pytest.raises(FileNotFoundError):
            volume.remove_tree(place.child(gone).path)


def test_a_prefix_is_listed_at_once(place: Location) -> None:
    if place.volume.capabilities.has_directories:
        pytest.skip("directories are listed one by one")
    for path in ("t/f", f"t/{ODD_NAME}/x/g", "tt/h"):
        write(place.child(path), b"12345")
    found = place.volume.descendants(place.child("t").path)
    sizes = {status.name: status.size_bytes for status in found if status.kind is FileKind.FILE}
    assert sizes == {"f": 5, f"{ODD_NAME}/x/g": 5}
    directories = {status.name for status in found if status.kind is FileKind.DIRECTORY}
    assert directories == {ODD_NAME, f"{ODD_NAME}/x"}
    assert place.volume.descendants(place.child("gone").path) == ()
    with pytest.raises(NotADirectoryError):
        place.volume.descendants(place.child("t/f").path)


def test_pyarrow_writes_and_reads_orc(place: Location) -> None:
    file = place.child("d/bucket_00000")
    file.volume.make_working_directory(file.parent.path)
    table = pa.table({"a": list(range(100_000)), "b": [str(n) for n in range(100_000)]})
    with file.volume.open_output(file.path) as sink:
        orc.write_table(table, sink, stripe_size=1 << 16)
    with file.volume.open_input(file.path) as source:
        opened = orc.ORCFile(source)
        assert opened.nstripes > 1
        assert opened.read().equals(table)


def mode_of(place: Location) -> int:
    permissions = place.volume.permissions(place.path)
    assert permissions is not None
    return permissions.mode


def directory_of_mode(place: Location, mode: int) -> Location:
    if not place.volume.capabilities.has_directories:
        assert place.volume.permissions(place.path) is None
        pytest.skip("an object store has no permissions")
    place.volume.make_directory(place.path, mode)
    assert mode_of(place) == mode
    return place


@pytest.mark.parametrize("root", [0o777, 0o750, 0o700])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
def test_a_copy_is_never_wider_than_its_source_and_its_directory(
    place: Location, root: int, mode: int
) -> None:
    directory = directory_of_mode(place.child("d"), root)
    own = directory.volume.permissions(directory.path)
    assert own is not None
    for group, kept in ((own.group, mode), ("nobody-has-it", mode & 0o700 | of_both(mode))):
        like = Permissions(owner=own.owner, group=group, mode=mode)
        file, piecewise = directory.child(f"f-{group}"), directory.child(f"p-{group}")
        file.volume.write_new(file.path, [b"rows"], like)
        with piecewise.volume.open_output(piecewise.path, like) as output:
            output.write(b"rows")
        assert mode_of(file) == mode_of(piecewise) == kept & (root | 0o700)
        found = file.volume.permissions(file.path)
        assert found is not None
        assert (found.owner, found.group) == (own.owner, own.group)


def test_a_file_gets_another_mode(place: Location) -> None:
    directory = directory_of_mode(place.child("d"), 0o777)
    file = directory.child("f")
    file.volume.write_new(file.path, [b"rows"])
    file.volume.set_mode(file.path, 0o640)
    assert mode_of(file) == 0o640
    with pytest.raises(FileNotFoundError):
        file.volume.set_mode(f"{file.path}-gone", 0o640)


def of_both(mode: int) -> int:
    """What both the group and all others may, for each of them."""
    shared = mode >> 3 & mode & 0o7
    return shared << 3 | shared


def test_what_is_made_is_never_wider_than_its_directory(place: Location) -> None:
    directory = directory_of_mode(place.child("d"), 0o750)
    below = directory.child("x/y")
    directory.volume.make_directory(below.path)
    directory.volume.make_working_directory(directory.child("w/v").path)
    file, piecewise = below.child("f"), below.child("p")
    file.volume.write_new(file.path, [b"rows"])
    with piecewise.volume.open_output(piecewise.path) as output:
        output.write(b"rows")
    for name in ("x", "x/y", "w", "w/v"):
        assert mode_of(directory.child(name)) == 0o750
    assert mode_of(file) == mode_of(piecewise) == 0o640


def test_a_directory_gets_no_more_than_its_limit(place: Location) -> None:
    directory = directory_of_mode(place.child("d"), 0o755)
    directory.volume.make_directory(directory.child("x").path, limit=0o770)
    assert mode_of(directory.child("x")) == 0o750


def batches(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * (1 << 20)


def test_a_large_file_comes_back_whole(place: Location) -> None:
    file = place.child("d/large")
    file.volume.make_directory(file.parent.path)
    file.volume.write_new(file.path, batches(20))
    assert file.status().size_bytes == 20 << 20  # type: ignore[union-attr]
    assert file.checksum() == composite_checksum(io.BytesIO(b"x" * (20 << 20)))
