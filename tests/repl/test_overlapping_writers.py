"""A bootstrap waits for the writers that it found, not for those that come later (I1, I11): their
events are in the next dump, whole."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from tests.support.open_write import OpenWrite
from tests.support.passing import Passing
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare, told


class Overlapping:
    """Writers of table t, of which one is open at any time; each commits after the next began."""

    def __init__(self, world: ReplWorld, *, has_locks: bool = True) -> None:
        self._world = world
        self._has_locks = has_locks
        self._row = 100
        self.current = self._begin()
        world.clock.on_sleep = self.next

    def _begin(self) -> OpenWrite:
        writer = self._world.begin()
        if self._has_locks:
            writer.lock("t")
        self._row += 1
        writer.insert("t", [(self._row, "w")])
        return writer

    def next(self) -> None:
        before, self.current = self.current, self._begin()
        before.commit()


def assert_replicated(world: ReplWorld) -> None:
    """After a bootstrap was loaded: the events since, and both sides are equal."""
    world.clock.on_sleep = lambda: None
    world.replicate()
    world.assert_same()
    report = compare(world, checksums=True)
    assert (told(report), report.exit_code) == ([], 0)


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_bootstrap_begins_while_a_transaction_is_always_open(world, has_locks):
    writers = Overlapping(world, has_locks=has_locks)
    world.dump()
    assert len(world.clock.slept_seconds) == 1
    world.load()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 101]
    writers.current.commit()
    assert_replicated(world)


def test_tables_come_anew_while_a_transaction_is_always_open(world):
    world.create_table("u")
    world.replicate()
    writers = Overlapping(world)
    world.dump(tables_anew=("t",))
    world.load()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 101]
    writers.current.commit()
    assert_replicated(world)


@pytest.mark.parametrize("end", [OpenWrite.commit, OpenWrite.abort])
def test_who_is_waited_for_may_go_on_to_another_table_meanwhile(world, end):
    """Its write id of t is in the bootstrap, that of u comes with the events."""
    world.create_table("u")
    writer = world.begin()
    writer.insert("t", [(2, "b")])

    def go_on() -> None:
        writer.insert("u", [(3, "c")], statement=1)
        end(writer)

    world.clock.on_sleep = go_on
    world.dump()
    world.load()
    assert world.replica.rows("u") == []
    assert_replicated(world)


def test_later_writes_hide_behind_none_that_was_waited_for(world):
    """Write ids of later writers lie among those of the set; some abort; a compaction comes."""
    old, other = world.begin(), world.begin()
    old.insert("t", [(2, "old")])

    def interleave() -> None:
        world.clock.on_sleep = lambda: None
        world.insert("t", (3, "later"))
        other.insert("t", [(4, "idle until now")])
        lost = world.begin()
        lost.insert("t", [(5, "never")])
        lost.abort()
        old.commit()
        world.compact("t")
        world.clean()

    world.clock.on_sleep = interleave
    world.dump()
    world.load()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2]
    other.commit()
    assert_replicated(world)


def test_a_writer_of_the_set_that_aborts_meanwhile_is_aborted_on_the_replica(world):
    """However long it takes, and though it has no lock."""
    lost = world.begin()
    lost.insert("t", [(2, "never")])

    def abort() -> None:
        if len(world.clock.slept_seconds) == 3:
            lost.abort()

    world.clock.on_sleep = abort
    world.dump()
    assert len(world.clock.slept_seconds) == 3
    world.load()
    (write_ids,) = world.target.get_valid_write_ids(["dst.t"])
    assert write_ids.aborted_ids == (2,)
    assert_replicated(world)


def test_only_who_was_waited_for_is_aborted(world):
    stuck = world.begin()
    stuck.lock("t")
    later: list[OpenWrite] = []

    def begin() -> None:
        if not later:
            later.append(world.begin())
            later[0].lock("t")
            later[0].insert("t", [(2, "b")])

    world.clock.on_sleep = begin
    world.dump(wait=WaitRules(timeout_seconds=3, poll_seconds=1, is_abort_allowed=True))
    assert world.open_txn_ids() == [later[0].id]
    world.load()
    later[0].commit()
    assert_replicated(world)


def test_the_refusal_names_who_of_the_set_is_open(world):
    stuck = world.begin()
    stuck.insert("t", [(2, "b")])
    later: list[OpenWrite] = []
    world.clock.on_sleep = lambda: later.append(world.begin())
    with pytest.raises(ReplError) as refused:
        world.dump(wait=WaitRules(timeout_seconds=60, poll_seconds=20))
    text = str(refused.value)
    assert "write ids 2 of src.t are open" in text
    assert f"open transactions: {stuck.id} (someone@some-host, " in text
    assert len(later) == 3
    assert all(f"{writer.id} (" not in text for writer in later)


class Busy(Passing):
    """Something happens before each call of a metastore."""

    def __init__(self, inner: Any, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self._act = act

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._act()
            return method(*arguments, **named)

        return call


class Traffic:
    """Clients that begin, lock, write, commit and abort; a compactor and a cleaner."""

    def __init__(self, world: ReplWorld, random_numbers: random.Random) -> None:
        self._world = world
        self._random = random_numbers
        self._open: list[OpenWrite] = []
        self._row = 1000
        self._alone = threading.Lock()

    def act(self) -> None:
        step = self._random.choices(
            [self._begin, self._write, self._lock, self._commit, self._abort, self._compact],
            [4, 6, 1, 4, 1, 1],
        )[0]
        with self._alone:  # a dump calls from several threads
            step()

    def end(self) -> None:
        while self._open:
            self._commit()

    def _any(self) -> OpenWrite | None:
        return self._random.choice(self._open) if self._open else None

    def _begin(self) -> None:
        if len(self._open) < 4:
            self._open.append(self._world.begin())

    def _write(self) -> None:
        writer, table = self._any(), self._random.choice(["t", "u"])
        if writer is not None:
            self._row += 1
            writer.insert(table, [(self._row, "w")], statement=self._row % 4000)

    def _lock(self) -> None:
        writer = self._any()
        if writer is not None:
            writer.lock(self._random.choice(["t", "u"]))

    def _commit(self) -> None:
        writer = self._any()
        if writer is not None:
            self._open.remove(writer)
            writer.commit()

    def _abort(self) -> None:
        writer = self._any()
        if writer is not None:
            self._open.remove(writer)
            writer.abort()

    def _compact(self) -> None:
        table = self._random.choice(["t", "u"])
        request = CompactionRequest(target=Target("src", table), type=CompactionType.MAJOR)
        if self._world.source.compact(request).is_accepted:
            self._world.worker().run_once()
        self._world.cleaner().run_once()


@pytest.mark.parametrize("seed", range(5))
def test_whatever_ends_at_whatever_step_of_a_dump_both_sides_are_equal(world, seed):
    """The whole database, then a table anew, then the events, under traffic at each step."""
    world.create_table("u")
    traffic = Traffic(world, random.Random(seed))
    busy = Busy(world.source, traffic.act)
    world.clock.on_sleep = traffic.act
    patience = WaitRules(timeout_seconds=600, poll_seconds=1)
    for changes in ({}, {"tables_anew": ("t",)}, {}):
        world.dump(busy, wait=patience, **changes)
        world.load()
    traffic.end()
    assert_replicated(world)
