"""A replica is proved equal to its source, while both live: real dumps and loads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.connect import connected
from hms_bridge.errors import ReplError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import WriteId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.handover.own_part import Access, set_access
from hms_bridge.server.serve import MetastoreServer
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import (
    assert_equal,
    compare,
    equal_tables,
    told,
)


def test_equal_after_a_bootstrap_and_incrementals(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    assert_equal(world, rows=7)
    world.delete("t", 2)
    world.update("t", (3, "changed"))
    world.add_partition("parted", "z")
    world.insert("parted", (9, "z"), partition="p=z")
    world.delete("parted", 1, partition="p=x")
    world.source.drop_partitions("src", "parted", ["p=y"])
    world.create_table("later", note="n")
    world.insert("later", (1, "a"))
    world.replicate()
    assert_equal(world, rows=5)
    assert equal_tables(compare(world)) == ["later", "parted", "t"]
    assert equal_tables(compare(world, "later")) == ["later"]


def test_what_was_looked_at_is_told(busy_world: ReplWorld) -> None:
    busy_world.replicate()
    (found,) = compare(busy_world, "parted", checksums=True).findings
    assert (
        found.what == "definition, 2 partitions, write ids up to 2, 2 files of the source, 4 rows"
    )
    (found,) = compare(busy_world, "parted", rows=False).findings
    assert found.what == "definition, 2 partitions, write ids up to 2, 2 files of the source"


@pytest.mark.parametrize("kind", [CompactionType.MINOR, CompactionType.MAJOR])
@pytest.mark.parametrize("side", ["source", "replica", "both"])
def test_a_compaction_of_one_side_is_no_difference(
    busy_world: ReplWorld, kind: CompactionType, side: str
) -> None:
    world = busy_world
    world.delete("t", 1)
    world.update("t", (2, "new"))
    world.replicate()
    world.insert("t", (4, "d"))
    world.replicate()
    set_access(world.target, "dst", Access.WRITES)
    for one in {"source": [world], "replica": [world.replica]}.get(side, [world, world.replica]):
        one.compact("t", kind)
        one.clean()
    assert_equal(world, rows=7)
    (found,) = compare(world, "t", rows=False).of(Verdict.LAID_OUT) or (None,)
    assert (found is None) == (side == "both")


def test_all_rows_deleted_and_compacted_away_is_no_difference(busy_world: ReplWorld) -> None:
    world = busy_world
    world.delete("t", 1, 2, 3)
    world.replicate()
    world.compact("t")
    world.clean()
    assert_equal(world, rows=4)


def test_what_the_source_commits_since_is_left_out(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    early = world.begin()
    early.insert("t", [(50, "early")])
    lost = world.begin()
    lost.insert("t", [(60, "lost")])
    world.insert("t", (4, "d"))
    world.replicate()
    early.commit()
    lost.abort()
    world.insert("t", (5, "e"))
    world.delete("t", 1)
    world.update("parted", (2, "new"), partition="p=x")
    world.metastore.run_housekeeping()
    report = compare(world, checksums=True)
    assert (told(report), report.compared.rows) == ([], 8)
    assert report.source_event_id > report.event_id
    world.compact("t", CompactionType.MINOR)
    report = compare(world)
    assert (told(report), report.compared.rows) == ([], 8)


def test_equal_although_the_source_compacts_and_goes_on(busy_world: ReplWorld) -> None:
    world = busy_world
    world.delete("t", 3)
    world.replicate()
    world.compact("t")
    world.clean()
    world.insert("t", (5, "e"))
    world.insert("parted", (5, "e"), partition="p=x")
    report = compare(world)
    assert (told(report), report.compared.rows) == ([], 6)
    assert [one.table for one in compare(world, rows=False).of(Verdict.LAID_OUT)] == ["t"]


def test_compacted_beyond_the_event_is_undecided(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (5, "e"))
    world.compact("t")
    world.clean()
    report = compare(world)
    (found,) = told(report)
    assert (found.verdict, found.table, report.exit_code) == (Verdict.UNDECIDED, "t", 3)
    assert "compacted beyond event" in found.why
    world.replicate()
    assert_equal(world, rows=8)


def test_definitions_that_the_source_changed_since_are_undecided(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.create_table("new")
    world.create_table("gone")
    world.replicate()
    altered = world.describe("t")
    world.source.alter_table(
        "src", "t", replace(altered, parameters={**altered.parameters, "color": "blue"})
    )
    world.add_partition("parted", "z")
    world.source.drop_table("src", "gone")
    world.create_table("newest")
    report = compare(world)
    assert {(one.table, one.partition, one.verdict) for one in told(report)} == {
        ("t", None, Verdict.UNDECIDED),
        ("parted", "p=z", Verdict.UNDECIDED),
        ("gone", None, Verdict.UNDECIDED),
        ("newest", None, Verdict.UNDECIDED),
    }
    assert (report.exit_code, equal_tables(report)) == (3, ["new"])
    assert "event" in told(report)[0].why
    world.replicate()
    assert told(compare(world)) == []


def test_a_rebalance_since_is_undecided(busy_world: ReplWorld) -> None:
    """It gives rows other ids, and no event carries them."""
    world = busy_world
    world.replicate()
    world.rebalance("t", WriteId(1))
    (found,) = told(compare(world))
    assert (found.table, found.verdict) == ("t", Verdict.UNDECIDED)
    world.dump(tables_anew=("t",))
    world.load()
    assert told(compare(world)) == []


def test_renamed_tables(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    open_write = world.begin()
    open_write.insert("parted", [(8, "open")], partition="p=x")
    world.source.alter_table("src", "t", replace(world.describe("t"), name="renamed"))
    undecided = compare(world)
    assert {(one.table, one.verdict) for one in told(undecided)} == {
        ("t", Verdict.UNDECIDED),
        ("renamed", Verdict.UNDECIDED),
    }
    world.insert("renamed", (8, "h"))
    world.replicate()
    open_write.commit()
    report = compare(world)
    assert (told(report), equal_tables(report)) == ([], ["parted", "renamed"])


def test_both_sides_behind_their_servers(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    world.insert("t", (4, "d"))
    world.add_partition("parted", "z")
    with (
        MetastoreServer(0, world.source) as ours,
        MetastoreServer(0, world.target) as theirs,
        connected(f"thrift://127.0.0.1:{ours.port}") as source,
        connected(f"thrift://127.0.0.1:{theirs.port}") as target,
    ):
        report = compare(world, source=source, target=target)
    assert report == compare(world)
    assert [(one.table, one.partition) for one in told(report)] == [("parted", "p=z")]
    assert report.compared.rows == 7
    assert world.open_txn_ids() == []


def test_the_cleaner_takes_nothing_that_is_compared(busy_world: ReplWorld) -> None:
    """A compaction that commits while a table is read leaves the files there until it is done."""
    world = busy_world
    world.insert("t", (4, "d"))
    world.replicate()
    passes: list[int] = []

    def compact_and_clean() -> None:
        world.compact("t")
        passes.append(world.clean())

    source = Interrupted(world.source, compact_and_clean, before="get_max_allocated_write_id")
    report = compare(world, "t", source=source)
    assert (told(report), report.compared.rows, passes) == ([], 4, [0])
    assert world.clean() > 0


def test_only_what_the_scope_covers_is_compared(busy_world: ReplWorld) -> None:
    world = busy_world
    world.dump(scope=ReplScope.parse("src.'t'"))
    world.load()
    world.insert("parted", (9, "z"), partition="p=x")
    report = compare(world)
    assert (report.exit_code, equal_tables(report)) == (0, ["t"])
    assert report.scope.text == "src.'t'"
    with pytest.raises(ReplError, match="parted is outside of src.'t'"):
        compare(world, "parted")
