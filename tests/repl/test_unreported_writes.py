"""Writes that nobody reported, found again or refused, but never left out in silence (I1)."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace

import pytest

from changemanager.manifest import ArchiveCause, ArchiveContext, ArchiveIntent, IntentState
from hms_bridge.errors import EventGapError, NoSuchObjectError, ReplError, SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.dump.plan import DumpKind, IncrementalRules
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.unreported_writes import earlier_allocations
from tests.support.faults import CrashError, FaultPlan, faulty
from tests.support.intents import add_intent, advance_intent
from tests.support.passing import Passing, Purged
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.replicate()
    return empty_world


def silently(world, *writes):
    """A transaction of a client that tells nothing: (method, table, what, partition)."""
    txn = world.begin()
    txn.is_reporting = False
    for number, (method, *rest) in enumerate(writes):
        getattr(txn, method)(*rest, statement=number)
    txn.commit()


def wrote_nothing(world, table="t"):
    """An ALTER, or an UPDATE without a match, as Hive's: a write id, no files, no word."""
    txn = world.begin()
    txn.write_id(table)
    txn.commit()


def clean_without_record(world, table="t", kept=()):
    """Another program deletes what is obsolete: no archive, no manifest."""
    world.clock.advance_ms(10_000)
    for entry in world.source.find_ready_to_clean():
        root = world.path(table, entry.target.partition or "")
        for path in root.iterdir():
            if "_v" not in path.name and path.name not in kept:
                shutil.rmtree(path)
        world.source.mark_cleaned(entry)


def killed_dump(world, request, at):
    """A dump that dies at a point of its way."""
    faults = FaultPlan()
    faults.crash_at = at
    dumper = ReplDump(
        world.source, faulty(world.resolve, faults), world.clock, world.token, world.source.manifest
    )
    with pytest.raises(CrashError):
        dumper.run(dumper.plan(request))


def dump_remotely(world, **changes):
    """As over thrift: the manifest is out of reach."""
    world.clock.advance_ms(1000)
    dumper = ReplDump(world.source, world.resolve, world.clock, world.token, None)
    return dumper.run(dumper.plan(world.dump_request(**changes)))


def test_what_the_cleaner_took_away_is_found_and_what_wrote_nothing_is_known(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "a b")
    world.insert("part", (1, "x"), partition="p=a b")
    world.replicate()
    wrote_nothing(world, "part")
    silently(world, ("insert", "part", [(2, "silent")], "p=a b"))
    wrote_nothing(world, "part")
    world.insert("part", (3, "z"), partition="p=a b")
    world.compact("part", MAJOR, "p=a b")
    world.clean()
    assert world.dump().file_count == 2
    assert world.load().copied.archive_files == 2
    world.assert_same()


@pytest.mark.parametrize("kind", [MAJOR, MINOR])
def test_files_that_were_compacted_and_cleaned_are_found_in_the_archive(world, kind):
    silently(world, ("insert", "t", [(3, "silent")]))
    silently(world, ("delete", "t", [1]), ("insert", "t", [(1, "A")]))
    world.insert("t", (4, "loud"))
    world.compact("t", kind)
    assert world.clean() >= 4
    report = world.dump()
    assert report.kind is DumpKind.INCREMENTAL
    assert report.file_count == 4
    loaded = world.load()
    assert loaded.copied.archive_files == 4
    world.assert_same()
    assert [(row["id"], row["v"]) for row in world.replica.rows("t")] == [
        (1, "A"), (2, "b"), (3, "silent"), (4, "loud"),
    ]  # fmt: skip


def test_a_write_half_cleaned_is_found_whole(world):
    """One of its directories stands, the other is in the archive: a cleaner was killed between."""
    silently(world, ("delete", "t", [1]), ("insert", "t", [(1, "A")]))
    root = world.path("t")
    world.compact("t", MAJOR)
    (standing,) = root.glob("delta_0000002_0000002_*")
    shutil.copytree(standing, root.parent / "kept")
    world.clean()
    shutil.copytree(root.parent / "kept", standing)
    shutil.rmtree(root.parent / "kept")
    report = world.dump()
    assert report.file_count == 2
    world.load()
    world.assert_same()


