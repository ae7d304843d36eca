"""Statistics that a dump notes again and again reach the replica once, as they were last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.model.catalog import Column, Table
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.load.plan import LoadReport
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare

ALTERS = "EVENT_ALTER_TABLE"


def count(world: ReplWorld, name: str, rows: int) -> None:
    """As a Hive's INSERT does beside its commit."""
    table = world.describe(name)
    counted = {"numRows": str(rows), "transient_lastDdlTime": str(rows)}
    parameters = {**table.parameters, **counted}
    world.source.alter_table("src", name, replace(table, parameters=parameters))


def loaded(world: ReplWorld) -> LoadReport:
    world.dump()
    report = world.load()
    assert compare(world, rows=False).of(Verdict.DIFFERENT) == ()
    return report


def on_replica(world: ReplWorld, name: str = "t") -> Table:
    return world.target.get_table("dst", name)


def test_the_last_of_them_alone_is_replayed(world: ReplWorld) -> None:
    world.replicate()
    for rows in (2, 3, 4):
        world.insert("t", (rows, "b"))
        count(world, "t", rows)
    assert loaded(world).events[ALTERS] == 1
    assert on_replica(world).parameters["numRows"] == "4"


def test_each_table_keeps_its_own(world: ReplWorld) -> None:
    world.create_table("u")
    world.replicate()
    for rows, name in ((2, "t"), (3, "u"), (4, "t")):
        count(world, name, rows)
    assert loaded(world).events[ALTERS] == 2
    assert on_replica(world, "u").parameters["numRows"] == "3"


def test_a_definition_is_replayed_and_brings_the_counts_before_it(world: ReplWorld) -> None:
    world.replicate()
    count(world, "t", 2)
    table = world.describe("t")
    columns = (*table.storage.columns, Column(name="more", type="int"))
    altered = replace(table, storage=replace(table.storage, columns=columns))
    world.source.alter_table("src", "t", altered)
    assert loaded(world).events[ALTERS] == 1
    count(world, "t", 3)
    count(world, "t", 4)
    assert loaded(world).events[ALTERS] == 1
    assert [column.name for column in on_replica(world).storage.columns][-1] == "more"


def test_a_definition_is_replayed_though_counts_follow(world: ReplWorld) -> None:
    world.replicate()
    table = world.describe("t")
    noted = replace(table, parameters={**table.parameters, "owner.of.it": "ann"})
    world.source.alter_table("src", "t", noted)
    count(world, "t", 3)
    assert loaded(world).events[ALTERS] == 2


def test_a_rename_takes_its_counts_along(world: ReplWorld) -> None:
    world.replicate()
    count(world, "t", 2)
    world.source.alter_table("src", "t", replace(world.describe("t"), name="u"))
    count(world, "u", 3)
    loaded(world)
    assert on_replica(world, "u").parameters["numRows"] == "3"


@pytest.mark.parametrize("transactional", ["true", "false"])
def test_without_transactions_each_is_replayed(empty_world: ReplWorld, transactional: str) -> None:
    """There they may be trusted, and are all that shows that files came."""
    world = empty_world
    world.create_table("plain", transactional=transactional)
    world.replicate()
    for rows in (1, 2):
        count(world, "plain", rows)
    assert loaded(world).events[ALTERS] == (1 if transactional == "true" else 2)


def test_those_of_a_partition(empty_world: ReplWorld) -> None:
    """Only where each partition has an event of its own, which says what it was before."""
    world = empty_world
    world.create_table("parted", is_partitioned=True)
    for value in ("x", "y"):
        world.add_partition("parted", value)
    world.replicate()
    for rows, value in ((1, "x"), (2, "y"), (3, "x")):
        (partition,) = world.source.get_partitions_by_names("src", "parted", [f"p={value}"])
        counted = replace(partition, parameters={**partition.parameters, "numRows": str(rows)})
        world.source.alter_partitions("src", "parted", [counted], is_event_each=True)
    assert loaded(world).events["EVENT_ALTER_PARTITION"] == 2
    (partition,) = world.target.get_partitions_by_names("dst", "parted", ["p=x"])
    assert partition.parameters["numRows"] == "3"
