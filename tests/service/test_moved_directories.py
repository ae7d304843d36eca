"""A directory that is moved dies at any step: all is at the old place again, and nobody else's."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from changemanager.filesystem.volume import FileKind
from changemanager.location import FsspecResolver, Location, Resolver, list_tree
from hms_bridge.service import directories
from hms_bridge.service.directories import Directories
from tests.support.faults import CrashError, FaultPlan, FaultyVolume, faulty

FILES = {"delta_1_1/bucket_00000": b"one", "delta_2_2/bucket_00000": b"two", "x": b"three"}
FOREIGN = {"delta_1_1/bucket_00000": b"1st", "delta_7_7/bucket_00000": b"other"}
LATE = {"delta_9_9/bucket_00000": b"late"}
TOKEN = "token"


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a file system with renames, and of one where directories are parts of names."""
    return f"memory://{uuid.uuid4().hex}" if request.param == "memory" else f"file:{tmp_path}"


def put(place: Location, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        file = place.child(path)
        file.volume.make_directory(file.parent.path)
        file.volume.write_new(file.path, [content])


def content_of(place: Location) -> dict[str, bytes]:
    return {
        found.path: place.volume.read(place.child(found.path).path)
        for found in list_tree(place)
        if found.kind is FileKind.FILE
    }


class DyingVolume(FaultyVolume):
    """Of any kind: files are written whole, and copied."""

    def write_new(self, path: str, chunks: Iterable[bytes], like: object = None) -> None:
        self._do("write_new", path, chunks, like)

    def copy_file(self, source: str, target: str) -> None:
        self._do("copy_file", source, target)


def dying_at(step: int, resolve: Resolver) -> tuple[FaultPlan, Directories]:
    faults = FaultPlan()
    faults.crash_at = step
    return faults, Directories(faulty(resolve, faults, kind=DyingVolume))


def dying_moves(root: str) -> Iterator[tuple[str, Resolver, Location, Location]]:
    """A move that dies at each of its steps in turn, and at last one that does not."""
    plain = FsspecResolver()
    for step in itertools.count(1):
        old, new = f"{root}/{step}/p=a", f"{root}/{step}/p=b"
        put(plain(old), FILES)
        faults, mover = dying_at(step, plain)
        try:
            mover.move(old, new, TOKEN)
        except CrashError:
            yield faults.labels[-1], plain, plain(old), plain(new)
        else:
            yield "", plain, plain(old), plain(new)
            return


def test_it_is_undone_from_any_step(root: str) -> None:
    for label, resolve, old, new in dying_moves(root):
        Directories(resolve).move_back(old.uri, new.uri, TOKEN)
        assert content_of(old) == FILES, label
        assert new.status() is None, label


def test_it_is_undone_though_the_undoing_dies_too(root: str) -> None:
    """And though somebody has written to the old place since."""
    for label, resolve, old, new in dying_moves(root):
        put(old, LATE)
        for step in itertools.count(1):
            try:
                dying_at(step, resolve)[1].move_back(old.uri, new.uri, TOKEN)
            except CrashError:
                continue
            break
        assert content_of(old) == FILES | LATE, label
        assert content_of(new) == {}, label


def test_what_another_put_at_the_new_place_stays_there(root: str) -> None:
    """I12: it came before the move, which has not happened then."""
    resolve = FsspecResolver()
    old, new = resolve(f"{root}/p=a"), resolve(f"{root}/p=b")
    put(old, FILES)
    put(new, FOREIGN)
    mover = Directories(resolve)
    with pytest.raises(FileExistsError):
        mover.move(old.uri, new.uri, TOKEN)
    mover.move_back(old.uri, new.uri, TOKEN)
    assert (content_of(old), content_of(new)) == (FILES, FOREIGN)


def test_what_another_puts_there_while_files_are_copied_is_not_taken_for_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """I1: it has the name and the size of one."""
    resolve = FsspecResolver()
    root = f"memory://{uuid.uuid4().hex}"
    old, new = resolve(f"{root}/p=a"), resolve(f"{root}/p=b")
    put(old, FILES)
    look = directories._files

    def late(place: Location) -> dict[str, int]:
        found = look(place)
        if place == old and not content_of(new):
            put(new, {"x": b"THREE"})
        return found

    monkeypatch.setattr(directories, "_files", late)
    with pytest.raises(FileExistsError):
        Directories(resolve).move(old.uri, new.uri, TOKEN)
    Directories(resolve).move_back(old.uri, new.uri, TOKEN)
    assert (content_of(old), content_of(new)) == (FILES, {"x": b"THREE"})


def test_a_move_without_a_mark_is_left_to_a_person(root: str) -> None:
    """I1: a process of an older version died in it; nothing says whose the files are."""
    resolve = FsspecResolver()
    old, new = resolve(f"{root}/p=a"), resolve(f"{root}/p=b")
    put(new, FILES)
    with pytest.raises(OSError, match="if it was, move it back"):
        Directories(resolve).move_back(old.uri, new.uri, TOKEN)
    assert content_of(new) == FILES


def test_what_another_put_there_after_a_crash_stays_there(root: str) -> None:
    """I12: as long as nothing had come there, or not all of it where files are copied."""
    count = 0
    for label, resolve, old, new in dying_moves(root):
        if new.child(f".hms_bridge_move_{TOKEN}").status() is not None:
            continue
        here = {
            path: content for path, content in FOREIGN.items() if new.child(path).status() is None
        }
        put(new, here)
        Directories(resolve).move_back(old.uri, new.uri, TOKEN)
        assert content_of(old) == FILES, label
        assert content_of(new) == here, label
        count += 1
    assert count > 1


def test_a_file_of_one_name_in_both_is_left_to_a_person(root: str) -> None:
    resolve = FsspecResolver()
    old, new = resolve(f"{root}/p=a"), resolve(f"{root}/p=b")
    put(old, FILES)
    mover = Directories(resolve)
    mover.move(old.uri, new.uri, TOKEN)
    put(old, {"x": b"written since"})
    with pytest.raises(OSError, match="are there, with files of the same names"):
        mover.move_back(old.uri, new.uri, TOKEN)
    assert content_of(old)["x"] == b"written since"
    assert content_of(new)["x"] == FILES["x"]


def test_nothing_is_left_of_a_move_that_ends(root: str) -> None:
    resolve = FsspecResolver()
    old, new = resolve(f"{root}/p=a"), resolve(f"{root}/p=b")
    put(old, FILES)
    mover = Directories(resolve)
    mover.move(old.uri, new.uri, TOKEN)
    mover.end_move(new.uri, TOKEN)
    assert (content_of(old), content_of(new)) == ({}, FILES)
