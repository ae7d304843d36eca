"""How many large files are copied at once (hms_bridge.repl.load.large_files)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver, Location
from hms_bridge.repl.load.large_files import LARGE_BYTES, LargeFiles


def _most_at_once(files: LargeFiles, size_bytes: int, target: Location, threads: int) -> int:
    """How many of so many threads were in their blocks together, where all of them meet if they
    may."""
    meeting = threading.Barrier(threads)
    lock, inside, most = threading.Lock(), 0, 0

    def copy() -> None:
        nonlocal inside, most
        with files.turn(size_bytes, target):
            with lock:
                inside += 1
                most = max(most, inside)
            with suppress(threading.BrokenBarrierError):  # those that are not let in do not come
                meeting.wait(timeout=2)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(copy) for _ in range(threads)]:
            done.result()
    return most


def test_of_large_files_on_a_disk_only_some_are_copied_at_once(tmp_path: Path) -> None:
    here = Location(f"file:{tmp_path}", str(tmp_path), LocalVolume())
    assert _most_at_once(LargeFiles(2), LARGE_BYTES, here, 5) == 2


def test_small_files_wait_for_no_turn(tmp_path: Path) -> None:
    here = Location(f"file:{tmp_path}", str(tmp_path), LocalVolume())
    assert _most_at_once(LargeFiles(2), LARGE_BYTES - 1, here, 5) == 5


def test_nor_do_large_ones_elsewhere() -> None:
    place = FsspecResolver()("memory://there/f")
    assert _most_at_once(LargeFiles(2), LARGE_BYTES, place, 5) == 5
