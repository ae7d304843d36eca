"""A source that is written, compacted and cleaned, and its replica: always the same rows (I1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from changemanager.archive import ChangeManager
from changemanager.purge import Purge
from hms_bridge.errors import EventGapError, ReplError, SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import EventId, WriteId
from hms_bridge.model.txn import AbortReason
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.format.verify import verify_dump
from hms_bridge.repl.load.plan import LoadKind
from tests.support.passing import Interrupted, Passing, Purged
from tests.support.simulated_clock import DAY_MS


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.insert("t", (3, "c"))
    return empty_world


def test_compaction_after_the_dump_before_the_load(world):
    world.update("t", (2, "B"))
    world.dump()
    before = world.rows("t")
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 4
    report = world.load()
    assert report.copied.archive_files == 4
    assert report.copied.source_files == 0
    assert world.replica.rows("t") == before
    world.assert_same()


def test_changes_and_major_compaction_between_dump_and_load(world):
    world.replicate()
    world.insert("t", (4, "d"))
    world.update("t", (1, "A"))
    with world.transaction() as txn:
        txn.delete("t", [3])
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.dump()
    report = world.load()
    assert report.kind is LoadKind.INCREMENTAL
    assert report.copied.archive_files == 4
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 4]


def test_a_compacted_base_loses_its_suffix_and_is_read(world):
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.insert("t", (4, "d"))
    world.replicate()
    names = [path.name for path in (world.folder / "target" / "dst.db" / "t").iterdir()]
    assert sorted(names) == ["base_0000002", "delta_0000003_0000003_0000"]
    world.assert_same()


def test_a_base_that_ends_at_an_aborted_write_keeps_its_rows(world):
    """Hive's query-based compaction names a base after the high watermark, aborted or not; without
    its marker the base of the replica would count as aborted itself."""
    lost = world.begin()
    lost.insert("t", [(9, "never")])
    lost.abort()
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    root = world.path("t")
    (base,) = root.glob("base_0000002_v*")
    base.rename(root / base.name.replace("base_0000002", "base_0000003"))
    assert len(world.rows("t")) == 3
    world.replicate()
    world.assert_same()
    assert len(world.replica.rows("t")) == 3


def test_minor_compaction_and_partitions(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.add_partition("part", "a/b c#d")
    world.insert("part", (1, "x"), partition="p=1")
    world.insert("part", (2, "y"), partition="p=a%2Fb c%23d")
    world.dump()
    world.insert("part", (3, "z"), partition="p=1")
    world.compact("part", CompactionType.MINOR, "p=1")
    world.clean()
    world.load()
    world.add_partition("part", "2")
    with world.transaction() as txn:
        txn.insert("part", [(4, "w")], "p=2")
        txn.insert("part", [(5, "v")], "p=1", statement=1)
        txn.insert("t", [(6, "u")], statement=2)
    world.replicate()
    world.assert_same()


def test_a_transaction_that_spans_dumps_is_seen_when_it_commits(world):
    world.replicate()
    long = world.begin()
    long.insert("t", [(7, "long")])
    world.insert("t", (8, "short"))
    world.replicate()
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 3, 8]
    long.commit()
    world.replicate()
    world.assert_same()
    assert 7 in [row["id"] for row in world.replica.rows("t")]


def test_aborted_rows_are_seen_by_nobody(world):
    lost = world.begin()
    lost.insert("t", [(9, "never")])
    lost.abort()
    world.replicate()
    world.assert_same()
    lost = world.begin()
    lost.insert("t", [(10, "never")])
    lost.abort()
    world.insert("t", (11, "after"))
    world.replicate()
    world.assert_same()
    assert world.target.get_valid_write_ids(["dst.t"])[0].aborted_ids == (3, 4)


def test_a_transaction_that_is_open_but_idle_at_the_bootstrap_keeps_its_rows(world):
    """Its OPEN event is before the bootstrap, so no dump has it; real Hive loses the rows."""
    idle = world.begin()
    report = world.dump()
    assert report.idle_txn_ids == (idle.id,)
    world.load()
    idle.insert("t", [(12, "late")])
    idle.commit()
    world.replicate()
    world.assert_same()
    assert 12 in [row["id"] for row in world.replica.rows("t")]


def test_writes_that_nobody_reported_are_found_by_their_directories(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.replicate()
    silent = world.begin()
    silent.is_reporting = False
    silent.insert("t", [(20, "silent")])
    silent.insert("part", [(21, "silent")], "p=1", statement=1)
    silent.commit()
    world.replicate()
    world.assert_same()
    assert 20 in [row["id"] for row in world.replica.rows("t")]
    assert [row["id"] for row in world.replica.rows("part")] == [21]


def test_an_unreported_write_over_a_dump_boundary_is_found(world):
    """Its write id stands in the range before, its commit in this one."""
    world.replicate()
    silent = world.begin()
    silent.is_reporting = False
    silent.insert("t", [(22, "silent")])
    world.insert("t", (23, "loud"))
    world.replicate()
    silent.commit()
    world.replicate()
    world.assert_same()
    assert 22 in [row["id"] for row in world.replica.rows("t")]


def test_a_bootstrap_waits_for_open_writers(world):
    writer = world.begin()
    writer.insert("t", [(13, "w")])
    world.clock.on_sleep = writer.commit
    world.dump()
    world.load()
    world.assert_same()
    assert 13 in [row["id"] for row in world.replica.rows("t")]


def test_a_bootstrap_refuses_while_a_writer_stays_open(world):
    """Also one without locks: real Hive dumps such a write id as open, and its rows are lost."""
    writer = world.begin()
    writer.insert("t", [(14, "w")])
    plan = world.dumper().plan(world.dump_request())
    assert plan.kind is DumpKind.BOOTSTRAP
    assert "write ids 3 of src.t are open" in plan.waits_for
    with pytest.raises(ReplError, match=r"write ids 3 of src\.t are open"):
        world.dump()
    assert world.open_txn_ids() == [writer.id]
    writer.commit()
    world.dump()
    world.load()
    world.assert_same()


def test_a_bootstrap_aborts_lock_holders_only_if_told(world):
    writer = world.begin()
    writer.lock("t")
    with pytest.raises(ReplError, match=f"transactions {writer.id} hold locks"):
        world.dump()
    rules = WaitRules(timeout_seconds=1, poll_seconds=1, is_abort_allowed=True)
    world.dump(wait=rules)
    world.load()
    world.assert_same()


def test_writes_between_event_id_and_snapshot_are_there_once(world):
    """They are in the bootstrap and in the next dump."""

    def write() -> None:
        world.update("t", (2, "between"))
        world.insert("t", (15, "between"))

    busy = Interrupted(world.source, write, before="get_open_txns")
    dumper = world.dumper(busy)
    plan = dumper.plan(world.dump_request())
    busy.times = 1
    dumper.run(plan)
    world.load()
    after_bootstrap = world.replica.rows("t")
    assert 15 in [row["id"] for row in after_bootstrap]
    report = world.dump()
    assert report.events.dumped["EVENT_COMMIT_TXN"] == 2
    world.load()
    assert world.replica.rows("t") == after_bootstrap
    world.assert_same()


def test_tables_that_come_go_and_change(world):
    world.create_table("dropped")
    world.insert("dropped", (1, "x"))
    world.create_table("renamed")
    world.insert("renamed", (1, "x"))
    world.dump()
    world.source.drop_table("src", "dropped")
    world.load()
    assert "dropped" in world.target.get_tables("dst")
    old = world.source.get_table("src", "renamed")
    world.source.alter_table("src", "renamed", replace(old, name="new_name"))
    world.insert("new_name", (2, "y"))
    world.create_table("created")
    world.insert("created", (3, "z"))
    world.create_table("short_lived")
    world.insert("short_lived", (4, "w"))
    world.source.drop_table("src", "short_lived")
    table = world.source.get_table("src", "t")
    world.source.alter_table(
        "src", "t", replace(table, parameters={**table.parameters, "note": "hello"})
    )
    world.replicate()
    world.assert_same()
    assert world.target.get_tables("dst") == ("created", "new_name", "t")
    assert world.target.get_table("dst", "t").parameters["note"] == "hello"


def test_partitions_that_come_go_and_change(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.insert("part", (1, "x"), partition="p=1")
    world.replicate()
    world.add_partition("part", "2")
    world.insert("part", (2, "y"), partition="p=2")
    world.source.drop_partitions("src", "part", ["p=1"])
    (part,) = world.source.get_partitions("src", "part")
    world.source.alter_partitions(
        "src", "part", [replace(part, parameters={**part.parameters, "note": "two"})]
    )
    world.replicate()
    world.assert_same()
    (part,) = world.target.get_partitions("dst", "part")
    assert part.values == ("2",)
    assert part.parameters["note"] == "two"


def test_a_table_that_is_dropped_and_made_again(world):
    world.replicate()
    world.source.drop_table("src", "t")
    world.create_table("t")
    world.insert("t", (1, "second life"))
    world.replicate()
    world.assert_same()


def test_a_table_dropped_while_it_is_dumped_is_left_out(world):
    world.create_table("victim")
    world.insert("victim", (1, "x"))

    def drop() -> None:
        world.source.drop_table("src", "victim")

    plan = world.dumper().plan(world.dump_request())
    dumper = world.dumper(Interrupted(world.source, drop, after="get_open_txns"))
    report = dumper.run(plan)
    assert list(report.tables) == ["t"]
    world.load()
    world.replicate()
    world.assert_same()


def test_a_rename_while_dumping_makes_the_dump_fail(world):
    def rename() -> None:
        old = world.source.get_table("src", "t")
        world.source.alter_table("src", "t", replace(old, name="t2"))

    plan = world.dumper().plan(world.dump_request())
    dumper = world.dumper(Interrupted(world.source, rename, after="get_open_txns"))
    with pytest.raises(ReplError, match="renamed while database src was dumped"):
        dumper.run(plan)
    world.replicate()
    world.assert_same()


def test_dump_and_load_alternate(world):
    first = world.dump()
    assert first.kind is DumpKind.BOOTSTRAP
    blocked = world.dump()
    assert blocked.kind is DumpKind.BLOCKED
    assert first.directory in blocked.reason
    world.load()
    assert world.load().kind is LoadKind.NOTHING
    nothing = [world.dump(), world.load()]
    assert nothing[0].kind in (DumpKind.NOTHING, DumpKind.INCREMENTAL)
    assert world.dump().kind is DumpKind.NOTHING
    assert world.repl_root.joinpath("c3Jj").is_dir()


def test_a_finished_dump_removes_the_older_ones(world):
    world.replicate()
    world.insert("t", (4, "d"))
    report = world.dump()
    (only,) = (world.repl_root / "c3Jj").iterdir()
    assert report.directory.endswith(only.name)


def test_transactions_of_others_are_left_out(world):
    world.replicate()
    for _ in range(3):
        txn = world.begin()
        txn.commit()
    report = world.dump()
    assert report.events.dumped == {}
    assert report.events.left_out_count >= 6
    world.load()
    assert world.last_event() == str(report.last_event_id)


def test_events_that_were_purged_before_the_dump_are_noticed(world):
    world.replicate()
    world.insert("t", (4, "lost"))

    current = world.source.get_current_event_id()
    for last_purged in (current - 1, current):
        dumper = world.dumper(Purged(world.source, last_purged))
        with pytest.raises(EventGapError, match="gone from the notification log"):
            dumper.plan(world.dump_request())
    assert world.last_event() != str(current)


def test_a_restored_metastore_is_noticed(world):
    world.replicate()

    class Restored(Passing):
        def get_current_event_id(self):
            return EventId(1)

    with pytest.raises(EventGapError, match="restored or replaced"):
        world.dumper(Restored(world.source)).plan(world.dump_request())


def test_the_purge_keeps_what_an_unloaded_dump_needs(world):
    report = world.dump()
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.clock.advance_ms(11 * DAY_MS)
    assert world.purge() == 0
    world.load()
    world.assert_same()
    world.insert("t", (4, "d"))
    world.dump()
    held = {pin.holder for pin in world.source.manifest.pins()}
    assert f"dump:src:{report.directory}" not in held
    assert world.policy_pin in held


def test_the_purge_keeps_what_the_next_dump_will_need(world):
    world.replicate()
    world.insert("t", (4, "d"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.clock.advance_ms(11 * DAY_MS)
    assert world.purge() == 0
    world.replicate()
    world.assert_same()


def test_a_purge_against_the_pins_is_found_before_the_load(world):
    report = world.dump()
    before = world.rows("t")
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.clock.advance_ms(11 * DAY_MS)
    holders = [pin.holder for pin in world.source.manifest.pins()]
    assert world.purge(holders) > 0
    lost = verify_dump(world.resolve, report.directory)
    assert (lost.exit_code, len(lost.missing)) == (1, 2)
    with pytest.raises(SourceFileMissingError, match="2 of 2 files"):
        world.load()
    assert "dst" not in world.target.get_databases()
    assert world.rows("t") == before


def test_a_purge_before_the_dump_is_found_by_the_dump(world):
    """Real Hive finishes such a dump, and its load loses the rows."""
    world.replicate()
    world.insert("t", (4, "d"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    world.clock.advance_ms(11 * DAY_MS)
    world.purge([pin.holder for pin in world.source.manifest.pins()])
    with pytest.raises(SourceFileMissingError, match="lost: 1 file that the dump should name: "):
        world.dump()
    healed = world.dump(is_bootstrap_forced=True)
    assert healed.kind is DumpKind.BOOTSTRAP


def test_a_replica_is_not_dumped(world):
    world.replicate()
    request = replace(world.dump_request(), database="dst")
    with pytest.raises(ReplError, match="waits for its first incremental load"):
        world.dumper(world.target).plan(request)
    world.insert("t", (4, "d"))
    world.replicate()
    with pytest.raises(ReplError, match="is a replica"):
        world.dumper(world.target).plan(request)


def test_a_load_that_was_aborted_by_hand_on_the_replica_is_noticed(world):
    world.replicate()
    long = world.begin()
    long.insert("t", [(7, "long")])
    world.replicate()
    world.target.abort_txns(
        [one.id for one in world.target.get_open_txns_info()], AbortReason.QUERY
    )
    long.commit()
    world.dump()
    with pytest.raises(ReplError, match=r"repl\.incompatible"):
        world.load()


def test_source_and_target_may_not_be_one_database(world):
    world.dump()
    loader = world.loader()
    request = replace(world.load_request, target_database="../x")
    with pytest.raises(ReplError, match="no name of a database"):
        loader.plan(request)


def test_a_rebalanced_table_is_not_followed_but_begun_anew(world):
    """Every row gets another id, so a later delete would name another row on the replica."""
    world.replicate()
    world.rebalance("t", WriteId(2))
    world.insert("t", (4, "d"))
    with pytest.raises(ReplError, match=r"src\.t was rebalanced.*'repl dump src --table-anew t'"):
        world.dump()
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.assert_same()


def test_a_replica_that_was_down_for_too_long_begins_anew_and_lets_the_archive_go(world):
    """The policy's pin holds what was archived since the last dump, until there is a new one."""
    world.replicate()
    world.update("t", (2, "B"))
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 2
    world.clock.advance_ms(25 * DAY_MS)
    assert world.purge() == 0
    world.clock.advance_ms(7 * DAY_MS)
    world.source.run_housekeeping()
    world.insert("t", (4, "d"))
    with pytest.raises(EventGapError, match=r"'repl dump --bootstrap' and 'repl load'"):
        world.dump()
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    world.load()
    world.assert_same()
    world.insert("t", (5, "e"))
    world.replicate()
    world.assert_same()
    assert world.purge() > 0


def test_a_purge_keeps_what_another_metastore_may_need(world):
    """Both archive into one cmroot; the pins of the source stand in its own database."""
    world.replicate()
    world.update("t", (2, "B"))
    world.dump()
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 2
    world.clock.advance_ms(12 * DAY_MS)
    other = world.target.manifest
    archive = ChangeManager(world.archive.config, world.resolve, other, world.clock, world.token)
    job = Purge(archive, other, world.clock)
    plan = job.plan()
    assert not plan.removals
    (holder,) = {holder for one in plan.decisions for holder in one.holders}
    assert holder.startswith("metastore:")
    assert job.run(plan).deleted == ()
    world.load()
    world.assert_same()
    told = job.plan(overridden=[holder], is_clock_trusted=True)
    assert len(job.run(told).deleted) >= 2
