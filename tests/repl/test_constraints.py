"""Constraints of a source come to its replica: with a bootstrap, with events, with a table anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.model.target import TableName
from hms_bridge.repl.dump.event_source import is_of
from hms_bridge.repl.dump.plan import IncrementalRules
from hms_bridge.repl.dump.tables_anew import names_of_event
from hms_bridge.repl.format.constraints import format_constraints, parse_constraints
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.wire.convert_constraint import TableConstraints, constraints_message
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld

KEY = ColumnConstraint(
    name="pk", kind=ConstraintKind.PRIMARY_KEY, column="id", is_enabled=False, is_relied_on=True
)
OWN = (
    ColumnConstraint(name="ck", kind=ConstraintKind.CHECK, column=None, expression="id > 0"),
    ColumnConstraint(name="dv", kind=ConstraintKind.DEFAULT, column="v", expression="'é'"),
    ColumnConstraint(name="nn", kind=ConstraintKind.NOT_NULL, column="v"),
    KEY,
    ColumnConstraint(name="uk", kind=ConstraintKind.UNIQUE, column="id", is_enabled=False),
    ColumnConstraint(
        name="uk", kind=ConstraintKind.UNIQUE, column="v", position=2, is_enabled=False
    ),
)


def foreign(database: str, name: str = "fk", table: str = "t") -> ColumnConstraint:
    return ColumnConstraint(
        name=name,
        kind=ConstraintKind.FOREIGN_KEY,
        column="id",
        is_enabled=False,
        refers_to=ReferredColumn(
            database_name=database, table_name=table, column="id", key_name="pk"
        ),
    )


@pytest.fixture
def world(tmp_path: Path):
    world = ReplWorld(tmp_path)
    for name in ("t", "child"):
        world.create_table(name)
    yield world
    world.close()


def add(world: ReplWorld, table: str, *constraints: ColumnConstraint) -> None:
    for name in dict.fromkeys(one.name for one in constraints):
        world.source.add_constraints("src", table, [one for one in constraints if one.name == name])


def of(world: ReplWorld, table: str) -> tuple[ColumnConstraint, ...]:
    return world.target.get_constraints("dst", table)


def test_a_bootstrap_brings_constraints_of_all_kinds(world):
    add(world, "t", *OWN)
    add(world, "child", foreign("src"))
    world.replicate()
    assert of(world, "t") == world.source.get_constraints("src", "t") == OWN
    assert of(world, "child") == (foreign("dst"),)


def test_events_bring_constraints_of_all_kinds_and_take_them(world):
    world.replicate()
    add(world, "t", *OWN)
    add(world, "child", foreign("src"))
    report = world.replicate()[1]
    assert of(world, "t") == OWN
    assert of(world, "child") == (foreign("dst"),)
    assert report.events["EVENT_ADD_FOREIGNKEY"] == report.events["EVENT_ADD_CHECKCONSTRAINT"] == 1
    for name in ("ck", "uk"):
        world.source.drop_constraint("src", "t", name)
    world.source.drop_constraint("src", "child", "fk")
    assert world.replicate()[1].events == {"EVENT_DROP_CONSTRAINT": 3}
    assert [one.name for one in of(world, "t")] == ["dv", "nn", "pk"]
    assert of(world, "child") == ()


def test_what_a_bootstrap_brought_gives_way_to_the_last_event(world):
    """The events between the dump's first event and its snapshot are in both."""
    other = replace(KEY, name="pk2", column="v")

    def change() -> None:
        add(world, "t", KEY, OWN[2])
        world.source.drop_constraint("src", "t", "nn")
        world.source.drop_constraint("src", "t", "pk")
        add(world, "t", other, replace(OWN[2], column="id"))

    world.dump(Interrupted(world.source, change, after="get_current_event_id"))
    world.load()
    expected = (replace(OWN[2], column="id"), other)
    assert of(world, "t") == expected
    world.replicate()
    assert of(world, "t") == expected


