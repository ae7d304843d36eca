"""What is wrong with a replica is ended by the smallest step, and both sides are the same (I11)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import INCOMPATIBLE
from hms_bridge.repl.handover.own_part import Access, set_access
from hms_bridge.repl.repair.looking import LastFailure
from hms_bridge.repl.repair.plan import Step
from hms_bridge.repl.repair.repl_repair import RepairReport
from tests.support.repair_world import planned, repair, repair_of, request
from tests.support.repl_world import ReplWorld


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    """Loaded: `t` and `other`, and `parted` with a partition."""
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.create_table("other")
    empty_world.insert("other", (1, "x"))
    empty_world.create_table("parted", is_partitioned=True)
    empty_world.add_partition("parted", "x")
    empty_world.insert("parted", (1, "x"), partition="p=x")
    empty_world.replicate()
    empty_world.clock.advance_ms(1000)
    return empty_world


def steps(report: RepairReport) -> list[tuple[Step, tuple[str, ...]]]:
    return [(one.step, one.tables) for one in report.steps]


def mended(world: ReplWorld, report: RepairReport) -> None:
    """Nothing is left, both sides are the same, and stay so."""
    assert (report.left, report.exit_code) == ((), 0)
    world.assert_same()
    assert repair(world).steps == ()
    for name in world.source.get_tables("src"):
        if name != "parted":
            world.insert(name, (100, "later"))
    world.replicate()
    world.assert_same()


def open_replica(world: ReplWorld) -> None:
    set_access(world.target, "dst", Access.WRITES)


def bucket_files(world: ReplWorld, table: str) -> list[Path]:
    return sorted(world.replica.path(table).rglob("bucket_*"))


def test_nothing_is_done_where_nothing_is_wrong(world: ReplWorld) -> None:
    before = world.last_event()
    report = repair(world)
    assert (report.steps, report.exit_code) == ((), 0)
    assert report.comparison is not None
    assert report.comparison.compared.rows == 4
    assert world.last_event() == before


def test_what_waits_is_loaded(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    world.dump()
    assert planned(world).step is Step.GO_ON
    report = repair(world)
    assert steps(report) == [(Step.GO_ON, ())]
    mended(world, report)


def test_different_rows(world: ReplWorld) -> None:
    (file,) = bucket_files(world, "t")
    shutil.copy(*bucket_files(world, "other"), file)
    plan = planned(world)
    assert (plan.step, plan.tables) == (Step.TABLES, ("t",))
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    assert report.comparison is not None
    assert report.comparison.compared.tables == 1  # of what came whole
    mended(world, report)


def test_a_lost_file_of_a_partition_brings_its_table(world: ReplWorld) -> None:
    for file in bucket_files(world, "parted"):
        file.unlink()
    report = repair(world, rows=False)
    assert steps(report) == [(Step.TABLES, ("parted",))]
    mended(world, report)


def test_a_table_that_somebody_dropped_on_the_replica(world: ReplWorld) -> None:
    open_replica(world)
    world.target.drop_table("dst", "t")
    world.insert("t", (3, "c"))
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    mended(world, report)


def test_a_write_on_the_replica(world: ReplWorld) -> None:
    open_replica(world)
    world.replica.insert("t", (9, "foreign"))
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    mended(world, report)


def test_a_rebalance_and_a_difference_come_in_one_dump(world: ReplWorld) -> None:
    for file in bucket_files(world, "other"):
        file.unlink()
    world.insert("t", (3, "c"))
    world.rebalance("t", WriteId(2))
    world.insert("parted", (2, "x"), partition="p=x")
    world.rebalance("parted", WriteId(2))
    plan = planned(world)
    assert (plan.step, plan.tables) == (Step.TABLES, ("other", "parted", "t"))
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("other", "parted", "t"))]
    mended(world, report)


def test_files_that_a_waiting_dump_lost(world: ReplWorld) -> None:
    """Its other events go on; its place is taken by one that brings the table."""
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    dump = world.dump()
    lose_archived(world, "t")
    plan = planned(world)
    assert (plan.step, plan.tables, plan.replaced_dump) == (Step.TABLES, ("t",), dump.directory)
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    mended(world, report)


def test_files_that_are_lost_before_the_dump(world: ReplWorld) -> None:
    """Only the dump itself finds out."""
    world.insert("t", (3, "c"))
    lose_archived(world, "t")
    assert planned(world).step is Step.GO_ON
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    mended(world, report)


def test_a_bootstrap_dump_whose_files_are_lost(empty_world: ReplWorld) -> None:
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    empty_world.insert("t", (2, "b"))
    empty_world.dump()
    lose_archived(empty_world, "t")
    report = repair(empty_world, is_bootstrap_allowed=True)
    assert steps(report) == [(Step.BOOTSTRAP, ())]
    mended(empty_world, report)


def test_a_dump_that_lost_a_text_is_made_again(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    dump = world.dump()
    texts = sorted(Path(str(dump.directory).removeprefix("file:")).rglob("_files"))
    texts[0].unlink()
    plan = planned(world)
    assert (plan.step, plan.replaced_dump) == (Step.DUMP_AGAIN, dump.directory)
    report = repair(world)
    assert steps(report) == [(Step.DUMP_AGAIN, ())]
    mended(world, report)


def test_a_dump_that_was_removed_by_half_tells_no_more_where_to_go_on(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    dump = world.dump()
    Path(str(dump.directory).removeprefix("file:"), "hive", "_dumpmetadata").unlink()
    with pytest.raises(ReplError, match="--allow-bootstrap"):
        repair(world)
    report = repair(world, is_bootstrap_allowed=True)
    assert steps(report) == [(Step.BOOTSTRAP, ())]
    mended(world, report)


def test_but_with_an_older_one_beside_it_it_is_made_again(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    dump = world.dump(is_previous_kept=True)
    Path(str(dump.directory).removeprefix("file:"), "hive", "_dumpmetadata").unlink()
    report = repair(world)
    assert steps(report) == [(Step.DUMP_AGAIN, ())]
    mended(world, report)


def test_a_gap_in_the_events_needs_a_bootstrap_that_is_allowed(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    purge_events(world)
    world.insert("t", (4, "d"))
    before = world.replica.rows("t")
    with pytest.raises(ReplError, match="nothing less than a new bootstrap.*--allow-bootstrap"):
        repair(world)
    assert world.replica.rows("t") == before
    assert planned(world).dropped == "dst"
    report = repair(world, is_bootstrap_allowed=True)
    assert steps(report) == [(Step.BOOTSTRAP, ())]
    mended(world, report)


def test_no_bootstrap_is_offered_without_a_warning_where_the_source_went_back(
    world: ReplWorld,
) -> None:
    backup = world.backup()
    world.insert("t", (3, "c"))
    world.replicate()
    world.restore(backup)
    with pytest.raises(ReplError, match="--allow-bootstrap.*Do NOT before you have looked"):
        repair(world)


def test_a_dump_that_waits_makes_way_for_a_bootstrap(world: ReplWorld) -> None:
    world.insert("t", (3, "c"))
    dump = world.dump()
    mark_incompatible(world)
    assert planned(world).replaced_dump == dump.directory
    report = repair(world, is_bootstrap_allowed=True)
    assert steps(report) == [(Step.BOOTSTRAP, ())]
    mended(world, report)


def test_a_replica_that_was_dropped(world: ReplWorld) -> None:
    world.target.drop_database("dst", is_cascade=True)
    plan = planned(world)
    assert (plan.step, plan.dropped) == (Step.BOOTSTRAP, None)
    report = repair(world, is_bootstrap_allowed=True)
    assert steps(report) == [(Step.BOOTSTRAP, ())]
    mended(world, report)


def test_a_database_that_no_load_made_is_left_alone(world: ReplWorld) -> None:
    world.target.drop_database("dst", is_cascade=True)
    world.target.create_database(Database(name="dst"))
    world.replica.create_table("mine")
    with pytest.raises(ReplError, match="--metastore"):
        repair(world, is_bootstrap_allowed=True)
    assert world.target.get_tables("dst") == ("mine",)


def test_the_first_replication_needs_no_permission(empty_world: ReplWorld) -> None:
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    report = repair(empty_world)
    assert steps(report) == [(Step.GO_ON, ())]
    mended(empty_world, report)


def test_tables_by_name_and_pattern(world: ReplWorld) -> None:
    plan = planned(world, "T", patterns=("o.*r", "p.*"))
    assert (plan.step, plan.tables) == (Step.TABLES, ("other", "parted", "t"))
    report = repair(world, "other", patterns=("t",))
    assert steps(report) == [(Step.TABLES, ("other", "t"))]
    assert report.comparison is not None
    assert report.comparison.compared.tables == 2
    mended(world, report)


def test_a_name_or_pattern_of_nothing_is_refused(world: ReplWorld) -> None:
    with pytest.raises(ReplError, match="no table typo"):
        repair(world, "typo")
    with pytest.raises(ReplError, match="no table of src at the source is called as 'x.*'"):
        repair(world, patterns=("x.*",))
    with pytest.raises(ReplError, match="no regular expression"):
        repair(world, patterns=("(",))
    assert repair(world).steps == ()


def test_tables_are_brought_after_a_bootstrap_that_waits(empty_world: ReplWorld) -> None:
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    empty_world.dump()
    report = repair(empty_world, "t")
    assert [one.step for one in report.steps] == [Step.GO_ON]  # which brings it whole
    mended(empty_world, report)


def test_what_only_the_load_finds_out_is_ended_too(world: ReplWorld) -> None:
    """Somebody took a write id that the source gives next: no plan of a dump or load sees it."""
    open_replica(world)
    with world.replica.transaction() as txn:
        txn.insert("other", [(8, "foreign")])
    world.insert("other", (2, "y"))
    told: list[str] = []
    world.clock.advance_ms(1000)
    report = repair_of(world, told=told).run(request("t"))  # nothing else is compared
    assert steps(report) == [(Step.TABLES, ("other", "t"))]
    assert len(told) == 2
    mended(world, report)


def test_the_last_cycle_tells_what_to_do(world: ReplWorld) -> None:
    failure = "lost. To bring the table whole instead: 'repl dump src --table-anew t' at"
    last = LastFailure(message=failure, ended_at_ms=world.clock.now_ms() + 60_000)
    assert planned(world, last_failure=last).tables == ("t",)
    assert planned(world, last_failure=replace(last, ended_at_ms=0)).step is Step.NOTHING


def test_what_no_step_mends_is_left_and_told(world: ReplWorld) -> None:
    open_replica(world)
    world.replica.create_table("mine")
    report = repair(world)
    assert (report.steps, report.exit_code) == ((), 2)
    assert "table mine is on the replica only" in report.left[0].text
    assert "mine" in world.target.get_tables("dst")


def test_what_differs_though_it_came_whole_is_left(world: ReplWorld) -> None:
    """The source itself cannot be read; bringing that again and again ends nothing."""
    (file,) = sorted(world.path("t").rglob("bucket_*"))
    file.write_bytes(b"no ORC")
    report = repair(world)
    assert steps(report) == [(Step.TABLES, ("t",))]
    assert report.exit_code == 2
    assert "though it was just brought whole" in report.left[0].text


def test_a_replica_that_moved_on_meanwhile_is_not_dropped(world: ReplWorld) -> None:
    """I10: a load has run since the repair looked."""
    mark_incompatible(world)

    class MovesOn(list[str]):
        def append(self, _: str) -> None:
            database = world.target.get_database("dst")
            parameters = {**database.parameters, "repl.last.id": "999"}
            world.target.alter_database("dst", replace(database, parameters=parameters))

    with pytest.raises(ReplError, match="not as it was when the repair was planned"):
        repair_of(world, told=MovesOn()).run(request(is_bootstrap_allowed=True))
    assert set(world.target.get_tables("dst")) == {"other", "parted", "t"}


def mark_incompatible(world: ReplWorld) -> None:
    database = world.target.get_database("dst")
    parameters = {**database.parameters, INCOMPATIBLE: "true"}
    world.target.alter_database("dst", replace(database, parameters=parameters))


def lose_archived(world: ReplWorld, table: str) -> None:
    """What a compaction replaced is gone from the archive."""
    world.compact(table, CompactionType.MAJOR)
    world.clean()
    for path in world.cmroot.iterdir():
        if path.is_file():
            path.unlink()


def purge_events(world: ReplWorld) -> None:
    """All that are there now."""
    world.clock.advance_ms(40 * 86_400_000)
    world.source.run_housekeeping()
