"""When something is wrong: archive, settings, tables that change or are gone; nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.manifest import IntentState
from changemanager.removal import Removal
from cleaner.entry_cleaner import next_retry_ms
from cleaner.explain import Readiness
from cleaner.plan import CleaningState
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.target import Target
from tests.support.cleaning_world import CleaningWorld, delta
from tests.support.intents import add_intent


def test_an_unwritable_cmroot_deletes_nothing_and_is_tried_again(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    cmroot = world.folder / "cmroot"
    cmroot.write_bytes(b"in the way")
    before = world.directories()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "cannot archive into" in outcome.message
    assert world.directories() == before
    queued = world.entry(entry)
    assert (queued.state, queued.retry_retention_ms) == (
        CompactionState.READY_FOR_CLEANING, 300_000,
    )  # fmt: skip
    assert "cannot archive into" in (queued.error_message or "")
    assert world.cleaner().run_once() == ()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.WAITING
    assert "tried again in 5 min 0 s: " in explained.reason
    cmroot.unlink()
    world.clock.advance_ms(300_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]
    assert len(world.archived()) == 2


def test_an_entry_that_fails_again_and_again_ends_as_failed(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    (world.folder / "cmroot").write_bytes(b"in the way")
    states = []
    for wait_ms in (0, 300_000, 600_000, 1_200_000, 2_400_000, 4_800_000):
        world.clock.advance_ms(wait_ms)
        states.append(world.cleaner().run_once()[0].state)
    assert states == [CleaningState.POSTPONED] * 5 + [CleaningState.FAILED]
    assert world.state(entry) is CompactionState.FAILED
    assert delta(1) in world.directories()


def test_waits_double_and_end() -> None:
    settings = CompactorSettings()
    entry = Compaction(
        id=CompactionId(1), target=Target("db", "t"),
        type=CompactionType.MAJOR, state=CompactionState.READY_FOR_CLEANING,
    )  # fmt: skip
    waits = []
    while (wait := next_retry_ms(entry, settings)) is not None:
        waits.append(wait // 1000)
        entry = replace(entry, retry_retention_ms=wait)
    assert waits == [300, 600, 1200, 2400, 4800]
    assert next_retry_ms(replace(entry, retry_retention_ms=30_000), settings) == 300_000
    assert next_retry_ms(replace(entry, type=CompactionType.ABORT_TXN_CLEANUP), settings)
    none = replace(settings, cleaner_attempts_max=0)
    assert next_retry_ms(replace(entry, retry_retention_ms=0), none) is None
    instant = replace(settings, cleaner_retry_retention_ms=0)
    assert next_retry_ms(replace(entry, retry_retention_ms=0), instant) == 1000


def test_with_the_change_manager_off_a_source_is_not_cleaned(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_archive_on=False)
    world.write()
    world.compact()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "hive.repl.cm.enabled=true" in outcome.message
    assert delta(1) in world.directories()


def test_no_cleanup_is_obeyed(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, parameters={"no_cleanup": "TRUE"})
    world.write()
    entry = world.compact()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.REFUSED
    for _ in range(8):
        (outcome,) = world.cleaner().run_once()
        assert outcome.state is CleaningState.POSTPONED
        assert "no_cleanup=true" in outcome.message
        world.clock.advance_ms(300_000)
    assert world.state(entry) is CompactionState.READY_FOR_CLEANING
    assert delta(1) in world.directories()


def test_one_bad_table_does_not_stop_the_others(world: CleaningWorld) -> None:
    world.write()
    bad = world.compact()
    world.metastore.create_database(Database(name="other"))
    good_table = replace(
        world.metastore.get_table("db", "t"), name="u", database_name="other", id=None
    )
    good_table = replace(good_table, storage=replace(good_table.storage, location=None))
    world.metastore.create_table(good_table)
    (world.table / "base_0000001_v0000002" / "_metadata_acid").write_bytes(b"not json")
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert world.state(bad) is CompactionState.READY_FOR_CLEANING
    assert delta(1) in world.directories()
    (explained,) = world.cleaner().explain()
    assert explained.readiness is Readiness.UNREADABLE


def test_a_missing_directory_is_clean(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    world.table.rename(world.folder / "moved away")
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.state(entry) is CompactionState.SUCCEEDED


def test_an_entry_of_a_table_that_is_gone(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    ghost = replace(entry, target=Target("db", "ghost"))
    outcome = world.cleaner()._first.compacted.clean(ghost)
    assert outcome.state is CleaningState.GONE
    assert delta(1) in world.directories()


def test_a_table_that_is_made_anew_while_it_is_cleaned(world: CleaningWorld) -> None:
    """Between the look and the deletion the table is dropped and comes back with the same names."""
    world.write()
    world.write()
    world.compact()
    cleaner = world.cleaner()
    remover = cleaner._first.compacted._cleaning._remover
    remove = remover.remove_all

    def slow(plans, still_same, quiet):
        world.metastore.drop_table("db", "t", is_purge=True)
        world.create_table()
        world.write()
        return remove(plans, still_same, quiet)

    remover.remove_all = slow  # type: ignore[method-assign]
    (outcome,) = cleaner.run_once()
    assert outcome.state is CleaningState.WAITING
    assert "meanwhile" in outcome.message
    assert world.directories() == [delta(1)]


def test_a_database_that_becomes_a_source_meanwhile(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_source=False)
    world.write()
    world.compact()
    cleaner = world.cleaner()
    remover = cleaner._first.compacted._cleaning._remover
    remove = remover.remove_all

    def slow(plans, still_same, quiet):
        found = world.metastore.get_database("db")
        world.metastore.alter_database(
            "db", replace(found, parameters={"repl.source.for": "policy"})
        )
        return remove(plans, still_same, quiet)

    remover.remove_all = slow  # type: ignore[method-assign]
    (outcome,) = cleaner.run_once()
    assert outcome.state is CleaningState.WAITING
    assert delta(1) in world.directories()
    world.clock.advance_ms(60_000)
    assert world.cleaner().run_once()[0].archived_count == 2


def test_a_removal_that_is_not_wanted_any_more_is_given_up(world: CleaningWorld) -> None:
    """A row of an interrupted run names what a later plan keeps."""
    world.write()
    world.write()
    entry = world.compact()
    cleaner = world.cleaner()
    removal = Removal(
        victim=str(world.table / f"base_0000002_v{entry.txn_id:07d}"),
        root=str(world.table),
        context=replace(_context_of(world, entry), location=f"file:{world.table}"),
        is_archived=True,
    )
    place = world.store.resolver(removal.victim)
    stray = cleaner._reaper._protocol.plan(removal, place)
    assert stray is not None
    add_intent(world.store.manifest, stray)
    assert cleaner.run_once()[0].state is CleaningState.CLEANED
    stored = world.store.manifest.intent(stray.intent_id)
    assert stored is not None
    assert stored.state is IntentState.ABANDONED
    assert world.directories() == [f"base_0000002_v{entry.txn_id:07d}"]


def _context_of(world: CleaningWorld, entry: Compaction):
    from changemanager.manifest import ArchiveCause, ArchiveContext

    return ArchiveContext(
        cause=ArchiveCause.OBSOLETE, database="db", table="t", compaction_id=entry.id
    )


def test_removals_whose_recording_died_are_tidied_up(world: CleaningWorld) -> None:
    world.write()
    world.compact()
    cleaner = world.cleaner()
    cleaner._first.compacted._cleaning._remover.finish = lambda location: None  # type: ignore[method-assign]
    assert cleaner.run_once()[0].state is CleaningState.CLEANED
    states = [one.state for one in world.store.manifest.intents(list(IntentState))]
    assert states == [IntentState.DELETED]
    world.clock.advance_ms(3_600_001)
    world.cleaner().run_once()
    states = [one.state for one in world.store.manifest.intents(list(IntentState))]
    assert states == [IntentState.DONE]
    world.clock.advance_ms(31 * 86_400_000)
    world.cleaner().run_once()
    assert world.store.manifest.intents(list(IntentState)) == ()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b"", "it is empty"),
        (b"ORC" + b"rows" * 100 + bytes(4096), "ends in zeros"),
        (b"ORC" + b"rows cut off in the middle", "damaged"),
    ],
)
@pytest.mark.parametrize("is_source", [False, True])
def test_what_a_damaged_base_replaces_stays(
    tmp_path: Path, damage: bytes, reason: str, is_source: bool
) -> None:
    """The machine crashed, and the base's writer had not brought it to the disk."""
    world = CleaningWorld(tmp_path, is_source=is_source)
    world.write()
    entry = world.compact()
    base = world.table / f"base_0000001_v{entry.txn_id:07d}"
    whole = (base / "bucket_00000").read_bytes()
    (base / "bucket_00000").write_bytes(damage)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert reason in outcome.message
    assert (world.table / delta(1) / "bucket_00000").read_bytes()
    (base / "bucket_00000").write_bytes(whole)
    world.clock.advance_ms(600_000)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