def test_a_constraint_on_a_column_that_a_bootstrap_missed_is_left_out(world):
    """Added and lost, with its column, between the dump's first event and its snapshot."""

    def change() -> None:
        add(world, "t", OWN[2])
        table = world.describe("t")
        storage = replace(table.storage, columns=table.storage.columns[:1])
        world.source.alter_table("src", "t", replace(table, storage=storage))

    world.dump(Interrupted(world.source, change, after="get_current_event_id"))
    world.load()
    assert world.source.get_constraints("src", "t") == of(world, "t") == ()
    report = world.replicate()[1]
    assert of(world, "t") == ()
    assert report.notes == ("constraint nn of dst.t is left out: column v is not there",)


def test_a_load_is_repeated_without_harm(world):
    """As if it had been stopped after its last event, and nothing was recorded."""
    world.replicate()
    add(world, "t", *OWN)
    world.dump()
    before = world.target.get_database("dst")
    world.load()
    last = world.target.get_current_event_id()
    world.target.alter_database("dst", before)
    world.load()
    assert of(world, "t") == OWN
    request = NotificationRequest(last_event_id=last)
    told = {event.type for event in world.target.get_next_notification(request)}
    assert not {kind for kind in told if "CONSTRAINT" in kind or "KEY" in kind}


def test_a_foreign_key_to_another_database_is_left_out_with_a_note(world):
    world.source.create_database(Database(name="elsewhere"))
    world.source.create_table(
        replace(
            world.describe("t"),
            name="p",
            database_name="elsewhere",
            id=None,
            storage=replace(world.describe("t").storage, location=None),
        )
    )
    world.source.add_constraints("elsewhere", "p", [KEY])
    add(world, "child", foreign("elsewhere", table="p"))
    report = world.replicate()[1]
    assert of(world, "child") == ()
    (note,) = report.notes
    assert "foreign key fk of dst.child is left out: elsewhere.p has no such key here" in note
    add(world, "child", foreign("elsewhere", "fk2", "p"))
    assert len(world.replicate()[1].notes) == 1


def test_a_foreign_key_is_of_the_table_that_has_it():
    """Hive tells it where the other table is."""
    added = TableConstraints(
        kind=ConstraintKind.FOREIGN_KEY,
        database_name="mine",
        table_name="t",
        constraints=(foreign("theirs"),),
    )
    event = NotificationEvent(
        id=EventId(7),
        time_seconds=1,
        type="ADD_FOREIGNKEY",
        database_name="theirs",
        table_name="p",
        message=json.dumps(constraints_message(added, 1)),
    )
    assert (is_of(event, "mine"), is_of(event, "theirs")) == (True, False)
    assert names_of_event(event, "mine") == {"t"}


def test_a_table_that_comes_anew_keeps_foreign_keys_to_it(world):
    add(world, "t", *OWN)
    add(world, "child", foreign("src"))
    world.replicate()
    world.source.drop_constraint("src", "t", "nn")
    world.dump(tables_anew=("t",))
    world.load()
    assert [one.name for one in of(world, "t")] == ["ck", "dv", "pk", "uk", "uk"]
    assert of(world, "child") == (foreign("dst"),)


def test_a_replica_may_do_without_constraints(world):
    add(world, "t", KEY)
    passed = frozenset({"_constraints", "EVENT_ADD_NOTNULLCONSTRAINT"})
    world.dump(events=IncrementalRules(passed_kinds=passed))
    loader = world.loader()
    loader.run(loader.plan(world.load_request))
    add(world, "t", OWN[2])
    world.dump()
    request = replace(world.load_request, rules=DumpRules(passed_kinds=passed))
    plan = loader.plan(request)
    assert (dict(plan.events), dict(plan.passed)) == ({}, {"EVENT_ADD_NOTNULLCONSTRAINT": 1})
    loader.run(plan)
    assert of(world, "t") == ()


