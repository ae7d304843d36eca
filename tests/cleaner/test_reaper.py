"""I13: what dead processes left comes to an end, in minutes, and nothing is lost by it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.manifest import (
    LEASE_MS,
    ArchiveCause,
    ArchiveContext,
    EntryState,
    IntentState,
)
from changemanager.removal import Removal
from cleaner import temporaries
from cleaner.daemon import Cleaner, make_cleaner
from cleaner.plan import CleaningState
from cleaner.reaper import REVIVE_AFTER_MS, STRAY_AFTER_MS
from hms_bridge.model.compaction import CompactionState, CompactionType
from tests.support.cleaning_world import CleaningWorld
from tests.support.faults import CrashError, FaultPlan, FaultyManifest
from tests.support.intents import add_intent


def dying_cleaner(world: CleaningWorld, label: str) -> Cleaner:
    faults = FaultPlan()
    faults.crash_label = label
    return make_cleaner(
        replace(world.store, manifest=FaultyManifest(world.store.manifest, faults))  # type: ignore[arg-type]
    )


def crash(world: CleaningWorld, label: str) -> None:
    with pytest.raises(CrashError):
        dying_cleaner(world, label).run_once()


def open_intents(world: CleaningWorld) -> int:
    return len(world.store.manifest.intents([one for one in IntentState if one.is_open]))


def held(world: CleaningWorld) -> set[str]:
    root = world.store.archive().cmroot.uri
    names = world.store.manifest.entries(root)
    return set(world.store.manifest.holders(root, list(names), world.clock.now_ms()))


@pytest.mark.parametrize("label", ["after add_intents", "after record_archived"])
def test_the_removal_of_a_dropped_table_does_not_pin_the_archive_for_ever(
    world: CleaningWorld, label: str
) -> None:
    world.write()
    world.compact()
    crash(world, label)
    world.metastore.drop_table("db", "t", is_purge=True)
    world.clock.advance_ms(STRAY_AFTER_MS + 1)
    for _ in range(2):
        world.cleaner().run_once()
    assert open_intents(world) == 0
    assert held(world) == set()
    assert "rows of t/delta_0000001_0000001_0000" in world.archived_contents()


def test_a_removal_that_was_noted_when_its_victim_was_gone_is_nobodys(
    world: CleaningWorld,
) -> None:
    """A drop stood still before it noted it; another process had carried the drop out."""
    world.write()
    place = world.table_path.as_uri()
    removal = Removal(
        victim=place,
        root=world.warehouse.as_uri(),
        context=ArchiveContext(
            cause=ArchiveCause.DROP_TABLE, location=place, database="db", table="t"
        ),
        is_archived=False,
    )
    planned = world.store.delete_protocol().plan(removal, world.store.resolver(place))
    assert planned is not None
    shutil.rmtree(world.table_path)
    add_intent(world.store.manifest, planned)
    assert open_intents(world) == 1
    world.clock.advance_ms(STRAY_AFTER_MS + 1)
    world.cleaner().run_once()
    assert open_intents(world) == 0


def test_the_removal_of_a_failed_entry_is_given_up_and_taken_up_anew(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    crash(world, "after record_archived")
    world.metastore.mark_failed(replace(world.entry(entry), error_message="too often"))
    world.clock.advance_ms(STRAY_AFTER_MS + 1)
    world.cleaner().run_once()
    assert open_intents(world) == 0
    assert held(world) == set()
    # Its files are in their place, and are not left there: a day later it is tried again.
    assert (world.table_path / "delta_0000001_0000001_0000").is_dir()
    world.clock.advance_ms(REVIVE_AFTER_MS + 1)
    world.cleaner().run_once()
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    assert world.state(entry) is CompactionState.SUCCEEDED
    assert not (world.table_path / "delta_0000001_0000001_0000").exists()


def test_an_archive_that_was_down_for_days_does_not_keep_inputs_for_ever(
    world: CleaningWorld,
) -> None:
    world.write()
    entry = world.compact()
    in_the_way = world.folder / "cmroot"
    in_the_way.write_bytes(b"in the way")
    for _ in range(8):
        world.clock.advance_ms(6_000_000)
        world.cleaner().run_once()
    assert world.state(entry) is CompactionState.FAILED
    in_the_way.unlink()
    world.clock.advance_ms(REVIVE_AFTER_MS + 1)
    for _ in range(2):
        world.cleaner().run_once()
    assert world.state(entry) is CompactionState.SUCCEEDED
    assert world.directories() == [f"base_0000001_v{entry.txn_id:07d}"]


def test_a_failed_cleaning_that_a_later_one_made_good_stays_in_the_history(
    world: CleaningWorld,
) -> None:
    world.write()
    failed = world.compact(kind=CompactionType.MINOR)
    world.metastore.mark_failed(replace(world.entry(failed), error_message="too often"))
    world.write()
    world.compact()
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
    world.clock.advance_ms(REVIVE_AFTER_MS + 1)
    world.cleaner().run_once()
    assert world.state(failed) is CompactionState.FAILED


def test_a_failed_compaction_is_not_cleaned(world: CleaningWorld) -> None:
    """Only what was compacted and committed comes back: the inputs are the rows."""
    world.write()
    entry, txn_id = world.start_compaction()
    world.abort(txn_id)
    world.metastore.mark_failed(replace(entry, error_message="no memory"))
    world.clock.advance_ms(REVIVE_AFTER_MS + 1)
    for _ in range(2):
        world.cleaner().run_once()
    assert world.state(entry) is CompactionState.FAILED
    assert world.directories() == ["delta_0000001_0000001_0000"]


def test_a_row_that_a_dead_purge_left_does_not_stop_the_cleaning(world: CleaningWorld) -> None:
    """`_orc_acid_version` is one file for all tables."""
    world.write()
    world.compact()
    world.cleaner().run_once()
    root = world.store.archive().cmroot.uri
    name = next(one for one in world.archived() if one.startswith("_orc_acid_version"))
    for is_gone in (False, True):
        clock = world.store.manifest.entries(root)[name].archived_at_ms
        assert world.store.manifest.claim_purge(
            root, name, seen_archived_at_ms=clock, overridden_holders=(), owner="dead",
            now_ms=world.clock.now_ms(),
        )  # fmt: skip
        if is_gone:
            (world.folder / "cmroot" / name).unlink()
        world.clock.advance_ms(LEASE_MS + 1)
        world.cleaner().run_once()
        entry = world.store.manifest.entries(root, [name])[name]
        assert entry.state is (EntryState.PURGED if is_gone else EntryState.ARCHIVED)
    world.write()
    world.compact()
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED


def test_two_cleaners_do_not_clean_one_table(world: CleaningWorld) -> None:
    world.write()
    entry = world.compact()
    crash(world, "after add_intents")
    for _ in range(3):
        assert world.cleaner().run_once() == ()
    assert world.entry(entry).retry_retention_ms == 0  # no failed try is counted
    world.clock.advance_ms(LEASE_MS + 1)
    assert world.cleaner().run_once()[0].state is CleaningState.CLEANED


def test_a_cleaner_that_stood_still_deletes_nothing_more(world: CleaningWorld) -> None:
    """Meanwhile another one cleaned, and the table was made anew with the same names."""
    world.write()
    world.compact()
    cleaner = world.cleaner()
    remover = cleaner._first.compacted._cleaning._remover
    protocol = remover._protocol
    delete, stalls = protocol._delete_files, [True]

    def stalled_delete(work, require_lease):  # type: ignore[no-untyped-def]
        if stalls:
            stalls.pop()
            world.clock.advance_ms(LEASE_MS + 1)
            assert world.cleaner().run_once()[0].state is CleaningState.CLEANED
            world.metastore.drop_table("db", "t", is_purge=True)
            world.create_table()
            world.write()
        return delete(work, require_lease)

    protocol._delete_files = stalled_delete  # type: ignore[method-assign]
    before_ms = world.clock.now_ms()
    assert cleaner.run_once() == ()
    assert world.clock.now_ms() > before_ms
    assert world.directories() == ["delta_0000001_0000001_0000"]
    assert (world.table / "delta_0000001_0000001_0000" / "bucket_00000").exists()


def test_history_is_forgotten(world: CleaningWorld) -> None:
    world.write()
    world.compact()
    world.cleaner().run_once()
    root, manifest = world.store.archive().cmroot.uri, world.store.manifest
    name = next(iter(world.archived()))
    clock = manifest.entries(root)[name].archived_at_ms
    manifest.claim_purge(
        root, name, seen_archived_at_ms=clock, overridden_holders=(), owner="o", now_ms=clock
    )
    assert manifest.record_purged(root, name, owner="o", now_ms=world.clock.now_ms())
    removals = manifest.intents(tuple(IntentState))
    for day, is_known in ((9, True), (11, False)):
        world.clock.advance_ms(day * 86_400_000 - (world.clock.now_ms() - clock))
        world.cleaner().run_once()
        assert (name in manifest.entries(root, [name])) is is_known
        assert set(removals) <= set(manifest.intents(tuple(IntentState))) or not is_known
    assert removals
    assert manifest.intents(tuple(IntentState)) == ()


def test_a_lease_that_is_held_is_never_forgotten(world: CleaningWorld) -> None:
    world.start(archive=replace(world.settings.archive, history_retain_ms=0))
    manifest, now_ms = world.store.manifest, world.clock.now_ms()
    assert manifest.take_leases(["work"], "one", now_ms) == {"work"}
    world.clock.advance_ms(1000)
    world.cleaner().run_once()
    assert manifest.take_leases(["work"], "other", world.clock.now_ms()) == frozenset()


def test_a_step_looks_at_few_directories_and_a_round_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first pass over millions of directories would keep all cleaning waiting."""
    monkeypatch.setattr(temporaries, "DIRECTORIES_AT_ONCE", 2)
    world = CleaningWorld(tmp_path, is_partitioned=True)
    for value in "abc":
        world.add_partition("t", value)
    dead = world.open()
    world.abort(dead)
    places = [world.table, *(world.table / f"p={value}" for value in "abc")]
    for place in places:
        (place / f"_tmp_write_v{dead:07d}" / "d").mkdir(parents=True)
    cleaner, left = world.cleaner(), []
    for _ in range(4):
        cleaner.run_once()
        left.append(sum((place / f"_tmp_write_v{dead:07d}").exists() for place in places))
    assert left == [2, 0, 0, 0]
    (places[0] / f"_tmp_write_v{dead:07d}").mkdir()
    cleaner.run_once()
    assert (places[0] / f"_tmp_write_v{dead:07d}").exists(), (
        "a round is over; the next is due later"
    )


def test_temporaries_of_dead_transactions_go_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    world.add_partition("t", "1")
    dead, alive = world.open(), world.open()
    world.abort(dead)
    for place in (world.table, world.table / "p=1"):
        for txn_id in (dead, alive, alive + 100):
            for kind in ("write", "compaction"):
                (place / f"_tmp_{kind}_v{txn_id:07d}" / "d").mkdir(parents=True)
        (place / ".hive-staging_hive_2026-01-01").mkdir()
        (place / "_tmp_space.db").mkdir()
    world.cleaner().run_once()
    for place in (world.table, world.table / "p=1"):
        left = {one.name for one in place.iterdir() if one.name != "p=1"}
        assert left == {
            *(f"_tmp_{k}_v{t:07d}" for k in ("write", "compaction") for t in (alive, alive + 100)),
            ".hive-staging_hive_2026-01-01", "_tmp_space.db",
        }  # fmt: skip
