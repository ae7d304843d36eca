"""A table that no event can carry on is brought whole: the command stands in the error (I1, I11).

Each case runs what the error says, through the program, and compares both sides.
"""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import Location
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.catalog import TableType
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import WriteId
from hms_bridge.repl.handover.own_part import Access, set_access
from hms_bridge.repl.load.plan import LoadKind
from tests.support.faults import CrashError, Dying
from tests.support.program import run_here
from tests.support.repl_world import ReplWorld


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    empty_world.create_table("other")
    empty_world.insert("other", (1, "x"))
    empty_world.replicate()
    return empty_world


def commands_of(error: Exception) -> list[list[str]]:
    """What stands between quotes and begins with a verb of the program."""
    found = re.findall(r"'((?:repl|sql) [^']*)'", str(error))
    return [shlex.split(one) for one in found]


def carry_out(world: ReplWorld, error: Exception) -> None:
    """Run the commands of an error, each on its side."""
    commands = commands_of(error)
    assert [one[1] for one in commands] == ["dump", "load"], str(error)
    for words in commands:
        side = "source" if words[1] == "dump" else "target"
        into = ("--into", "dst") if words[1] == "load" and "--into" not in words else ()
        answer = run_here(
            *words,
            *into,
            "--metastore", f"sqlite:///{world.folder}/{side}.db3",
            "--root", str(world.repl_root),
            "--set", f"hive.metastore.warehouse.dir={world.folder}/{side}",
            "--set", f"hive.repl.cmrootdir={world.cmroot}",
            "--set", f"hms.bridge.repl.load.roots={world.folder}",
        )  # fmt: skip
        assert answer.exit_code == 0, (words, answer.out, answer.err)
    world.clock.advance_ms(1000)


def go_on(world: ReplWorld) -> None:
    """Both sides are the same, and stay so."""
    world.assert_same()
    for name in world.source.get_tables("src"):
        if world.source.get_table("src", name).is_transactional:
            world.insert(name, (100, "later"))
    world.replicate()
    world.assert_same()


def refused(step, match: str, kind: type[Exception] = ReplError) -> Exception:
    with pytest.raises(kind, match=match) as told:
        step()
    return told.value


def rename(world, old: str, new: str) -> None:
    table = world.source.get_table("src", old)
    world.source.alter_table("src", old, replace(table, name=new))


def test_a_table_is_brought_whole_beside_the_events_of_others(world):
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    report = world.dump(tables_anew=("T",))
    assert set(report.tables) == {"t"}
    world.load()
    assert (
        world.target.get_table("dst", "t")
        .parameters["hive.repl.ckpt.key"]
        .startswith(report.directory)
    )
    go_on(world)


def test_without_an_event_since_the_last_dump_too(world):
    shutil.rmtree(world.replica.path("t"))
    world.dump(tables_anew=("t",))
    world.load()
    assert world.load().kind is LoadKind.NOTHING
    go_on(world)


def test_a_second_replica_gets_it_though_the_first_has_loaded_the_dump(world):
    backup = world.replica.backup()
    shutil.copytree(world.folder / "target", world.folder / "kept")
    world.dump(tables_anew=("t",))
    world.load()
    world.replica.restore(backup)
    shutil.rmtree(world.folder / "target")
    shutil.copytree(world.folder / "kept", world.folder / "target")
    place = world.replica.path("t")
    shutil.rmtree(place)
    assert world.load().kind is LoadKind.INCREMENTAL
    go_on(world)


def test_a_name_that_nobody_has_is_refused(world):
    refused(lambda: world.dump(tables_anew=("typo",)), "no table typo")


def test_a_rebalanced_table(world):
    world.insert("t", (3, "c"))
    world.rebalance("t", WriteId(2))
    carry_out(world, refused(world.dump, "was rebalanced"))
    with world.transaction() as txn:
        txn.delete("t", [3])
    world.replicate()
    go_on(world)


def test_an_insert_into_a_plain_table(world):
    world.create_table("plain", transactional="false")
    world.replicate()
    place = world.path("plain")
    place.mkdir(parents=True, exist_ok=True)
    (place / "one").write_text("1")
    world.insert("t", (3, "c"))
    carry_out(world, refused(world.dump, "a write to plain, "))
    copy = world.replica.path("plain")
    assert (copy / "one").read_text() == "1"
    world.source.drop_table("src", "plain")
    world.replicate()
    go_on(world)


def test_a_converted_table(world):
    world.create_table("plain", transactional="false")
    world.replicate()
    table = world.source.get_table("src", "plain")
    world.source.alter_table(
        "src", "plain", replace(table, parameters={**table.parameters, "transactional": "true"})
    )
    world.insert("plain", (1, "acid"))
    carry_out(world, refused(world.dump, "was converted"))
    go_on(world)
    assert world.target.get_table("dst", "plain").type == TableType.MANAGED_TABLE.value


