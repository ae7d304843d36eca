"""Patterns of tables: the replica has exactly the tables in scope, whatever happens meanwhile (I1,
I11), and nothing goes there that no load made."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.repl.format.dump_metadata import DumpMetadata
from hms_bridge.repl.format.stored_message import message_json
from hms_bridge.repl.handover.own_part import Access, set_access
from hms_bridge.repl.load.plan import LoadKind
from tests.repl.test_constraints import KEY, OWN, add, foreign
from tests.repl.test_edges import external_table
from tests.support.passing import Interrupted
from tests.support.repl_world import ReplWorld


def scope_of(patterns: str) -> ReplScope:
    return ReplScope.parse(f"src.{patterns}" if patterns else "src")


def rename(world: ReplWorld, old: str, new: str) -> None:
    table = world.source.get_table("src", old)
    world.source.alter_table("src", old, replace(table, name=new))


def assert_scoped(world: ReplWorld, patterns: str, *, own: tuple[str, ...] = ()) -> None:
    """The replica has the tables in scope, with rows, row ids and write ids; and its ``own``."""
    scope = scope_of(patterns)
    names = [name for name in world.source.get_tables("src") if scope.contains(name)]
    assert sorted(world.target.get_tables("dst")) == sorted([*names, *own])
    for name in names:
        assert world.replica.rows(name) == world.rows(name), name
        highest = world.source.get_max_allocated_write_id("src", name)
        assert world.target.get_max_allocated_write_id("dst", name) == highest, name


def change(world: ReplWorld, patterns: str):
    return world.dump(scope=scope_of(patterns), is_scope_changed=True)


def make_own(world: ReplWorld, name: str) -> None:
    """A table that somebody makes on the replica."""
    table = world.target.get_table("dst", world.target.get_tables("dst")[0])
    set_access(world.target, "dst", Access.WRITES)
    storage = replace(table.storage, location=None)
    world.target.create_table(replace(table, name=name, parameters={}, storage=storage))


@pytest.fixture
def world(empty_world):
    for name in ("t1", "t2", "u1"):
        empty_world.create_table(name)
        empty_world.insert(name, (1, name))
    return empty_world


@pytest.fixture
def scoped(world):
    """Replicated with t1 and t2, without u1."""
    world.dump(scope=scope_of("'t.*'"))
    world.load()
    assert_scoped(world, "'t.*'")
    return world


def dumped_text(report, name: str) -> str:
    return (Path(report.directory.removeprefix("file:")) / "hive" / name).read_text()


def test_a_bootstrap_brings_what_is_in_scope_and_lists_it_as_hive_does(world):
    report = world.dump(scope=scope_of("'t[0-9]+'.'t2'"))
    assert set(report.tables) == {"t1"}
    assert dumped_text(report, "_tables/src") == "t1\n"
    assert dumped_text(report, "_dumpmetadata").splitlines()[1] == "src\tt[0-9]+\tt2"
    world.load()
    assert_scoped(world, "'t[0-9]+'.'t2'")
    assert world.target.get_database("dst").parameters["hms.bridge.repl.scope"] == "'t[0-9]+'.'t2'"


def test_events_of_others_are_left_out_and_the_scope_goes_on_unsaid(scoped):
    scoped.insert("t1", (2, "b"))
    scoped.insert("u1", (2, "b"))
    with scoped.transaction() as txn:
        txn.insert("t2", [(3, "c")])
        txn.insert("u1", [(3, "c")], statement=1)
    scoped.create_table("u2")
    scoped.create_table("t3")
    scoped.insert("t3", (1, "x"))
    scoped.source.drop_table("src", "u1")
    report, _ = scoped.replicate()
    assert report.kind is DumpKind.INCREMENTAL
    assert not report.tables
    assert_scoped(scoped, "'t.*'")


def test_an_empty_scope_lists_nothing(world):
    report = world.dump(scope=scope_of("'none'"))
    assert dumped_text(report, "_tables/src") == ""
    world.load()
    world.insert("t1", (5, "e"))
    world.replicate()
    assert_scoped(world, "'none'")


def test_another_scope_is_refused_unless_it_is_meant(scoped):
    with pytest.raises(ReplError, match=r"of src.'t.\*', this one would be of src.'u.\*'") as told:
        scoped.dump(scope=scope_of("'u.*'"))
    assert "--change-scope" in str(told.value)
    with pytest.raises(ReplError, match="this one would be of src:"):
        scoped.dump(scope=scope_of(""))
    assert_scoped(scoped, "'t.*'")
    assert scoped.dump(scope=scope_of("'t.*'")).kind is DumpKind.NOTHING


@pytest.mark.parametrize("patterns", ["'u.*'", "'t.*|u.*'.'t1'", "", "'none'", "'T.*'"])
@pytest.mark.parametrize("has_events", [False, True])
def test_the_scope_is_changed(scoped, patterns, has_events):
    if has_events:
        for name in ("t1", "t2", "u1"):
            scoped.insert(name, (2, "b"))
        scoped.source.drop_table("src", "t2")
        scoped.create_table("u2")
    report = change(scoped, patterns)
    assert report.kind is DumpKind.INCREMENTAL
    first = dumped_text(report, "_dumpmetadata").splitlines()[0]
    assert first.endswith("\ttrue")
    scoped.load()
    assert_scoped(scoped, patterns)
    for name in scoped.source.get_tables("src"):
        scoped.insert(name, (9, "later"))
    scoped.replicate()
    assert_scoped(scoped, patterns)
    assert scoped.load().kind is LoadKind.NOTHING


def test_from_all_tables_to_some_and_back(world):
    world.replicate()
    world.insert("u1", (2, "b"))
    change(world, "'t.*'")
    world.load()
    assert_scoped(world, "'t.*'")
    change(world, "")
    world.load()
    assert_scoped(world, "")
    assert "hms.bridge.repl.scope" not in world.target.get_database("dst").parameters
    world.insert("u1", (3, "c"))
    world.replicate()
    world.assert_same()


def test_a_table_is_renamed_out_of_the_scope(scoped):
    scoped.insert("t1", (2, "b"))
    rename(scoped, "t1", "x1")
    scoped.insert("x1", (3, "c"))
    report, _ = scoped.replicate()
    assert report.events.dumped["EVENT_RENAME_DROP_TABLE"] == 1
    assert_scoped(scoped, "'t.*'")
    assert scoped.target.get_tables("dst") == ("t2",)


def test_a_table_is_renamed_within_the_scope_and_then_out_of_it(scoped):
    """Hive goes by the events, and has the table by its first name."""
    rename(scoped, "t1", "t7")
    rename(scoped, "t7", "x1")
    report, _ = scoped.replicate()
    assert report.events.dumped["EVENT_RENAME_DROP_TABLE"] == 2
    assert_scoped(scoped, "'t.*'")


def test_a_table_is_renamed_into_the_scope(scoped):
    rename(scoped, "u1", "t9")
    scoped.insert("t9", (3, "c"))
    report, _ = scoped.replicate()
    assert set(report.tables) == {"t9"}
    assert_scoped(scoped, "'t.*'")
    scoped.insert("t9", (4, "d"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")


def test_tables_change_places_across_the_edge(scoped):
    rename(scoped, "t1", "x")
    rename(scoped, "u1", "t1")
    rename(scoped, "x", "u1")
    scoped.insert("t1", (7, "was u1"))
    scoped.insert("u1", (8, "was t1"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")
    scoped.insert("t1", (9, "later"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")


def test_a_rename_within_the_scope_is_an_event(scoped):
    rename(scoped, "t1", "t8")
    scoped.insert("t8", (3, "c"))
    report, _ = scoped.replicate()
    assert report.events.dumped["EVENT_RENAME_TABLE"] == 1
    assert not report.tables
    assert_scoped(scoped, "'t.*'")


def test_a_table_leaves_and_another_of_its_name_comes(scoped):
    rename(scoped, "t1", "x1")
    scoped.create_table("t1")
    scoped.insert("t1", (5, "new"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")


def test_a_writer_that_is_open_across_a_change_of_scope(scoped):
    txn = scoped.begin()
    txn.insert("t1", [(5, "open")])
    scoped.replicate()
    change(scoped, "'t1'")
    scoped.load()
    txn.commit()
    scoped.replicate()
    assert_scoped(scoped, "'t1'")


def test_a_table_of_somebody_else_stays_when_its_name_leaves_the_scope(scoped):
    scoped.create_table("t5")
    scoped.source.drop_table("src", "t5")
    scoped.replicate()
    make_own(scoped, "t5")
    scoped.create_table("t5")
    scoped.source.drop_table("src", "t5")
    scoped.create_table("t6")
    change(scoped, "'t1|t6'")
    report = scoped.load()
    assert scoped.target.get_tables("dst") == ("t1", "t5", "t6")
    assert any("t5" in note and "stays" in note for note in report.notes)
    assert scoped.load().kind is LoadKind.NOTHING


def test_a_table_of_somebody_else_stays_when_its_name_is_renamed_out_of_the_scope(scoped):
    set_access(scoped.target, "dst", Access.WRITES)
    scoped.target.drop_table("dst", "t1")
    make_own(scoped, "t1")
    scoped.insert("t1", (2, "b"))
    rename(scoped, "t1", "x1")
    report = scoped.replicate()[1]
    assert_scoped(scoped, "'t.*'", own=("t1",))
    assert len([note for note in report.notes if "dst.t1 is outside" in note]) == 1


def test_a_table_of_somebody_else_is_not_replaced_by_one_that_is_new_in_scope(scoped):
    make_own(scoped, "u1")
    before = scoped.target.get_tables("dst")
    stands_at = scoped.last_event()
    change(scoped, "")
    with pytest.raises(ReplError, match="brings u1.* no load made it"):
        scoped.load()
    assert (scoped.target.get_tables("dst"), scoped.last_event()) == (before, stands_at)
    scoped.dump(tables_anew=("u1",))
    scoped.load()
    assert_scoped(scoped, "")


def test_a_table_that_is_asked_for_must_be_in_scope(scoped):
    with pytest.raises(ReplError, match="u1 is outside of src"):
        scoped.dump(tables_anew=("u1",))
    with pytest.raises(ReplError, match="t1 is outside of src"):
        scoped.dump(tables_anew=("t1",), scope=scope_of("'u.*'"), is_scope_changed=True)


def test_a_dump_in_the_place_of_one_that_changes_the_scope_changes_it_too(scoped):
    change(scoped, "'t1|u.*'")
    scoped.insert("u1", (4, "d"))
    scoped.dump(tables_anew=("t1",))
    scoped.load()
    assert_scoped(scoped, "'t1|u.*'")


def test_a_discarded_change_is_none(scoped):
    from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
    from tests.support.repl_world import LEASE

    change(scoped, "'u.*'")
    discard = ReplDiscard(
        scoped.source, scoped.resolve, scoped.clock, scoped.token, scoped.source.manifest
    )
    request = DiscardRequest(root=str(scoped.repl_root), database_name="src", lease=LEASE)
    discard.run(discard.plan(request))
    scoped.insert("t1", (2, "b"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")
    change(scoped, "'u.*'")
    scoped.load()
    assert_scoped(scoped, "'u.*'")


def test_a_replica_that_missed_a_change_of_scope_is_told(scoped):
    """No event lies between, so event ids alone would not tell."""
    backup = scoped.replica.backup()
    shutil.copytree(scoped.folder / "target", scoped.folder / "kept")
    change(scoped, "'u.*'")
    scoped.load()
    scoped.insert("u1", (2, "b"))
    scoped.dump()
    scoped.replica.restore(backup)
    with pytest.raises(ReplError, match=r"has the tables 't.\*', and .* from the tables 'u.\*'"):
        scoped.load()


def test_a_second_replica_takes_a_change_of_scope_that_brings_nothing(scoped):
    """It stands at the event at which the dump ends: what it has not got yet is the scope alone."""
    second = scoped.replica.backup()
    report = change(scoped, "'t.*|none'")
    assert (report.from_event_id, report.tables) == (report.to_event_id, {})
    scoped.load()
    scoped.replica.restore(second)
    assert scoped.load().kind is LoadKind.INCREMENTAL
    assert scoped.load().kind is LoadKind.NOTHING
    scoped.insert("t1", (7, "g"))
    scoped.create_table("none")
    scoped.replicate()
    assert_scoped(scoped, "'t.*|none'")


def test_a_scope_that_the_dump_notes_is_not_believed_if_it_was_changed(scoped):
    report = change(scoped, "'u.*'")
    path = Path(report.directory.removeprefix("file:")) / "hive/_hms_bridge_scope"
    fields = json.loads(path.read_text())
    assert fields == {"before": "'t.*'", "tables": ["t1", "t2", "u1"]}
    path.write_text(path.read_text().replace("t1", "t7"))
    with pytest.raises(ReplError, match="_hms_bridge_scope is not as it was"):
        scoped.load()


def test_plain_tables_outside_of_the_scope_are_not_looked_at(scoped):
    scoped.create_table("u9", transactional="false")
    scoped.replicate()
    place = scoped.path("u9")
    place.mkdir(parents=True, exist_ok=True)
    (place / "one").write_text("1")
    scoped.insert("t1", (2, "b"))
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")


def test_a_plan_tells_what_comes_and_goes(scoped):
    dumper = scoped.dumper()
    request = scoped.dump_request(scope=scope_of("'u.*'"), is_scope_changed=True)
    plan = dumper.plan(request)
    assert plan.anew == ("t1", "t2", "u1")
    assert "the scope was src.'t.*', and becomes src.'u.*'" in plan.reason
    assert dumper.size(plan).file_count == 1


def test_constraints_and_partitions_outside_of_the_scope_do_no_harm(scoped):
    add(scoped, "u1", *OWN)
    add(scoped, "t1", foreign("src", table="u1"))
    add(scoped, "t2", KEY)
    add(scoped, "u1", foreign("src", name="out", table="t2"))
    scoped.source.drop_constraint("src", "u1", "ck")
    scoped.create_table("u3", is_partitioned=True)
    for value in ("1", "2"):
        scoped.add_partition("u3", value)
    scoped.insert("u3", (1, "x"), partition="p=1")
    part = scoped.source.get_partition("src", "u3", ["1"])
    scoped.source.rename_partition("src", "u3", ["1"], replace(part, values=("9",)))
    scoped.source.drop_partitions("src", "u3", ["p=2"])
    scoped.replicate()
    assert_scoped(scoped, "'t.*'")
    assert scoped.target.get_constraints("dst", "t1") == ()
    assert scoped.target.get_constraints("dst", "t2") == (KEY,)
    change(scoped, "'t.*|u.*'")
    scoped.load()
    assert_scoped(scoped, "'t.*|u.*'")
    kinds = {one.name for one in scoped.target.get_constraints("dst", "u1")}
    assert kinds == {"dv", "nn", "pk", "uk", "out"}


def test_a_foreign_key_into_the_scope_is_had_when_its_other_table_comes(scoped):
    """The replica could not have it before; the table that refers to it stays as it is."""
    add(scoped, "u1", KEY)
    add(scoped, "t1", foreign("src", table="u1"))
    scoped.replicate()
    change(scoped, "")
    scoped.load()
    assert scoped.target.get_constraints("dst", "t1") == (foreign("dst", table="u1"),)


def test_data_of_external_tables_outside_of_the_scope_is_not_copied(scoped):
    for name in ("te", "ue"):
        place = scoped.folder / name
        place.mkdir()
        (place / "one").write_text(name)
        external_table(scoped, name, place)
    base = str(scoped.folder / "ext")
    report = scoped.dump(external_base=base)
    assert [line.split("#")[2] for line in dumped_text(report, "_file_list_external").split()] == [
        "te"
    ]
    loader = scoped.loader()
    loader.run(loader.plan(replace(scoped.load_request, external_base=base)))
    assert scoped.target.get_tables("dst") == ("t1", "t2", "te")


def test_a_bootstrap_that_is_asked_for_keeps_the_scope(scoped):
    plan = scoped.dumper().plan(scoped.dump_request(is_bootstrap_forced=True))
    assert plan.tables == ("t1", "t2")
    assert plan.scope_now == scope_of("'t.*'")


def test_a_hives_dump_tells_write_ids_of_a_table_that_comes_whole_by_a_rename(scoped):
    """AllocWriteIdHandler does not ask for those tables; the replica has them at the end only."""
    rename(scoped, "u1", "t9")
    scoped.insert("t9", (2, "b"))
    scoped.insert("t1", (2, "b"))
    report = scoped.dump()
    (event,) = (
        event
        for event in scoped.source.get_next_notification(NotificationRequest(last_event_id=0))
        if event.type == "ALLOC_WRITE_ID_EVENT"
        and event.table_name == "t9"
        and event.id > report.from_event_id
    )
    hive = Path(report.directory.removeprefix("file:")) / "hive"
    for path in (*hive.glob("_hms_bridge_*"), hive / "_finished_dump"):
        path.unlink()
    place = hive / "events_batch_1" / str(event.id)
    place.mkdir()
    told = DumpMetadata(
        type="EVENT_ALLOC_WRITE_ID",
        from_event_id=event.id,
        to_event_id=event.id,
        payload=json.dumps(json.loads(message_json(event))),
    )
    (place / "_dumpmetadata").write_text(told.format())
    progress = json.loads((hive / "_events_dump").read_text())
    progress["eventsDumpedCount"] += 1
    (hive / "_events_dump").write_text(json.dumps(progress))
    (hive / "_finished_dump").write_text("")
    scoped.is_from_hive = True
    scoped.load()
    assert_scoped(scoped, "'t.*'")


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_table_that_is_lost_as_it_leaves_the_scope_goes_too(scoped, is_renamed):
    """The next dump is not of it, so that no event would ever tell."""

    def happens():
        if is_renamed:
            rename(scoped, "t1", "x1")
        else:
            scoped.source.drop_table("src", "t1")

    plan = scoped.dumper().plan(scoped.dump_request(scope=scope_of("'t2'"), is_scope_changed=True))
    racing = Interrupted(scoped.source, happens, after="get_current_event_id")
    scoped.dumper(racing).run(plan)
    scoped.load()
    assert_scoped(scoped, "'t2'")
    scoped.insert("t2", (7, "later"))
    scoped.replicate()
    assert_scoped(scoped, "'t2'")