def test_partitions_of_one_write_are_found_each_where_it_is(world):
    world.create_table("part", is_partitioned=True)
    for value in ("1", "2"):
        world.add_partition("part", value)
    world.replicate()
    silently(world, ("insert", "part", [(1, "x")], "p=1"), ("insert", "part", [(2, "y")], "p=2"))
    world.insert("part", (3, "z"), partition="p=1")
    world.compact("part", MAJOR, "p=1")
    world.clean()
    report = world.dump()
    assert report.file_count == 3
    loaded = world.load()
    assert (loaded.copied.archive_files, loaded.copied.source_files) == (2, 1)
    world.assert_same()


def test_the_dump_pins_what_it_found_in_the_archive(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    world.clean()
    world.dump()
    world.clock.advance_ms(11 * DAY_MS)
    world.purge([world.policy_pin])
    world.load()
    world.assert_same()


def test_files_that_were_purged_are_named_as_lost(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    world.clean()
    world.clock.advance_ms(11 * DAY_MS)
    assert world.purge([pin.holder for pin in world.source.manifest.pins()]) > 0
    with pytest.raises(SourceFileMissingError, match="delta_0000002_0000002_0000"):
        world.dump()


@pytest.mark.parametrize("dump", [ReplWorld.dump, dump_remotely])
def test_files_that_another_program_took_away_are_refused(world, dump):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    clean_without_record(world)
    with pytest.raises(ReplError, match=r"1 write of database src") as told:
        dump(world)
    text = str(told.value)
    assert "write id 2 of src.t" in text
    assert "base_0000002_v" in text
    assert "'repl dump src --table-anew t' at the source, then 'repl load src'" in text
    assert "--assume-empty" in text
    with pytest.raises(ReplError, match="write id 2"):
        dump(world)
    world.dump(is_bootstrap_forced=True)


def test_a_write_that_nobody_knows_is_refused_though_a_killed_dump_has_written_its_event(world):
    """Who goes on with the dump looks at that commit again."""
    silently(world, ("insert", "t", [(3, "silent")]))
    committed = world.source.get_current_event_id()
    world.compact("t", MAJOR)
    clean_without_record(world)
    for number in range(4, 8):
        world.insert("t", (number, "more"))
    request = world.dump_request(events=IncrementalRules(noted_each=1))
    at, plan = 30, world.dumper().plan(request)
    while plan.resumed is None or max(plan.resumed.written) <= committed:
        killed_dump(world, request, at)
        at, plan = at + 4, world.dumper().plan(request)
    with pytest.raises(ReplError, match="write id 2"):
        world.dumper().run(plan)
    assert world.dumper().plan(request).resumed is None


def test_without_the_manifest_a_cleaned_write_is_refused(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    world.clean()
    with pytest.raises(ReplError, match=r"write id 2 of src\.t"):
        dump_remotely(world)
    world.replicate()
    world.assert_same()


def test_a_write_that_still_stands_is_found_though_another_program_cleaned_the_rest(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    clean_without_record(world, kept=("delta_0000002_0000002_0000",))
    world.replicate()
    world.assert_same()


def test_a_partition_of_a_write_that_was_taken_away_is_refused_though_another_stands(world):
    world.create_table("part", is_partitioned=True)
    for value in ("1", "2"):
        world.add_partition("part", value)
    world.insert("part", (0, "w"), partition="p=1")
    world.replicate()
    silently(world, ("insert", "part", [(1, "x")], "p=1"), ("insert", "part", [(2, "y")], "p=2"))
    world.compact("part", MAJOR, "p=1")
    clean_without_record(world, "part")
    with pytest.raises(ReplError, match=r"write id 2 of src\.part \(.*/p=1/base_0000002_v"):
        world.dump()


def test_who_knows_better_dumps_as_empty_and_is_told_of_what(world):
    wrote_nothing(world)
    world.insert("t", (3, "c"))
    world.compact("t", MAJOR)
    world.clean()
    with pytest.raises(ReplError, match=r"write id 2 of src\.t"):
        dump_remotely(world)
    report = dump_remotely(world, events=IncrementalRules(is_unknown_empty=True))
    (told,) = report.events.assumed_empty
    assert told.startswith("write id 2 of src.t")
    world.load()
    world.assert_same()


@pytest.mark.parametrize("kind", [MAJOR, MINOR])
def test_a_statement_that_wrote_nothing_is_not_refused_after_a_clean_up(world, kind):
    """The manifest has the other files of the same clean-up, so it would have this one's."""
    wrote_nothing(world)
    world.insert("t", (3, "c"))
    world.compact("t", kind)
    assert world.clean() >= 1
    world.replicate()
    world.assert_same()


@pytest.mark.parametrize("dump", [ReplWorld.dump, dump_remotely])
def test_a_statement_that_wrote_nothing_is_not_refused_before_the_clean_up(world, dump):
    wrote_nothing(world)
    world.insert("t", (3, "c"))
    world.compact("t", MAJOR)
    assert dump(world).events.assumed_empty == ()
    world.load()
    world.assert_same()


def test_without_the_manifest_a_clean_up_that_began_leaves_a_doubt(world):
    wrote_nothing(world)
    world.insert("t", (3, "c"))
    world.compact("t", MAJOR)
    world.clock.advance_ms(10_000)
    (entry,) = world.source.find_ready_to_clean()
    world.source.mark_cleanings_started([entry.id])
    with pytest.raises(ReplError, match=r"write id 2 of src\.t"):
        dump_remotely(world)


def test_a_compaction_whose_transaction_is_open_says_nothing(world):
    """It is not done, so nobody took its inputs away."""
    wrote_nothing(world)
    world.insert("t", (3, "c"))
    root = world.path("t")
    open_txn = world.begin()
    (root / f"base_0000003_v{open_txn.id:07d}").mkdir()
    dump_remotely(world)
    open_txn.abort()
    world.load()
    world.assert_same()


def test_a_clean_up_at_work_is_waited_for(world):
    """The file is moved already and not recorded yet."""
    silently(world, ("insert", "t", [(3, "silent")]))
    world.insert("t", (4, "loud"))
    world.compact("t", MAJOR)
    world.clean()
    intent = ArchiveIntent(
        intent_id="i1",
        victim=world.root("t").child("delta_0000009_0000009_0000").uri,
        cmroot=world.archive.cmroot.uri,
        files=(),
        context=ArchiveContext(cause=ArchiveCause.OBSOLETE),
        is_remaining_in_trash=False,
        state=IntentState.PLANNED,
        created_at_ms=1,
        updated_at_ms=1,
    )
    add_intent(world.source.manifest, intent)
    with pytest.raises(ReplError, match=r"write id 2 of src\.t"):
        world.dump()
    advance_intent(world.source.manifest, "i1", IntentState.PLANNED, IntentState.ABANDONED, 2)
    world.replicate()
    world.assert_same()


def test_files_of_an_earlier_life_of_the_table_are_not_taken(world):
    """The same directory name was archived before: other rows."""
    silently(world, ("insert", "t", [(3, "first life")]))
    world.compact("t", MAJOR)
    world.clean()
    world.replicate()
    world.clock.advance_ms(DAY_MS)
    world.source.drop_table("src", "t")
    world.create_table("t")
    world.replicate()
    world.clock.advance_ms(DAY_MS)
    world.insert("t", (5, "e"))
    wrote_nothing(world)
    world.insert("t", (6, "f"))
    world.compact("t", MAJOR)
    world.clean()
    world.replicate()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("t")] == [5, 6]


def test_a_transaction_that_is_older_than_the_log_is_refused(world):
    """Nobody knows which write ids it got."""
    long, told = world.begin(), world.begin()
    long.is_reporting = False
    long.insert("t", [(3, "silent")])
    told.insert("t", [(4, "told")])
    world.replicate()
    purged = Purged(world.source, world.source.get_current_event_id())
    told.commit()
    world.dump(purged)
    world.load()
    long.commit()
    purged = Purged(world.source, world.source.get_current_event_id() - 1)
    with pytest.raises(ReplError, match=rf"transaction {long.id} \(the notification log does not"):
        world.dump(purged)
    world.replicate()
    world.assert_same()


def test_a_table_that_was_renamed_since_is_found_under_its_new_name(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    old = world.source.get_table("src", "t")
    world.source.alter_table("src", "t", replace(old, name="renamed"))
    world.create_table("t")
    world.insert("t", (9, "another table"))
    world.replicate()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("renamed")] == [1, 2, 3]


def test_a_table_that_was_dropped_since_needs_no_rows(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    world.compact("t", MAJOR)
    clean_without_record(world)
    world.source.drop_table("src", "t")
    world.create_table("t")
    world.replicate()
    world.assert_same()


def rename(world, old, new):
    table = world.source.get_table("src", old)
    world.source.alter_table("src", old, replace(table, name=new))


def test_a_rename_in_a_transaction_with_a_write_id_stops_no_later_dump(world):
    """As Hive does it: a write id, the rename, the commit."""
    txn = world.begin()
    txn.write_id("t")
    rename(world, "t", "renamed")
    txn.commit()
    world.insert("renamed", (3, "after"))
    world.replicate()
    world.assert_same()
    rename(world, "renamed", "again")
    world.insert("again", (4, "later"))
    world.replicate()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("again")] == [1, 2, 3, 4]


def test_a_drop_in_a_transaction_with_a_write_id_stops_no_later_dump(world):
    txn = world.begin()
    txn.write_id("t")
    world.drop_as_hive("t")
    txn.commit()
    world.replicate()
    world.assert_same()


def test_a_write_id_of_an_earlier_range_is_followed_through_a_rename_there(world):
    txn = world.begin()
    txn.is_reporting = False
    txn.insert("t", [(3, "silent")])
    rename(world, "t", "renamed")
    world.replicate()
    txn.commit()
    world.replicate()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("renamed")] == [1, 2, 3]


def test_a_transaction_that_the_log_no_longer_opens_is_refused_with_a_way_out(world):
    txn = world.begin()
    txn.is_reporting = False
    txn.insert("t", [(3, "silent")])
    world.replicate()
    end = world.source.get_current_event_id()
    with sqlite3.connect(world.folder / "source.db3") as database:
        database.execute("DELETE FROM NOTIFICATION_LOG WHERE EVENT_ID <= ?", (end,))
    database.close()
    txn.commit()
    with pytest.raises(EventGapError, match=r"does not go back.*To begin anew.*--bootstrap"):
        list(earlier_allocations(world.source, "src", txn.id, end))
    with pytest.raises(ReplError, match=r"does not go back.*To begin anew.*--bootstrap") as refused:
        world.dump()
    assert str(refused.value).count("To begin anew") == 1
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.assert_same()


def test_a_table_that_goes_while_the_log_is_read_is_looked_for_again(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    source = world.source

    class Renamed(Passing):
        """The source; the table gets another name just before it is looked up."""

        def get_table(self, database, table):
            if table == "t":
                rename(world, "t", "renamed")
            return source.get_table(database, table)

    world.dump(Renamed(source))
    world.load()
    world.replicate()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("renamed")] == [1, 2, 3]


def test_a_table_that_went_without_a_word_is_refused_with_a_way_out(world):
    silently(world, ("insert", "t", [(3, "silent")]))
    source = world.source

    class Silent(Passing):
        """The source; somebody took the table away behind the metastore's back."""

        def get_table(self, database, table):
            raise NoSuchObjectError(f"{database}.{table} table not found")

    silent = Silent(source)
    with pytest.raises(ReplError, match="log has no drop or rename") as refused:
        world.dump(silent)
    assert "--bootstrap" in str(refused.value)
    assert world.dump(silent, events=IncrementalRules(is_unknown_empty=True)).events.assumed_empty