def test_files_that_are_lost(world):
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    for path in world.cmroot.iterdir():
        if path.is_file():
            path.unlink()
    carry_out(world, refused(world.dump, "lost: 1 file", SourceFileMissingError))
    go_on(world)


def test_files_that_cannot_be_looked_at_are_perhaps_not_lost(world, monkeypatch):
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    status = Location.status

    def refusing(place):
        if place.uri.startswith(f"file:{world.cmroot}/"):
            raise PermissionError(13, "Permission denied", place.uri)
        return status(place)

    with monkeypatch.context() as patched:
        patched.setattr(Location, "status", refusing)
        refused(world.dump, "may still be there", SourceFileMissingError)
    world.replicate()
    world.assert_same()


def test_files_that_are_lost_after_the_dump(world):
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    world.dump()
    world.compact("t", CompactionType.MAJOR)
    world.clean()
    for path in world.cmroot.iterdir():
        if path.is_file():
            path.unlink()
    carry_out(world, refused(world.load, "lost|missing", SourceFileMissingError))
    go_on(world)


def test_a_write_that_nobody_reported_and_another_program_cleaned(world):
    txn = world.begin()
    txn.is_reporting = False
    txn.insert("t", [(3, "silent")])
    txn.commit()
    world.compact("t", CompactionType.MAJOR)
    world.clock.advance_ms(10_000)
    for entry in world.source.find_ready_to_clean():
        for path in world.path("t").iterdir():
            if "_v" not in path.name:
                shutil.rmtree(path)
        world.source.mark_cleaned(entry)
    carry_out(world, refused(world.dump, r"write id 2 of src\.t"))
    go_on(world)


@pytest.mark.parametrize("is_spanning", [False, True])
@pytest.mark.parametrize("is_remade", [False, True])
def test_a_table_dropped_under_an_open_writer_goes_on(world, is_spanning, is_remade):
    """No command is needed: what it wrote went with the table."""
    txn = world.begin()
    txn.insert("t", [(3, "gone")])
    txn.insert("other", [(2, "y")], statement=1)
    if is_spanning:
        world.replicate()
    world.drop_as_hive("t")
    if is_remade:
        world.create_table("t")
        world.insert("t", (4, "anew"))
    txn.commit()
    world.replicate()
    go_on(world)


@pytest.mark.parametrize("is_spanning", [False, True])
def test_a_table_renamed_under_an_open_writer(world, is_spanning):
    txn = world.begin()
    txn.insert("t", [(3, "went along")])
    if is_spanning:
        world.replicate()
    rename(world, "t", "u")
    txn.commit()
    world.create_table("t")
    world.insert("t", (7, "another"))
    carry_out(world, refused(world.dump, r"src\.t was renamed \(to u\)"))
    go_on(world)
    assert sorted(row["id"] for row in world.replica.rows("u")) == [1, 2, 3, 100]


