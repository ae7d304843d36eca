"""Small entries take their steps together; none knows of it: what fails one is nothing to others,
and a kill at any step leaves what the next cleaner brings to an end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changemanager.manifest import LEASE_MS, ArchiveIntent, IntentState
from cleaner import daemon
from cleaner.daemon import Cleaner, make_cleaner
from cleaner.handlers import acid_cleaning
from cleaner.plan import CleaningState
from hms_bridge.cleaning_store import cleaning_lease
from hms_bridge.errors import BackendError
from hms_bridge.model.compaction import Compaction, CompactionState
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.target import Target
from tests.support.cleaning_world import CleaningWorld, delta
from tests.support.compacted_tables import TABLES, compacted_tables, deltas
from tests.support.databases import SERVER_URL
from tests.support.faults import CrashError, FaultPlan, FaultyManifest, faulty
from tests.support.passing import Counting, Interrupted, Passing
from tests.support.world import World

CLEANED = CleaningState.CLEANED


def cleaner_of(world: World, **others: Any) -> Cleaner:
    return make_cleaner(replace(world.store, **others))


def states(cleaner: Cleaner) -> dict[str, CleaningState]:
    return {outcome.entry.target.table: outcome.state for outcome in cleaner.run_once()}


def queued(world: World) -> dict[str, CompactionState]:
    return {entry.target.table: entry.state for entry in world.metastore.show_compactions()}


def require_all_cleaned(world: World) -> None:
    for table in TABLES:
        assert not deltas(world, table)
        assert [row["id"] for row in world.rows(table)] == [1, 2]
    assert set(queued(world).values()) == {CompactionState.SUCCEEDED}
    stored = {row.state for row in world.store.manifest.intents(list(IntentState))}
    assert stored == {IntentState.DONE}


def test_the_store_is_asked_once_for_all(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path, is_source=False)
    metastore, manifest = Counting(world.metastore), Counting(world.store.manifest)
    cleaner = cleaner_of(world, metastore=metastore, manifest=manifest)
    assert states(cleaner) == dict.fromkeys(TABLES, CLEANED)
    once = ("mark_cleanings_started", "cleaning_views", "strangers_in")
    assert {name: metastore.calls[name] for name in once} == dict.fromkeys(once, 1)
    assert (metastore.calls["mark_all_cleaned"], metastore.calls["mark_cleaned"]) == (1, 0)
    steps = ("take_leases", "add_intents", "advance_intents", "finish_intents", "end_leases")
    assert {name: manifest.calls[name] for name in steps} == dict.fromkeys(steps, 1)
    require_all_cleaned(world)


@pytest.mark.skipif(SERVER_URL is not None, reason="begins again with a copy of SQLite's file")
@pytest.mark.parametrize("is_source", [False, True])
@pytest.mark.parametrize("first", [1, 4])
def test_killed_at_any_step_all_comes_to_an_end(
    fast_folder: Path, first: int, *, is_source: bool
) -> None:
    """Each third step of the pass, by turns."""
    world = compacted_tables(fast_folder / "world", is_source=is_source)
    world.save(fast_folder / "before")
    for crash_at in range(first, 1000, 6):
        world.take(fast_folder / "before")
        world.start()
        faults = FaultPlan()
        faults.crash_at = crash_at
        dying = cleaner_of(
            world,
            resolver=faulty(world.store.resolver, faults),
            manifest=FaultyManifest(world.store.manifest, faults),
        )
        try:
            dying.run_once()
            break
        except CrashError:
            pass
        for table in TABLES:
            assert [row["id"] for row in world.rows(table)] == [1, 2]
        world.clock.advance_ms(LEASE_MS + 1)
        cleaner_of(world).run_once()
        require_all_cleaned(world)
    assert crash_at > 20


def test_a_damaged_replacement_stops_no_other_entry(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path)
    (base,) = (name for name in world.names("b") if name.startswith("base_"))
    for file in (world.path("b") / base).glob("bucket_*"):
        file.write_bytes(b"")
    assert states(cleaner_of(world)) == {
        "a": CLEANED,
        "b": CleaningState.POSTPONED,
        "c": CLEANED,
    }
    assert len(deltas(world, "b")) == 2
    assert not deltas(world, "a") | deltas(world, "c")


@pytest.mark.parametrize("is_source", [False, True])
def test_a_table_that_is_made_anew_meanwhile_stops_no_other_entry(
    tmp_path: Path, *, is_source: bool
) -> None:
    """It comes back with the same names, after all has been written down and looked at."""
    world = compacted_tables(tmp_path, is_source=is_source)

    def make_anew() -> None:
        world.metastore.drop_table("db", "b", is_purge=True)
        world.create_table("b")
        world.insert("b", (7, "new"))

    manifest = Interrupted(world.store.manifest, make_anew, after="add_intents")
    assert states(cleaner_of(world, manifest=manifest)) == {
        "a": CLEANED,
        "b": CleaningState.WAITING,
        "c": CLEANED,
    }
    assert [row["id"] for row in world.rows("b")] == [7]
    assert not deltas(world, "a") | deltas(world, "c")


def test_at_a_table_that_another_one_cleans_nothing_is_done(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path)
    now_ms = world.clock.now_ms()
    assert world.store.manifest.take_leases([cleaning_lease("db", "b")], "another", now_ms)
    assert states(cleaner_of(world)) == {"a": CLEANED, "c": CLEANED}
    assert len(deltas(world, "b")) == 2
    world.store.manifest.end_leases([cleaning_lease("db", "b")], "another")
    assert states(cleaner_of(world)) == {"b": CLEANED}
    require_all_cleaned(world)


def test_while_entries_are_cleaned_together_no_other_cleans_them(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path)
    seen: list[object] = []
    manifest = Interrupted(
        world.store.manifest,
        lambda: seen.append(cleaner_of(world).run_once()),
        before="add_intents",
    )
    assert states(cleaner_of(world, manifest=manifest)) == dict.fromkeys(TABLES, CLEANED)
    assert seen == [()]
    require_all_cleaned(world)


def test_an_entry_that_another_cleaner_has_ended_meanwhile_is_no_trouble(tmp_path: Path) -> None:
    """Hive's own takes no lease of ours. With one entry of the queue gone, none is recorded
    together with it."""
    world = compacted_tables(tmp_path)
    entries = {entry.target.table: entry for entry in world.metastore.show_compactions()}
    metastore = Interrupted(
        world.metastore,
        lambda: world.metastore.mark_cleaned(entries["b"]),
        before="mark_all_cleaned",
    )
    assert states(cleaner_of(world, metastore=metastore)) == dict.fromkeys(TABLES, CLEANED)
    require_all_cleaned(world)


class Refusing(Passing):
    """A manifest that writes down the removals of one table at a time only."""

    def add_intents(self, intents: Sequence[ArchiveIntent]) -> Any:
        if len({intent.context.table for intent in intents}) > 1:
            raise BackendError("too much at once")
        return self.inner.add_intents(intents)


def test_what_cannot_be_done_for_all_is_done_for_each(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path)
    cleaner = cleaner_of(world, manifest=Refusing(world.store.manifest))
    assert states(cleaner) == dict.fromkeys(TABLES, CLEANED)
    require_all_cleaned(world)


@pytest.mark.parametrize("what", ["_SMALL_VICTIMS_MAX", "_SMALL_BYTES_MAX"])
def test_an_entry_of_much_goes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world = compacted_tables(tmp_path)
    monkeypatch.setattr(acid_cleaning, what, 1)
    cleaner = cleaner_of(world)
    results = cleaner._first.compacted.clean_together(cleaner._first.compacted.find())
    assert results == [None] * len(TABLES)
    assert all(len(deltas(world, table)) == 2 for table in TABLES)
    assert states(cleaner) == dict.fromkeys(TABLES, CLEANED)
    require_all_cleaned(world)


def test_whole_tables_of_partitions_go_by_themselves(tmp_path: Path) -> None:
    """Their directories are those of other entries."""
    world = CleaningWorld(tmp_path, is_partitioned=True, is_source=False)
    part = world.add_partition("t", "1")
    world.write(part)
    entry = world.compact(partition=part)
    world.write_aborted(part)
    whole = replace(
        entry, target=Target("db", "t"), id=CompactionId(98), highest_write_id=WriteId(2)
    )
    first = world.cleaner()._first
    left, done = first.compacted.clean_together([whole, entry])
    assert (left, getattr(done, "state", done)) == (None, CLEANED)
    assert world.directories(part) == [f"base_0000001_v{entry.txn_id:07d}", delta(2)]
    assert [getattr(one, "state", one) for one in first.clean_all([whole])] == [CLEANED]
    assert delta(2) not in world.directories(part)


class Stalling(Passing):
    """The process stands still, for so long that another one takes the leases over, when the
    removals are recorded as done."""

    def __init__(self, inner: Any, stall: Callable[[], None]) -> None:
        super().__init__(inner)
        self._stall = stall

    def advance_intents(
        self, ids: Collection[str], from_state: IntentState, to_state: IntentState, *more: Any
    ) -> Any:
        moved = self.inner.advance_intents(ids, from_state, to_state, *more)
        if to_state is IntentState.DELETED:
            self._stall()
        return moved


def test_who_lost_a_lease_records_nothing(tmp_path: Path) -> None:
    world = compacted_tables(tmp_path)
    leases = world.store.manifest

    def lose_one() -> None:
        world.clock.advance_ms(LEASE_MS + 1)
        assert leases.take_leases([cleaning_lease("db", "c")], "another", world.clock.now_ms())

    metastore = Counting(world.metastore)
    cleaner = cleaner_of(world, metastore=metastore, manifest=Stalling(leases, lose_one))
    assert states(cleaner) == {}
    assert (metastore.calls["mark_all_cleaned"], metastore.calls["mark_cleaned"]) == (0, 0)
    assert set(queued(world).values()) == {CompactionState.READY_FOR_CLEANING}
    assert leases.lease_owner(cleaning_lease("db", "c")) == "another"


def test_of_many_entries_a_few_are_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one table each has its own directory; more than go at once come in the next round."""
    monkeypatch.setattr(daemon, "ENTRIES_AT_ONCE", 3)
    world = CleaningWorld(tmp_path, is_partitioned=True, is_source=False)
    parts = [world.add_partition("t", f"{number:02d}") for number in range(5)]
    entries: list[Compaction] = []
    for part in parts:
        world.write(part)
        entries.append(world.compact(partition=part))
    manifest = Counting(world.store.manifest)
    outcomes = make_cleaner(replace(world.store, manifest=manifest)).run_once()
    assert [(one.entry.id, one.state) for one in outcomes] == [(e.id, CLEANED) for e in entries]
    assert manifest.calls["add_intents"] == 2


@pytest.mark.parametrize("is_alone", [False, True])
def test_what_fails_as_its_table_is_dropped_meanwhile_is_no_failure(
    tmp_path: Path, *, is_alone: bool
) -> None:
    """The metastore knows nothing any more of the write ids in a directory that the drop is about
    to take away."""
    world = compacted_tables(tmp_path, is_source=False)
    place = world.path("b")

    def drop() -> None:
        kept = place.with_name("kept")
        shutil.copytree(place, kept)
        world.metastore.drop_table("db", "b", is_purge=True)
        kept.rename(place)

    for table in ("a", "c") if is_alone else ():
        world.metastore.drop_table("db", table)
    metastore = Interrupted(world.metastore, drop, before="cleaning_views")
    outcomes = {
        outcome.entry.target.table: outcome
        for outcome in cleaner_of(world, metastore=metastore).run_once()
    }
    assert outcomes["b"].state is CleaningState.WAITING
    assert outcomes["b"].message.startswith("db.b was dropped meanwhile")
    assert sum(name.name.startswith("delta_") for name in place.iterdir()) == 2
