"""Dumps of so many events at most: each ends where the next one goes on, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.event_limit import limited_end
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, DumpReport
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.replays import Replays
from tests.repl.test_constraints import KEY, add
from tests.repl.test_discard import discard
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare, told
from tests.support.simulated_clock import DAY_MS


def in_parts(world: ReplWorld, limit: int) -> list[DumpReport]:
    """Dumped and loaded until nothing is left; after each part nothing is different."""
    reports = []
    while True:
        report = world.dump(event_limit=limit)
        if report.kind is DumpKind.NOTHING:
            return reports
        reports.append(report)
        world.load()
        assert compare(world, rows=False).of(Verdict.DIFFERENT) == ()
        if report.left_event_count == 0:
            return reports


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_every_end_is_one_from_which_the_next_dump_goes_on(
    busy_world: ReplWorld, limit: int
) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (9, "i"))
    world.delete("t", 1)
    world.create_table("later")
    world.insert("later", (1, "a"))
    add(world, "later", KEY)
    world.add_partition("parted", "z")
    world.insert("parted", (9, "z"), partition="p=z")
    world.source.drop_partitions("src", "parted", ["p=y"])
    world.source.drop_table("src", "later")
    world.create_table("later", note="n")
    world.update("t", (3, "changed"))
    reports = in_parts(world, limit)
    assert len(reports) > 2
    assert all((one.to_event_id or 0) - (one.from_event_id or 0) <= limit for one in reports)
    world.assert_same()
    assert told(compare(world)) == []


def test_a_transaction_that_ends_beyond_a_dump_stays_open(busy_world: ReplWorld) -> None:
    """It is not open at the source any more when the dump is made."""
    world = busy_world
    world.replicate()
    writer = world.begin()
    writer.insert("t", [(50, "late")])
    lost = world.begin()
    lost.insert("t", [(60, "lost")])
    at = world.source.get_current_event_id()
    writer.commit()
    lost.abort()
    stood = world.target.get_database("dst").parameters["repl.last.id"]
    report = world.dump(event_limit=at - int(stood))
    assert report.to_event_id == at
    paths = DumpPaths(str(report.directory))
    assert {writer.id, lost.id} <= Replays.read(world.resolve, paths).opened
    listed = Path(paths.open_txns.removeprefix("file:")).read_text().strip().split(",")
    assert {str(writer.id), str(lost.id)} <= set(listed)
    world.load()
    in_parts(world, 1)
    assert "late" in [row["v"] for row in world.replica.rows("t")]
    world.assert_same()


def test_what_a_bootstrap_saw_beside_its_event_comes_with_the_first_dump(
    busy_world: ReplWorld,
) -> None:
    """A load lets write ids be there already until the first incremental one is at its end."""
    world = busy_world

    def change() -> None:
        for number in range(5):
            world.insert("t", (100 + number, "meanwhile"))

    report = world.dump(Interrupted(world.source, change, before="open_txns"))
    world.load()
    assert (report.to_event_id or 0) - (report.from_event_id or 0) > 3
    first = world.dump(event_limit=1)
    assert (first.from_event_id, first.to_event_id) == (report.from_event_id, report.to_event_id)
    world.load()
    world.insert("t", (200, "later"))
    in_parts(world, 1)
    world.assert_same()


def test_tables_that_come_whole_know_no_limit(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    for number in range(3):
        world.insert("t", (100 + number, "x"))
    whole = world.dump(event_limit=1, tables_anew=("t",))
    assert whole.left_event_count == 0
    world.load()
    for number in range(3):
        world.insert("t", (200 + number, "x"))
    assert world.dump(event_limit=1).left_event_count == 0
    world.load()
    world.insert("t", (300, "x"))
    assert world.dump(event_limit=1).left_event_count > 0
    world.load()
    in_parts(world, 1)
    world.assert_same()


def test_a_plain_table_that_an_event_beyond_explains_is_no_write_unseen(
    busy_world: ReplWorld,
) -> None:
    world = busy_world
    world.create_table("plain", transactional="false")
    (world.path("plain") / "000000_0").write_bytes(b"rows")
    world.replicate()
    world.insert("t", (9, "i"))
    world.source.drop_table("src", "plain")
    world.create_table("plain", transactional="false")
    in_parts(world, 1)
    world.assert_same()


def test_a_cycle_goes_on_until_nothing_is_left(busy_world: ReplWorld) -> None:
    world = busy_world
    cycle = OpenCycle(
        dumper=world.dumper(),
        loader=world.loader(),
        dump=replace(world.dump_request(), event_limit=2),
        load=world.load_request,
        release=lambda: None,
    )
    cycle.run()
    for number in range(4):
        world.insert("t", (100 + number, "x"))
    result = cycle.run()
    assert result.until_event_id == world.source.get_current_event_id()
    assert result.event_count >= 12
    world.assert_same()


def test_a_cycle_ends_though_writers_are_faster_than_the_limit(busy_world: ReplWorld) -> None:
    """A part brings two events, an insert makes more: without an end no pin would be let go."""
    world, dumper = busy_world, busy_world.dumper()
    parts: list[EventId | None] = []

    class Dumper:
        plan, marking = dumper.plan, dumper.marking

        def run(self, plan: DumpPlan) -> DumpReport:
            assert len(parts) < 100, "no end"
            world.insert("t", (1000 + len(parts), "x"))
            report = dumper.run(plan)
            parts.append(report.last_event_id)
            return report

    cycle = OpenCycle(
        dumper=cast(ReplDump, Dumper()),
        loader=world.loader(),
        dump=replace(world.dump_request(), event_limit=2),
        load=world.load_request,
        release=lambda: None,
    )
    cycle.run()
    world.insert("t", (999, "x"))
    before = world.source.get_current_event_id()
    parts.clear()
    result = cycle.run()
    assert before <= (result.until_event_id or 0) < world.source.get_current_event_id()


def test_a_plan_tells_what_is_left(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (9, "i"))
    newest = world.source.get_current_event_id()
    plan = world.dumper().plan(world.dump_request(event_limit=1))
    assert plan.left_event_count == newest - (plan.until_event_id or 0) > 0


@pytest.mark.parametrize(
    ("limit", "at_least", "end"),
    [(None, 0, 90), (5, 0, 15), (100, 0, 90), (5, 40, 40), (5, 99, 90)],
)
def test_where_a_dump_ends(limit: int | None, at_least: int, end: int) -> None:
    ended = limited_end(EventId(10), EventId(90), limit, at_least=EventId(at_least))
    assert ended == end


def test_a_discarded_dump_leaves_what_comes_together_together(busy_world: ReplWorld) -> None:
    """What a bootstrap saw beside its event, and write ids of a table that came whole, are let be
    there in one load only, whatever was discarded between."""
    world = busy_world

    def change() -> None:
        for number in range(5):
            world.insert("t", (100 + number, "meanwhile"))

    world.dump(Interrupted(world.source, change, before="open_txns"))
    world.load()
    for _ in range(2):
        world.dump(event_limit=1)
        discard(world)
    world.dump(event_limit=1)
    world.load()
    in_parts(world, 1)
    world.dump(Interrupted(world.source, change, before="open_txns"), tables_anew=("t",))
    world.load()
    world.insert("t", (200, "later"))
    world.dump(event_limit=1)
    discard(world)
    world.dump(event_limit=1)
    world.load()
    in_parts(world, 1)
    world.assert_same()


def test_a_write_unseen_after_a_dump_with_a_limit_is_noticed(busy_world: ReplWorld) -> None:
    """The event that the dump left explains what the table held then, and nothing later."""
    world = busy_world
    world.create_table("plain", transactional="false", is_partitioned=True)
    world.add_partition("plain", "x")
    world.add_partition("plain", "y")
    world.replicate()
    world.insert("t", (9, "i"))
    world.source.drop_partitions("src", "plain", ["p=y"])
    assert world.dump(event_limit=1).left_event_count > 0
    world.load()
    (world.path("plain", "p=x") / "000000_0").write_bytes(b"rows")
    with pytest.raises(ReplError, match="a write to plain/p=x, "):
        world.dump(event_limit=1)


def test_what_a_part_leaves_for_the_next_one_is_kept_however_old_it_is(world: ReplWorld) -> None:
    """I5: a replica that was away for weeks catches up in parts, while events and files that are
    older than their time go."""
    world.replicate()
    for number in range(2, 6):
        world.insert("t", (number, "a"))
    world.compact("t")
    assert world.clean() > 0
    world.clock.advance_ms(20 * DAY_MS)
    for _ in range(3):
        report = world.dump(event_limit=3)
        assert report.left_event_count > 0
        world.load()
        world.purge()
        world.source.run_housekeeping()
    world.replicate()
    world.assert_same()
    world.dump()
    assert world.purge() > 0


def test_a_part_holds_no_more_than_the_one_before_it(world: ReplWorld) -> None:
    world.replicate()
    (held,) = (pin for pin in world.source.manifest.pins() if pin.holder == world.policy_pin)
    for number in (2, 3):
        world.insert("t", (number, "a"))
    world.dump(event_limit=1)
    (pin,) = (pin for pin in world.source.manifest.pins() if pin.holder == world.policy_pin)
    assert pin.archived_since_ms == held.archived_since_ms