def test_an_unreported_write_and_a_rename_of_its_partition(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.insert("part", (1, "x"), partition="p=1")
    world.replicate()
    txn = world.begin()
    txn.is_reporting = False
    txn.insert("part", [(2, "silent")], "p=1")
    txn.commit()
    world.compact("part", CompactionType.MAJOR, "p=1")
    assert world.clean() >= 1
    part = world.source.get_partition("src", "part", ["1"])
    world.source.rename_partition("src", "part", ["1"], replace(part, values=("9",)))
    carry_out(world, refused(world.dump, r"write id 2 of src\.part"))
    world.assert_same()


@pytest.mark.parametrize("is_cleaned", ["before the dump", "after the dump"])
def test_a_write_from_before_the_first_dump_is_found_in_the_archive(fast_folder, is_cleaned):
    """It was reported when nothing was archived yet, so without a checksum."""
    world = ReplWorld(fast_folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    txn = world.begin()
    txn.is_reporting = False
    txn.insert("t", [(2, "early")])
    (file,) = world.path("t").glob("delta_0000002*/bucket*")
    told = WriteNotification(
        txn_id=txn.id,
        write_id=WriteId(2),
        database_name="src",
        table_name="t",
        partition_values=(),
        files=(f"file:{file}",),
        checksums=(),
        subdirectories=(file.parent.name,),
    )
    world.source.add_write_notifications([told])
    world.clock.on_sleep = txn.commit
    world.dump()
    world.clock.on_sleep = lambda: None
    world.load()

    def clean():
        world.insert("t", (3, "c"))
        world.compact("t", CompactionType.MAJOR)
        assert world.clean() >= 3

    if is_cleaned == "before the dump":
        clean()
    world.dump()
    if is_cleaned == "after the dump":
        clean()
    world.load()
    world.replicate()
    go_on(world)
    world.close()


def test_a_write_of_somebody_else_on_the_replica(world):
    set_access(world.target, "dst", Access.WRITES)
    world.replica.begin().write_id("t")
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    world.dump()
    carry_out(world, refused(world.load, "somebody else has written to the replica"))
    go_on(world)


def test_a_table_made_on_the_replica(world):
    table = world.target.get_table("dst", "t")
    set_access(world.target, "dst", Access.WRITES)
    world.target.create_table(
        replace(table, name="mine", parameters={}, storage=replace(table.storage, location=None))
    )
    world.create_table("mine")
    world.insert("mine", (1, "source"))
    world.dump()
    carry_out(world, refused(world.load, "no load made it"))
    go_on(world)


def test_a_table_lost_on_the_replica_half_way_of_a_dump(world):
    """Some events are applied already when the load stops."""
    world.insert("other", (2, "y"))
    world.insert("t", (3, "c"))
    world.insert("other", (3, "z"))
    world.dump()
    set_access(world.target, "dst", Access.WRITES)
    world.target.drop_table("dst", "t")
    error = refused(world.load, "is not on the target|never allocated|begins with write id")
    assert "--table-anew t" in str(error)
    world.insert("other", (4, "w"))
    carry_out(world, error)
    go_on(world)


def test_a_load_that_is_killed_at_every_change_goes_on(world):
    world.insert("t", (3, "c"))
    world.insert("other", (2, "y"))
    rename(world, "t", "u")
    world.dump(tables_anew=("u",))

    changes = ("alter", "drop", "create", "add", "repl", "commit")
    for calls in range(1, 12):
        loader = world.loader(Dying(world.target, calls, *changes))
        try:
            loader.run(loader.plan(world.load_request))
            break
        except CrashError:
            world.clock.advance_ms(400_000)
    else:
        raise AssertionError("it never comes to its end")
    assert calls > 3
    go_on(world)


def test_a_table_of_the_same_write_id_is_not_taken_for_another(world):
    """One table was dropped and made again between two write ids of the same number."""
    world.create_table("fresh")
    world.create_table("again")
    txn = world.begin()
    txn.insert("fresh", [(1, "x")])
    world.source.drop_table("src", "again")
    world.create_table("again")
    txn.insert("again", [(2, "y")], statement=1)
    txn.commit()
    world.replicate()
    go_on(world)


def test_a_dump_in_the_place_of_another_takes_it_along(world):
    """Its events and its whole tables come again, its pin goes; also where older dumps are kept."""
    world.insert("other", (2, "y"))
    first = world.dump(tables_anew=("other",))
    world.insert("t", (3, "c"))
    second = world.dump(tables_anew=("t",), is_previous_kept=True)
    assert set(second.tables) == {"t", "other"}
    assert second.removed == (first.directory,)
    assert not any(str(first.directory) in pin.holder for pin in world.source.manifest.pins())
    world.load()
    go_on(world)


def test_a_commit_between_the_events_and_the_snapshot_is_in_both(world):
    """The table comes with its rows; the next dump tells of the commit once more."""
    txn = world.begin()
    txn.insert("t", [(3, "c")])
    world.clock.on_sleep = txn.commit
    world.dump(tables_anew=("t",))
    world.clock.on_sleep = lambda: None
    world.load()
    go_on(world)
    assert sorted(row["id"] for row in world.replica.rows("t")) == [1, 2, 3, 100]


def test_data_of_an_external_table_stays(world):
    """Also where a drop takes it: a dump without --external-base brings it no second time."""
    place, base = world.folder / "outside", str(world.folder / "target" / "ext")
    place.mkdir()
    (place / "f").write_text("rows")
    table = world.source.get_table("src", "t")
    parameters = {"EXTERNAL": "TRUE", "external.table.purge": "true"}
    storage = replace(table.storage, location=f"file:{place}")
    world.source.create_table(
        replace(
            table,
            name="e",
            type=TableType.EXTERNAL_TABLE.value,
            parameters=parameters,
            storage=storage,
        )
    )

    def load():
        loader = world.loader()
        return loader.run(loader.plan(replace(world.load_request, external_base=base)))

    world.dump(external_base=base)
    load()
    copy = Path(world.target.get_table("dst", "e").storage.location.removeprefix("file:"), "f")
    assert copy.read_text() == "rows"
    world.dump(tables_anew=("e",))
    assert load().tables == ("e",)
    world.target.run_housekeeping()
    assert copy.read_text() == "rows"
