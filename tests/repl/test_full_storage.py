"""A target that is full: which place, what is free, what the load needs yet, and what to type."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.filesystem.space import local_space
from changemanager.location import FsspecResolver
from hms_bridge.errors import ReplError
from hms_bridge.repl.load import file_copy
from hms_bridge.repl.load.full_storage import StorageFullError, full_text
from hms_bridge.repl.load.plan import LoadKind
from tests.support.repl_world import ReplWorld

SMALL_BYTES = 64 << 10


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    """A dump of two tables waits."""
    for name in ("a", "b"):
        empty_world.create_table(name)
        empty_world.insert(name, (1, name))
    empty_world.dump()
    return empty_world


def sizes(world: ReplWorld) -> dict[str, int]:
    return {
        name: sum(path.stat().st_size for path in world.path(name).rglob("bucket_*"))
        for name in ("a", "b")
    }


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "there is no space left in"),
        (errno.EDQUOT, "its owner's quota is used up in"),
    ],
)
def test_what_is_full_is_named_with_what_is_lacking(
    world: ReplWorld, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    copy, a_is_there = file_copy.copy_verified, threading.Event()

    def copy_or_fill(source, target, *more):
        if "/b/" in target.uri:
            assert a_is_there.wait(60), "what is lacking depends on it"
            raise OSError(number, os.strerror(number))
        copy(source, target, *more)
        a_is_there.set()

    with monkeypatch.context() as patch:
        patch.setattr(file_copy, "copy_verified", copy_or_fill)
        with pytest.raises(ReplError) as caught:
            world.load()
    text, space = str(caught.value), local_space(str(world.repl_root))
    assert space is not None
    assert "/b/delta_0000001_0000001_0000/bucket_00000_0 cannot be written" in text
    assert f"{why} {space.device} at {space.mount} (" in text
    assert f"of {space.size_bytes:,} bytes are free" in text
    assert f"this load needs {sizes(world)['b']:,} bytes more" in text
    assert "'repl load'), which goes on from where it stands" in text
    assert isinstance(caught.value.__cause__, OSError), "a cycle tries again"
    assert world.load().kind is LoadKind.BOOTSTRAP
    world.assert_same()


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EDQUOT, "as a quota there is used up (S3: takes no more; raise it)"),
        (errno.ENOSPC, "as its file system is full (S3: takes no more; raise it)"),
    ],
)
def test_of_another_store_its_own_words_are_told(number: int, why: str) -> None:
    place = FsspecResolver()("memory:///t/f")
    error = StorageFullError(OSError(number, "S3: takes no more; raise it"), place)
    assert full_text(error, 10) == (
        f"{place.uri} cannot be written, {why}; this load needs 10 bytes more"
    )


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    place = tmp_path / "small disk"
    place.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(place))
    try:
        subprocess.run(("mount", *options), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(("umount", str(place)), check=True)


def test_the_file_system_of_a_place_is_the_one_that_it_will_be_in(small: Path) -> None:
    space = local_space(str(small / "not" / "there" / "yet"))
    assert space is not None
    assert (space.mount, space.device) == (str(small), "tmpfs (tmpfs)")
    assert (space.size_bytes, space.free_bytes) == (SMALL_BYTES, SMALL_BYTES)
    (small / "file").write_bytes(b"x" * SMALL_BYTES)
    full = local_space(str(small / "file"))
    assert full is not None
    assert full.free_bytes == 0
