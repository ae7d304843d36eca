"""Constraints and functions of a replica are compared with those of its source, by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.repl.compare.described import CompareReport, Finding, Verdict
from hms_bridge.repl.handover.own_part import Access, set_access
from tests.repl.test_constraints import KEY, OWN, add, foreign
from tests.repl.test_functions import content, function, jar, load
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare, different, told


@pytest.fixture
def world(tmp_path: Path):
    world = ReplWorld(tmp_path)
    for name in ("t", "child"):
        world.create_table(name)
    yield world
    world.close()


def verdicts(report: CompareReport) -> list[tuple[Verdict, str | None, str]]:
    return [(one.verdict, one.table, one.what) for one in report.findings]


def change(world: ReplWorld) -> None:
    set_access(world.target, "dst", Access.DEFINITIONS)


class TestConstraints:
    def test_equal_ones_of_all_kinds_are_counted(self, world: ReplWorld) -> None:
        add(world, "t", *OWN)
        add(world, "child", foreign("src"))
        world.replicate()
        report = compare(world)
        assert (told(report), report.compared.constraints) == ([], 6)
        what = {one.table: one.what for one in report.of(Verdict.EQUAL)}
        assert what["t"].startswith("definition, 5 constraints, ")
        assert what["child"].startswith("definition, 1 constraint, ")

    @pytest.mark.parametrize("kind", list(ConstraintKind))
    def test_one_that_the_replica_lost_is_named(
        self, world: ReplWorld, kind: ConstraintKind
    ) -> None:
        add(world, "t", *OWN)
        add(world, "child", foreign("src"))
        world.replicate()
        change(world)
        table = "child" if kind is ConstraintKind.FOREIGN_KEY else "t"
        found = world.target.get_constraints("dst", table)
        (name,) = {one.name for one in found if one.kind is kind}
        world.target.drop_constraint("dst", table, name)
        assert (table, None, f"constraint {name}") in different(compare(world))

    @pytest.mark.parametrize(
        "other",
        [
            replace(KEY, column="v"),
            replace(KEY, is_relied_on=False),
            replace(KEY, is_validated=True),
            replace(KEY, kind=ConstraintKind.UNIQUE),
            ColumnConstraint(
                name="pk", kind=ConstraintKind.CHECK, column=None, expression="id > 0"
            ),
        ],
    )
    def test_one_that_says_something_else_is_named(
        self, world: ReplWorld, other: ColumnConstraint
    ) -> None:
        add(world, "t", KEY)
        world.replicate()
        change(world)
        world.target.drop_constraint("dst", "t", "pk")
        world.target.add_constraints("dst", "t", [other])
        (found,) = told(compare(world))
        assert (found.verdict, found.table, found.what) == (
            Verdict.DIFFERENT,
            "t",
            "constraint pk",
        )
        assert found.source == "primary key: id; not enforced, relied on"
        assert found.replica != found.source

    def test_one_that_only_the_replica_has_is_named(self, world: ReplWorld) -> None:
        world.replicate()
        change(world)
        world.target.add_constraints("dst", "t", [KEY])
        (found,) = told(compare(world))
        assert (found.what, found.source) == ("constraint pk", None)

    def test_a_foreign_key_to_another_table_is_named(self, world: ReplWorld) -> None:
        world.create_table("t2")
        add(world, "t", KEY)
        add(world, "t2", replace(KEY, name="pk2"))
        add(world, "child", foreign("src"))
        world.replicate()
        change(world)
        world.target.drop_constraint("dst", "child", "fk")
        world.target.add_constraints("dst", "child", [foreign("dst", table="t2")])
        (found,) = told(compare(world))
        assert found.source == "foreign key: id to dst.t.id; not enforced, not relied on"
        assert found.replica == "foreign key: id to dst.t2.id; not enforced, not relied on"

    def test_one_that_the_source_made_since_is_undecided(self, world: ReplWorld) -> None:
        world.replicate()
        add(world, "t", KEY)
        (found,) = told(compare(world))
        assert (found.verdict, found.table) == (Verdict.UNDECIDED, "t")
        world.replicate()
        add(world, "child", foreign("src"))
        (found,) = told(compare(world))
        assert (found.verdict, found.table) == (Verdict.UNDECIDED, "child")

    def test_a_foreign_key_that_went_with_its_table_since_is_undecided(
        self, world: ReplWorld
    ) -> None:
        """No event tells of the key: DROP TABLE takes it along."""
        add(world, "t", KEY)
        add(world, "child", foreign("src"))
        world.replicate()
        world.source.drop_table("src", "t")
        found = told(compare(world))
        assert {(one.verdict, one.table) for one in found} == {
            (Verdict.UNDECIDED, "child"),
            (Verdict.UNDECIDED, "t"),
        }
        world.replicate()
        assert told(compare(world)) == []

    def test_a_foreign_key_that_a_load_leaves_out_is_not_compared(self, world: ReplWorld) -> None:
        other = other_table(world)
        world.source.add_constraints(other.database_name, other.name, [KEY])
        world.replicate()
        add(world, "child", foreign(other.database_name, table=other.name))
        world.replicate()
        report = compare(world)
        assert told(report) == []
        (found,) = report.of(Verdict.NOT_COMPARED)
        assert (found.table, found.what) == ("child", "constraint fk")
        assert "other.t has no such key" in found.why

    @pytest.mark.parametrize(
        "kinds", [{"_constraints"}, {"EVENT_ADD_PRIMARYKEY"}, {"ADD_PRIMARYKEY"}]
    )
    def test_what_a_replica_does_without_is_not_compared(
        self, world: ReplWorld, kinds: set[str]
    ) -> None:
        add(world, "t", KEY)
        world.replicate()
        change(world)
        world.target.drop_constraint("dst", "t", "pk")
        report = compare(world, passed=kinds)
        assert told(report) == []
        (found,) = report.of(Verdict.NOT_COMPARED)
        assert "hms.bridge.repl.passed.kinds" in found.why


def other_table(world: ReplWorld) -> Table:
    world.source.create_database(Database(name="other"))
    table = world.describe("t")
    place = world.folder / "other" / "t"
    place.mkdir(parents=True)
    world.source.create_table(
        replace(
            table,
            id=None,
            database_name="other",
            storage=replace(table.storage, location=f"file:{place}"),
        )
    )
    return world.source.get_table("other", "t")


class TestFunctions:
    def test_equal_ones_are_told_with_their_files(self, world: ReplWorld) -> None:
        world.source.create_function(function("f", jar(world)))
        world.source.create_function(function("bare"))
        world.source.create_function(function("far", "ivy://org.example:udf:1.0"))
        world.dump()
        load(world)
        report = compare(world)
        assert (told(report), report.compared.functions) == ([], 3)
        assert [one.what for one in report.of(Verdict.EQUAL) if one.table is None] == [
            "function bare: class, owner",
            "function f: class, owner, 1 file",
            "function far: class, owner, 1 file",
        ]

    def test_another_class_or_owner_is_named(self, world: ReplWorld) -> None:
        world.source.create_function(function("f", jar(world)))
        world.dump()
        load(world)
        change(world)
        made = world.target.get_function("dst", "f")
        world.target.drop_function("dst", "f")
        world.target.create_function(replace(made, class_name="org.G", owner_name="eve"))
        assert [(one.what, one.source, one.replica) for one in told(compare(world))] == [
            ("function f: class", "org.example.F", "org.G"),
            ("function f: owner", "USER bob", "USER eve"),
        ]

    def test_a_file_with_other_bytes_and_one_that_is_gone_are_named(self, world: ReplWorld) -> None:
        world.source.create_function(function("f", jar(world)))
        world.dump()
        load(world)
        made = world.target.get_function("dst", "f")
        copy = Path(made.resources[0].uri.removeprefix("file:"))
        assert content(made) == b"code"
        copy.write_bytes(b"CODE")
        (found,) = told(compare(world))
        assert found.what == "function f: file 1"
        assert (found.source or "").startswith("JAR udf.jar ")
        assert (found.replica or "").startswith("JAR udf.jar ")
        copy.unlink()
        (found,) = told(compare(world))
        assert found.replica == "JAR udf.jar, which is gone"

    def test_one_that_a_side_lacks_is_named(self, world: ReplWorld) -> None:
        for name in ("f", "g"):
            world.source.create_function(function(name))
        world.replicate()
        change(world)
        world.target.drop_function("dst", "f")
        world.target.create_function(replace(function("h"), database_name="dst"))
        assert [(one.what, one.source, one.replica) for one in told(compare(world))] == [
            ("function f", "there", "missing"),
            ("function h", "missing", "there"),
        ]

    def test_what_the_source_changed_since_is_undecided(self, world: ReplWorld) -> None:
        for name in ("f", "g", "same"):
            world.source.create_function(function(name))
        world.replicate()
        world.source.drop_function("src", "f")
        world.source.create_function(function("new"))
        report = compare(world)
        assert undecided(told(report)) == ["function f", "function new"]
        assert report.exit_code == 3
        world.replicate()
        assert told(compare(world)) == []

    @pytest.mark.parametrize("kinds", [{"_functions"}, {"CREATE_FUNCTION"}])
    def test_what_a_replica_does_without_is_not_compared(
        self, world: ReplWorld, kinds: set[str]
    ) -> None:
        world.source.create_function(function("f"))
        world.replicate()
        change(world)
        world.target.drop_function("dst", "f")
        report = compare(world, passed=kinds)
        assert (told(report), [one.what for one in report.of(Verdict.NOT_COMPARED)]) == (
            [],
            ["function f"],
        )


def undecided(findings: list[Finding]) -> list[str]:
    assert {one.verdict for one in findings} == {Verdict.UNDECIDED}
    return [one.what for one in findings]