def test_a_file_of_another_table_is_refused_before_anything_is_loaded(world):
    add(world, "t", KEY)
    directory = Path((world.dump().directory or "").removeprefix("file:"))
    (directory / "hive" / "_hms_bridge_manifest").unlink()
    (directory / "hive" / "_finished_dump").write_text("")
    world.is_from_hive = True
    file = directory / "hive/metadata/src/_constraints/c_t"
    file.rename(file.with_name("c_child"))
    with pytest.raises(ReplError, match=r"c_child: it is of src\.t, not of src\.child"):
        world.load()
    file.with_name("c_child").rename(file.with_name("x_t"))
    with pytest.raises(ReplError, match=r"x_t: no file of constraints is called so"):
        world.load()
    assert "dst" not in world.target.get_databases()


@pytest.mark.golden
def test_files_of_real_hive_are_read_and_come_back(cycle):
    root = cycle.dump("02") / "hive/metadata/src/_constraints"
    for name, kinds in (("c_t_pk", 5), ("f_t_fk", 1)):
        text = (root / name).read_text()
        found = parse_constraints(text, name, TableName("src", name[2:]))
        assert len(found) == kinds
        constraints = [one for of_table in found for one in of_table.constraints]
        assert format_constraints(TableName("src", name[2:]), constraints, 1795301876) == text


def made_at_once(world: ReplWorld, *constraints: ColumnConstraint, name: str = "born") -> Path:
    """A table that comes with its constraints in one call; where its directory is."""
    table = replace(world.describe("t"), id=None, name=name)
    table = replace(table, storage=replace(table.storage, location=None))
    world.source.create_constrained_table(table, constraints)
    return world.path(name)


def test_a_table_that_is_made_with_constraints_brings_them(world):
    world.replicate()
    before = world.source.get_current_event_id()
    own_key = replace(foreign("src", "fkb", "born"), column="id")
    made_at_once(world, *OWN, own_key)
    told = world.source.get_next_notification(NotificationRequest(last_event_id=before))
    assert [event.type for event in told] == [
        "CREATE_TABLE",
        "ADD_PRIMARYKEY",
        "ADD_UNIQUECONSTRAINT",
        "ADD_NOTNULLCONSTRAINT",
        "ADD_DEFAULTCONSTRAINT",
        "ADD_CHECKCONSTRAINT",
        "ADD_FOREIGNKEY",
    ]
    world.replicate()
    there = of(world, "born")
    assert [one.name for one in there] == [
        one.name for one in world.source.get_constraints("src", "born")
    ]
    assert {one.name for one in there} == {*(one.name for one in OWN), "fkb"}


def test_a_table_whose_constraint_is_refused_is_not_made(world):
    """Neither in the database nor as a directory; and no event tells of it."""
    before = world.source.get_current_event_id()
    with pytest.raises(MetaError):
        made_at_once(world, KEY, foreign("src", table="t"))
    assert "born" not in world.source.get_tables("src")
    assert not (world.folder / "source" / "src.db" / "born").exists()
    assert world.source.get_current_event_id() == before


def test_events_of_a_table_with_constraints_are_in_hives_order(world):
    """As a real Hive 4.0.1 wrote them (tests/golden/wire)."""
    add(world, "t", KEY)
    before = world.source.get_current_event_id()
    made_at_once(world, *OWN, foreign("src", "fkt", "t"))
    told = world.source.get_next_notification(NotificationRequest(last_event_id=before))
    assert [event.type for event in told] == [
        "CREATE_TABLE",
        "ADD_PRIMARYKEY",
        "ADD_FOREIGNKEY",
        "ADD_UNIQUECONSTRAINT",
        "ADD_NOTNULLCONSTRAINT",
        "ADD_DEFAULTCONSTRAINT",
        "ADD_CHECKCONSTRAINT",
    ]
