"""What is not compared is named; and neither side stands still while it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import delete, select

from hms_bridge.backend.schema.txn_tables import TXN_COMPONENTS, TXN_TO_WRITE_ID, TXNS
from hms_bridge.repl.compare.described import CompareReport, Verdict
from hms_bridge.repl.handover.own_part import Access, set_access
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import (
    compare,
    different,
    equal_tables,
    told,
)


def not_compared(report: CompareReport) -> set[tuple[str | None, str]]:
    return {(one.table, one.what) for one in report.of(Verdict.NOT_COMPARED)}


def test_a_table_without_transactions(busy_world: ReplWorld) -> None:
    world = busy_world
    world.create_table("plain", transactional="false")
    (world.path("plain") / "000000_0").write_bytes(b"some rows")
    world.replicate()
    report = compare(world, "plain", checksums=True)
    assert (told(report), not_compared(report)) == ([], {("plain", "rows")})
    assert report.of(Verdict.EQUAL)[0].what == "definition, 1 file of the source"
    copied = world.replica.path("plain") / "000000_0"
    copied.write_bytes(b"SOME ROWS")
    assert told(compare(world, "plain")) == []
    assert different(compare(world, "plain", checksums=True)) == {("plain", None, "file 000000_0")}
    copied.unlink()
    assert different(compare(world, "plain", rows=False)) == {("plain", None, "file 000000_0")}


def test_a_table_without_identifiers(busy_world: ReplWorld) -> None:
    world = busy_world
    world.create_table("io", transactional_properties="insert_only")
    with world.transaction() as txn:
        name = f"delta_{txn.write_id('io'):07d}_{txn.write_id('io'):07d}_0000"
        (world.path("io") / name).mkdir()
        (world.path("io") / name / "000000_0").write_bytes(b"some rows")
    world.replicate()
    report = compare(world, "io", checksums=True)
    assert (told(report), not_compared(report)) == ([], {("io", "rows")})
    assert report.of(Verdict.EQUAL)[0].what == "definition, write ids up to 1, 1 file of the source"
    (world.replica.path("io") / name / "000000_0").unlink()
    assert different(compare(world, "io")) == {("io", None, f"file {name}/000000_0")}


def view_of(world: ReplWorld, name: str, kind: str, text: str = "select 1") -> None:
    table = world.describe("t")
    world.source.create_table(
        replace(
            table,
            name=name,
            id=None,
            type=kind,
            parameters={},
            storage=replace(table.storage, location=None),
            view_original_text=text,
            view_expanded_text=text,
        )
    )


def test_views_are_compared_by_their_texts_and_materialized_ones_are_not(
    busy_world: ReplWorld,
) -> None:
    world = busy_world
    view_of(world, "v", "VIRTUAL_VIEW")
    view_of(world, "mv", "MATERIALIZED_VIEW")
    world.replicate()
    report = compare(world)
    assert (told(report), not_compared(report)) == ([], {("mv", "table")})
    assert equal_tables(report) == ["parted", "t", "v"]
    set_access(world.target, "dst", Access.DEFINITIONS)
    view = world.target.get_table("dst", "v")
    world.target.alter_table("dst", "v", replace(view, view_expanded_text="select 2"))
    assert different(compare(world)) == {("v", None, "expanded view")}


def test_external_tables_are_compared_without_their_files(busy_world: ReplWorld) -> None:
    world = busy_world
    place = world.folder / "external"
    place.mkdir()
    table = world.describe("t")
    world.source.create_table(
        replace(
            table,
            name="e",
            id=None,
            type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
            storage=replace(table.storage, location=f"file:{place}"),
        )
    )
    world.dump()
    loader = world.loader()
    loader.run(loader.plan(replace(world.load_request, external_base=str(world.folder / "ext"))))
    report = compare(world)
    assert (told(report), not_compared(report)) == ([], {("e", "files and rows")})
    assert report.of(Verdict.EQUAL)[0].what == "definition"


def test_a_file_that_no_reader_opens_is_named(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    (world.path("t") / "notes.txt").write_text("by hand")
    report = compare(world, "t")
    assert (told(report), not_compared(report)) == ([], {("t", "file notes.txt")})
    (found,) = report.of(Verdict.NOT_COMPARED)
    assert (found.source, found.replica) == ("there", "missing")


def test_a_partition_that_comes_meanwhile_is_no_difference(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    added = Interrupted(
        world.source, lambda: world.add_partition("parted", "z"), before="get_partition_names"
    )
    report = compare(world, "parted", source=added)
    assert [(one.partition, one.verdict) for one in told(report)] == [("p=z", Verdict.UNDECIDED)]


def load_another_row(world: ReplWorld) -> None:
    world.insert("t", (world.clock.now_ms() % 10**9, "more"))
    world.replicate()


@pytest.mark.parametrize(("times", "verdicts"), [(1, [Verdict.EQUAL]), (9, [Verdict.UNDECIDED])])
def test_a_load_meanwhile_is_noticed(
    busy_world: ReplWorld, times: int, verdicts: list[Verdict]
) -> None:
    world = busy_world
    world.replicate()
    target = Interrupted(
        world.target, lambda: load_another_row(world), times, before="get_valid_write_ids"
    )
    report = compare(world, "t", target=target)
    assert [one.verdict for one in report.findings] == verdicts
    assert report.exit_code == (0 if times == 1 else 3)


def test_a_definition_that_is_ahead_of_its_database_is_undecided(busy_world: ReplWorld) -> None:
    """As a load that was killed leaves it: the event is applied, and not written down yet."""
    world = busy_world
    world.replicate()
    stood = world.target.get_database("dst")
    table = world.describe("t")
    world.source.alter_table("src", "t", replace(table, parameters={**table.parameters, "a": "b"}))
    world.replicate()
    world.target.alter_database("dst", stood)
    (found,) = told(compare(world))
    assert (found.table, found.verdict) == ("t", Verdict.UNDECIDED)
    assert "load to its end" in found.why
    world.load()
    assert told(compare(world)) == []


def test_a_bootstrap_that_was_made_while_rows_came(busy_world: ReplWorld) -> None:
    """Its snapshot is later than the event at which the replica stands."""
    world = busy_world
    hurried = Interrupted(
        world.source, lambda: world.insert("t", (50, "meanwhile")), before="get_open_txns"
    )
    world.dump(hurried)
    world.load()
    report = compare(world)
    assert (told(report), report.compared.rows) == ([], 8)
    world.insert("t", (51, "later"))
    report = compare(world)
    assert (told(report), report.compared.rows) == ([], 8)


def test_write_ids_whose_end_one_side_forgot(busy_world: ReplWorld) -> None:
    """What was aborted, compacted and cleaned up is listed nowhere any more, on one side."""
    world = busy_world
    world.replicate()
    aborted = world.begin()
    aborted.insert("t", [(70, "never")])
    world.insert("t", (4, "d"))
    aborted.abort()
    world.replicate()
    world.compact("t")
    world.clean()
    with world.engine.transaction(write=True) as connection:  # as housekeeping does, some day
        w = TXN_TO_WRITE_ID.c
        connection.execute(delete(TXN_TO_WRITE_ID).where(w.T2W_TABLE == "t", w.T2W_WRITEID == 2))
    txns = world.source.get_open_txns().snapshot()
    (ids,) = world.source.get_valid_write_ids(["src.t"], txns)
    assert ids.aborted_ids == ()
    assert told(compare(world)) == []
    quickly = compare(world, "t", rows=False)
    assert (quickly.exit_code, different(quickly)) == (3, set())
    (found,) = quickly.of(Verdict.UNDECIDED)
    assert found.what == "write ids 2"


@pytest.mark.parametrize("is_at_source", [True, False])
def test_an_aborted_write_that_one_side_forgot_before_its_id(
    busy_world: ReplWorld, is_at_source: bool
) -> None:
    """A Hive forgets txn 20, aborted without components, after minutes; its write id stays while
    txn 19 is open, and is listed as committed meanwhile."""
    world = busy_world
    world.replicate()
    aborted = world.begin()
    aborted.write_id("t")
    aborted.abort()
    world.insert("t", (4, "d"))
    world.replicate()
    side = world if is_at_source else world.replica
    w = TXN_TO_WRITE_ID.c
    owner = select(w.T2W_TXNID).where(w.T2W_TABLE == "t", w.T2W_WRITEID == 2)
    with side.engine.transaction(write=True) as connection:
        connection.execute(delete(TXN_COMPONENTS).where(TXN_COMPONENTS.c.TC_TXNID.in_(owner)))
        gone = connection.execute(delete(TXNS).where(TXNS.c.TXN_ID.in_(owner)))
        assert gone.rowcount == 1
    assert told(compare(world)) == []
    assert told(compare(world, rows=False)) == []
    if is_at_source:  # else the source's cleaner forgets the transaction, too
        world.compact("t")
        world.clean()
        quickly = compare(world, "t", rows=False)
        assert [one.what for one in quickly.of(Verdict.UNDECIDED)] == ["write ids 2"]
        assert told(compare(world)) == []
