"""What a pass asks the store for many removals at once, and what that leaves to who follows."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.manifest import ArchiveIntent, ArchiveManifest, IntentState
from cleaner.daemon import Cleaner, make_cleaner
from cleaner.plan import CleaningOutcome, CleaningState
from hms_bridge.errors import BackendError
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.target import Target
from tests.support.cleaning_world import CleaningWorld, delta
from tests.support.faults import CrashError, FaultPlan, FaultyManifest
from tests.support.passing import Passing


class Recording(Passing):
    """A manifest that notes which removals are noted down together, or fails to do so."""

    def __init__(self, manifest: ArchiveManifest, failure: Exception | None = None) -> None:
        super().__init__(manifest)
        self.finished: list[frozenset[str]] = []
        self._failure = failure

    def finish_intents(self, locations: Collection[str], now_ms: int) -> int:
        self.finished.append(frozenset(locations))
        if self._failure is not None:
            raise self._failure
        finished: int = self.inner.finish_intents(locations, now_ms)
        return finished


def cleaner_over(world: CleaningWorld, manifest: object) -> Cleaner:
    return make_cleaner(replace(world.store, manifest=manifest))  # type: ignore[arg-type]


def three_entries(tmp_path: Path) -> CleaningWorld:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    parts = [world.add_partition("t", value) for value in ("1", "2", "3")]
    for part in parts:
        world.write(part)
        world.write(part)
    for part in parts:
        world.compact(partition=part)
    return world


def states(outcomes: Collection[CleaningOutcome]) -> list[CleaningState]:
    return [outcome.state for outcome in outcomes]


def stored(world: CleaningWorld) -> set[IntentState]:
    return {row.state for row in world.store.manifest.intents(list(IntentState))}


def test_what_was_recorded_is_noted_down_for_all_entries_together(tmp_path: Path) -> None:
    world = three_entries(tmp_path)
    manifest = Recording(world.store.manifest)
    outcomes = cleaner_over(world, manifest).run_once()
    assert states(outcomes) == [CleaningState.CLEANED] * 3
    (locations,) = manifest.finished
    assert len(locations) == 3
    assert stored(world) == {IntentState.DONE}


def test_entries_are_cleaned_also_where_that_cannot_be_noted_down(tmp_path: Path) -> None:
    """Their rows are finished by the reaper, when it comes to them."""
    world = three_entries(tmp_path)
    manifest = Recording(world.store.manifest, BackendError("the database is gone"))
    outcomes = cleaner_over(world, manifest).run_once()
    assert states(outcomes) == [CleaningState.CLEANED] * 3
    assert stored(world) == {IntentState.DELETED}
    world.clock.advance_ms(3_600_001)
    world.cleaner().run_once()
    assert stored(world) == {IntentState.DONE}


@pytest.mark.parametrize("is_source", [False, True])
def test_an_interrupted_removal_is_taken_up_by_its_row(tmp_path: Path, *, is_source: bool) -> None:
    """A file that was written anew since, of the same length and time, is another one: what the
    row says of it was read before the crash."""
    world = CleaningWorld(tmp_path, is_source=is_source)
    world.write()
    world.compact()
    faults = FaultPlan()
    faults.crash_label = "after advance_intents" if is_source else "after add_intents"
    with pytest.raises(CrashError):
        cleaner_over(world, FaultyManifest(world.store.manifest, faults)).run_once()
    (row,) = world.store.manifest.intents([IntentState.ARCHIVED])
    if is_source:
        _write_anew(world.table / delta(1) / "bucket_00000")
    world.clock.advance_ms(300_001)
    (outcome,) = world.cleaner().run_once()
    again = world.store.manifest.intent(row.intent_id)
    assert again is not None
    if not is_source:
        assert outcome.state is CleaningState.CLEANED
        assert again.state is IntentState.DONE
        return
    assert outcome.state is CleaningState.POSTPONED
    assert again.state is IntentState.ABANDONED
    assert (world.table / delta(1) / "bucket_00000").read_bytes() == b"x" * row.files[-1].size_bytes


class DyingAfterSecond(Passing):
    """A process that dies when the removals of a second directory are written down."""

    def __init__(self, manifest: ArchiveManifest) -> None:
        super().__init__(manifest)
        self._count = 0

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> tuple[ArchiveIntent, ...]:
        self._count += 1
        stored: tuple[ArchiveIntent, ...] = self.inner.add_intents(intents)
        if self._count == 2:
            raise CrashError("after the second add_intents")
        return stored


def test_rows_of_all_partitions_are_taken_up(tmp_path: Path) -> None:
    """Of an entry about several of them; none is given up on the way to another one."""
    world = CleaningWorld(tmp_path, is_partitioned=True, is_source=False)
    parts = [world.add_partition("t", value) for value in ("1", "2")]
    world.write(parts[0])
    entry = world.compact(partition=parts[0])
    for part in parts:
        world.write_aborted(part)
    whole = replace(
        entry, target=Target("db", "t"), id=CompactionId(98), highest_write_id=WriteId(3)
    )
    dying = cleaner_over(world, DyingAfterSecond(world.store.manifest))
    with pytest.raises(CrashError):
        dying._first.clean(whole)
    second = world.store.manifest.intents([IntentState.ARCHIVED])
    assert [parts[1] in row.victim for row in second] == [True]
    world.clock.advance_ms(300_001)
    assert world.cleaner()._first.compacted.clean(whole).state is CleaningState.CLEANED
    assert IntentState.ABANDONED not in stored(world)
    assert delta(3) not in world.directories(parts[1])


def _write_anew(path: Path) -> None:
    was = path.stat()
    path.unlink()  # the archive may have the file itself, by another name
    path.write_bytes(b"x" * was.st_size)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
