"""Small files of a dump or load are written side by side, once each, markers last."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import Location
from changemanager.transfer import PART_PREFIX
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.support.passing import Passing
from tests.support.repl_world import ReplWorld

TOGETHER = 6
"""So many writers must be there at once; with fewer, a write waits until the test fails."""


class SlowVolume(Passing):
    """Counts what is written; each write of a small file waits until others are at it, too."""

    def __init__(self, volume: Any, gate: Gate) -> None:
        super().__init__(volume)
        self._gate = gate

    def write_new(self, path: str, chunks: Iterable[bytes], like: Any = None) -> None:
        self._gate.enter(path)
        try:
            self.inner.write_new(path, chunks, like)
        finally:
            self._gate.leave(path)


LAST = ["_dumpmetadata", "_hms_bridge_manifest", ".cm-part-_finished_dump"]
"""What a dump writes at its end; the last gets its own name once it is whole."""


class Gate:
    def __init__(self, world: ReplWorld, is_slow: Any) -> None:
        self._world = world
        self._is_slow = is_slow
        self._volumes: dict[int, SlowVolume] = {}
        self._condition = threading.Condition()
        self._is_open = False
        self._inside = 0
        self.most = 0
        self.written: Counter[str] = Counter()
        self.order: list[str] = []

    def resolve(self, text: str) -> Location:
        found = self._world.resolve(text)
        volume = self._volumes.setdefault(id(found.volume), SlowVolume(found.volume, self))
        return Location(found.uri, found.path, volume)  # type: ignore[arg-type]

    def enter(self, path: str) -> None:
        with self._condition:
            self.written[path] += 1
            if not self._is_slow(path):
                return
            self._inside += 1
            self.most = max(self.most, self._inside)
            self._is_open |= self._inside >= TOGETHER
            self._condition.notify_all()
            assert self._condition.wait_for(lambda: self._is_open, timeout=20), self.most

    def leave(self, path: str) -> None:
        with self._condition:
            self._inside -= self._is_slow(path)
            self.order.append(Path(path).name)


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.create_table("part", is_partitioned=True)
    for number in range(2 * TOGETHER):
        empty_world.add_partition("part", str(number))
        empty_world.insert("part", (number, "x"), partition=f"p={number}")
    return empty_world


def dump(world: ReplWorld, gate: Gate) -> None:
    world.clock.advance_ms(1000)
    dumper = ReplDump(world.source, gate.resolve, world.clock, world.token, world.source.manifest)
    dumper.run(dumper.plan(world.dump_request()))


def below_dump(world: ReplWorld, name: str):
    return lambda path: str(world.repl_root) in path and path.endswith(name)


def test_event_directories_are_written_side_by_side_each_file_once(world: ReplWorld) -> None:
    world.replicate()
    for number in range(TOGETHER):
        world.insert("t", (number, "x"))
    gate = Gate(world, lambda path: "/events_batch_" in path and path.endswith("_dumpmetadata"))
    dump(world, gate)
    assert gate.most >= TOGETHER
    assert set(gate.written.values()) == {1}
    # What says that the dump is whole comes after all of it, and last.
    at = gate.order.index("_events_dump")
    assert gate.order[at + 1 :] == LAST
    world.load()
    world.assert_same()


def test_file_lists_of_a_bootstrap_are_written_side_by_side(world: ReplWorld) -> None:
    gate = Gate(world, below_dump(world, "/_files"))
    dump(world, gate)
    assert gate.most >= TOGETHER
    assert set(gate.written.values()) == {1}
    assert gate.order[-3:] == LAST
    world.load()
    world.assert_same()


def test_a_load_copies_files_side_by_side(world: ReplWorld) -> None:
    world.dump()
    target = str(world.folder / "target")
    gate = Gate(world, lambda path: path.startswith(target) and PART_PREFIX in path)
    loader = ReplLoad(world.target, gate.resolve)
    loader.run(loader.plan(world.load_request))
    assert gate.most >= TOGETHER
    world.assert_same()


def test_results_come_in_order_and_the_first_error_stops_the_rest() -> None:
    with FilePool(4) as pool:
        assert list(pool.each(lambda n: n * n, range(500))) == [n * n for n in range(500)]
    begun: list[int] = []

    def step(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise OSError("full")

    with pytest.raises(OSError, match="full"), FilePool(1) as pool:
        pool.all(step, range(10_000))
    assert len(begun) < 10_000


def test_what_was_begun_is_waited_for_and_its_error_is_raised() -> None:
    done: list[int] = []

    def fail(_: int) -> None:
        raise OSError("full")

    with FilePool(4) as pool:
        for number in range(500):
            pool.begin(done.append, number)
        pool.finish()
        assert sorted(done) == list(range(500))
        pool.begin(fail, 1)
        with pytest.raises(OSError, match="full"):
            pool.finish()
