"""Several tables at once: each by one thread, a table never by two."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.manifest import ArchiveIntent, IntentState
from cleaner.daemon import make_cleaner
from cleaner.plan import CleaningState
from tests.support.compacted_tables import TABLES, compacted_tables, deltas
from tests.support.faults import CrashError
from tests.support.passing import Passing
from tests.support.world import World


class Meeting(Passing):
    """A manifest in which removals of so many tables are written down at once, or not at all."""

    def __init__(self, inner: Any, count: int) -> None:
        super().__init__(inner)
        self._barrier = threading.Barrier(count)

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> Any:
        self._barrier.wait(timeout=60)
        return self.inner.add_intents(intents)


class DyingAt(Passing):
    """A process that dies where the removals of one table are written down."""

    def __init__(self, inner: Any, table: str) -> None:
        super().__init__(inner)
        self._table = table

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> Any:
        if any(intent.context.table == self._table for intent in intents):
            raise CrashError(self._table)
        return self.inner.add_intents(intents)


def cleaned(world: World, manifest: object) -> list[str]:
    """Tables, in the order of their outcomes."""
    cleaner = make_cleaner(replace(world.store, manifest=manifest))  # type: ignore[arg-type]
    outcomes = cleaner.run_once()
    assert {outcome.state for outcome in outcomes} <= {CleaningState.CLEANED}, outcomes
    return [outcome.entry.target.table for outcome in outcomes]


def test_tables_are_cleaned_at_once(tmp_path: Path) -> None:
    """They meet where each has written down what goes; one after the other they would not."""
    world = compacted_tables(tmp_path, threads=3)
    assert cleaned(world, Meeting(world.store.manifest, len(TABLES))) == list(TABLES)
    for table in TABLES:
        assert not deltas(world, table)
        assert [row["id"] for row in world.rows(table)] == [1, 2]
    stored = {row.state for row in world.store.manifest.intents(list(IntentState))}
    assert stored == {IntentState.DONE}


def test_a_table_is_cleaned_by_one_thread_alone(tmp_path: Path) -> None:
    """Partitions of one table are no strangers to each other: none is passed over because another
    thread has the lease."""
    world = compacted_tables(tmp_path, threads=3)
    world.create_table("parts", is_partitioned=True)
    parts = [world.add_partition("parts", str(number)) for number in range(6)]
    for part in parts:
        world.insert("parts", (1, "v"), partition=part)
        world.insert("parts", (2, "w"), partition=part)
        world.compact("parts", partition=part)
    world.clock.advance_ms(60_000)
    assert cleaned(world, world.store.manifest) == [*TABLES, *["parts"] * len(parts)]


@pytest.mark.parametrize("threads", [1, 3])
def test_one_that_dies_is_heard_and_the_next_cleaner_goes_on(tmp_path: Path, threads: int) -> None:
    world = compacted_tables(tmp_path, threads=threads)
    with pytest.raises(CrashError):
        cleaned(world, DyingAt(world.store.manifest, "b"))
    assert deltas(world, "b")
    world.clock.advance_ms(300_001)
    cleaned(world, world.store.manifest)
    for table in TABLES:
        assert not deltas(world, table)
        assert [row["id"] for row in world.rows(table)] == [1, 2]
