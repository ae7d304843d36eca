"""Tables come, go and get other names while patterns change and loads are killed: after each dump
and load the replica has exactly what the scope covers, with the source's rows (I1, I6, I11)."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_bridge.model.repl_scope import ReplScope
from tests.support.faults import CrashError, Dying
from tests.support.open_write import OpenWrite
from tests.support.repl_world import ReplWorld

NAMES = st.sampled_from(["t1", "t2", "u1", "u2"])
SCOPES = st.sampled_from(["'t.*'", "'u.*'", "'.*'.'t1'", "'t1|u1'", "'none'", ""])
KILLED_AT = st.sampled_from([0, 0, 1, 2, 3, 5, 8])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES),
    st.tuples(st.just("insert"), NAMES),
    st.tuples(st.just("insert"), NAMES),
    st.tuples(st.just("begin"), NAMES),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("scope"), SCOPES),
    st.tuples(st.just("replicate"), KILLED_AT),
    st.tuples(st.just("anew"), NAMES),
)
_CHANGES = ("alter", "drop", "create", "add", "repl", "commit", "abort", "open", "allocate")


class Schedule:
    """A source, its replica, and the scope that the next dump is to have."""

    def __init__(self, world: ReplWorld, patterns: str) -> None:
        self.world = world
        self.row = 0
        self.open: dict[str, OpenWrite] = {}
        self.scope = self._parsed(patterns)

    @staticmethod
    def _parsed(patterns: str) -> ReplScope:
        return ReplScope.parse(f"src.{patterns}" if patterns else "src")

    def tables(self) -> tuple[str, ...]:
        return self.world.source.get_tables("src")

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, step[0])(*step[1:])

    def create(self, name: str) -> None:
        if name not in self.tables():
            self.world.create_table(name)

    def insert(self, name: str) -> None:
        if name in self.tables():
            self.row += 1
            self.world.insert(name, (self.row, name))

    def begin(self, name: str) -> None:
        if name in self.tables() and name not in self.open:
            self.row += 1
            self.open[name] = self.world.begin()
            self.open[name].insert(name, [(self.row, "open")])

    def _end(self, name: str) -> None:
        if name in self.open:
            self.open.pop(name).commit()

    def drop(self, name: str) -> None:
        if name in self.tables():
            self._end(name)
            self.world.source.drop_table("src", name)

    def rename(self, old: str, new: str) -> None:
        if old in self.tables() and new not in self.tables():
            self._end(old)
            table = self.world.source.get_table("src", old)
            self.world.source.alter_table("src", old, replace(table, name=new))

    def scope_(self, patterns: str) -> None:
        self.scope = self._parsed(patterns)

    def replicate(self, killed_at: int, anew: tuple[str, ...] = ()) -> None:
        # A table that comes whole waits for its writers.
        self.world.clock.on_sleep = lambda: [self._end(name) for name in tuple(self.open)]
        self.world.dump(scope=self.scope, is_scope_changed=True, tables_anew=anew)
        self.world.clock.on_sleep = lambda: None
        if killed_at:
            loader = self.world.loader(Dying(self.world.target, killed_at, *_CHANGES))
            try:
                loader.run(loader.plan(self.world.load_request))
            except CrashError:
                self.world.clock.advance_ms(400_000)
        self.world.load()
        self.check()

    def anew(self, name: str) -> None:
        if name in self.tables() and self.scope.contains(name):
            self.replicate(0, (name,))

    def check(self) -> None:
        names = [name for name in self.tables() if self.scope.contains(name)]
        assert list(self.world.target.get_tables("dst")) == names
        for name in names:
            assert self.world.replica.rows(name) == self.world.rows(name), name

    def end(self) -> None:
        for name in tuple(self.open):
            self._end(name)
        self.replicate(0)


def run(folder: Path, patterns: str, steps: list[tuple[Any, ...]]) -> None:
    world = ReplWorld(folder)
    try:
        schedule = Schedule(world, patterns)
        for name in ("t1", "u1"):
            schedule.create(name)
            schedule.insert(name)
        schedule.replicate(0)
        for step in steps:
            schedule.do(("scope_", *step[1:]) if step[0] == "scope" else step)
        schedule.end()
    finally:
        world.close()


@pytest.mark.timeout(600)
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(patterns=SCOPES, steps=st.lists(STEPS, max_size=14))
def test_the_replica_has_what_the_scope_covers(fast_folder, patterns, steps):
    with tempfile.TemporaryDirectory(dir=fast_folder) as folder:
        run(Path(folder), patterns, steps)


@pytest.mark.parametrize("killed_at", range(1, 12))
def test_a_load_that_drops_and_brings_by_a_changed_scope_is_killed_at_each_change(
    fast_folder, killed_at
):
    """There are ten, and one end without a kill."""
    steps = [
        ("insert", "t1"),
        ("create", "t2"),
        ("insert", "t2"),
        ("replicate", 0),
        ("begin", "t1"),
        ("insert", "t2"),
        ("insert", "u1"),
        ("rename", "t2", "u2"),
        ("scope", "'u.*'"),
        ("replicate", killed_at),
        ("insert", "u2"),
        ("replicate", 0),
    ]
    run(fast_folder, "'t.*'", steps)
