"""Files go with their tables: after the commit, archived first, and again after any crash."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.manifest import ArchiveCause
from hms_bridge.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import Database, TableType
from hms_bridge.model.txn import DynamicPartitions
from hms_bridge.service.task_leases import CLAIM_MS
from tests.conformance.objects import (
    DS,
    acid_table,
    commit,
    open_txn,
    orc_storage,
    partition,
    write_id,
)
from tests.support.faults import CrashError
from tests.support.files_world import FILES, SOURCE
from tests.support.files_world import FilesWorld as World


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.create_database()
    return made


def test_files_of_a_managed_table_go_with_it(world: World) -> None:
    place = world.table()
    world.metastore.drop_table("db", "t")
    assert not place.exists()
    assert place.parent.exists()
    assert world.archived() == {}


@pytest.mark.parametrize(
    ("given", "is_data_deleted"),
    [
        ({"type": TableType.EXTERNAL_TABLE.value, "parameters": {"EXTERNAL": "TRUE"}}, True),
        ({}, False),
    ],
)
def test_files_that_stay(world: World, given: dict, is_data_deleted: bool) -> None:
    place = world.table(**given)
    world.metastore.drop_table("db", "t", is_data_deleted=is_data_deleted)
    assert (place / "x").read_bytes() == b"three"


def test_an_external_table_with_purge_takes_its_files_along(world: World) -> None:
    parameters = {"EXTERNAL": "TRUE", "external.table.purge": "TRUE"}
    place = world.table(type=TableType.EXTERNAL_TABLE.value, parameters=parameters)
    world.metastore.drop_table("db", "t")
    assert not place.exists()


def test_files_of_a_replication_source_are_archived(world: World) -> None:
    place = world.table()
    world.metastore.alter_database("db", Database(name="db", parameters=SOURCE))
    world.metastore.drop_table("db", "t")
    assert not place.exists()
    assert set(world.archived().values()) == set(FILES.values())
    entries = world.metastore.manifest.entries(f"file:{world.folder}/cmroot").values()
    (context,) = {origin.context for entry in entries for origin in entry.origins}
    assert (context.cause, context.database, context.table) == (
        ArchiveCause.DROP_TABLE, "db", "t",
    )  # fmt: skip
    assert {o.directory for e in entries for o in e.origins} == {"", "delta_1_1", "delta_2_2"}


def test_nothing_of_a_replication_source_is_deleted_without_an_archive(tmp_path: Path) -> None:
    world = World(tmp_path, is_archive_enabled=False)
    world.create_database(parameters=SOURCE)
    place = world.table()
    with pytest.raises(InvalidOperationError, match="hive.repl.cm.enabled"):
        world.metastore.drop_table("db", "t")
    assert world.metastore.get_tables("db") == ("t",)
    assert (place / "x").exists()
    world.metastore.drop_table("db", "t", is_data_deleted=False)
    assert (place / "x").exists()


def test_a_directory_that_others_use_stays(world: World) -> None:
    place = world.table()
    world.metastore.create_table(
        acid_table(
            "db",
            "inside",
            type=TableType.EXTERNAL_TABLE.value,
            parameters={"EXTERNAL": "TRUE"},
            storage=orc_storage(location=f"{place}/delta_1_1"),
        )
    )
    world.metastore.drop_table("db", "t")
    assert (place / "x").exists()


def test_partitions_take_their_directories_along(world: World, tmp_path: Path) -> None:
    place = world.table(partition_columns=DS)
    far = world.fill(tmp_path / "elsewhere" / "b")
    world.metastore.add_partitions(
        "db", "t",
        [partition("db", "t", "a"), partition("db", "t", "c"),
         partition("db", "t", "b", storage=orc_storage(location=str(far)))],
    )  # fmt: skip
    near = world.fill(place / "ds=a")
    world.metastore.drop_partitions("db", "t", ["ds=a"])
    assert not near.exists()
    assert far.exists() and (place / "ds=c").exists()
    world.metastore.drop_table("db", "t")
    assert not place.exists() and not far.exists()


def test_files_that_no_table_owns_stay(world: World) -> None:
    place = world.table()
    (place.parent / "notes.txt").write_text("mine")
    world.metastore.drop_database("db", is_cascade=True)
    assert not place.exists()
    assert (place.parent / "notes.txt").read_text() == "mine"


def test_a_database_without_files_leaves_no_directory(world: World) -> None:
    place = world.table()
    world.metastore.drop_database("db", is_cascade=True)
    assert not place.parent.exists()


def test_a_refused_table_leaves_no_directory(world: World) -> None:
    (world.folder / "a-file").touch()
    place = f"file:{world.folder}/a-file/t"
    with pytest.raises(MetaError):
        world.metastore.create_table(acid_table("db", "t", storage=orc_storage(location=place)))
    world.table()
    with pytest.raises(NoSuchObjectError):
        world.metastore.create_table(acid_table("none", "t"))
    assert sorted(p.name for p in (world.folder / "warehouse").iterdir()) == ["db.db"]


def test_what_was_dropped_before_a_crash_is_deleted_after_it(world: World) -> None:
    place = world.table()
    with pytest.raises(CrashError):
        world.restart(die_after="DROP_TABLE").drop_table("db", "t")
    assert (place / "x").exists()
    world.recover()
    assert not place.exists()


def test_a_new_table_never_meets_the_files_of_a_dropped_one(world: World) -> None:
    place = world.table()
    with pytest.raises(CrashError):
        world.restart(die_after="DROP_TABLE").drop_table("db", "t")
    world.restart()
    world.metastore.create_table(acid_table("db", "t"))
    assert list(place.iterdir()) == []
    world.fill(place)
    world.recover()
    assert (place / "x").exists()


def test_a_place_that_another_process_still_deletes_is_busy(world: World) -> None:
    world.table()
    world.restart(die_after="DROP_TABLE")
    with pytest.raises(CrashError):
        world.metastore.drop_table("db", "t")
    dying = world.restart(crash_label="before remove_file x")
    with pytest.raises(CrashError):
        dying.run_housekeeping()
    world.restart()
    with pytest.raises(MetaError, match="still being deleted"):
        world.metastore.create_table(acid_table("db", "t"))
    world.clock.advance_ms(CLAIM_MS + 1)
    world.metastore.create_table(acid_table("db", "t"))


def test_an_archiving_drop_survives_a_crash_at_any_step(tmp_path: Path) -> None:
    folder, before = tmp_path / "world", tmp_path / "before"
    folder.mkdir()
    world = World(folder)
    world.create_database(parameters=SOURCE)
    place = world.table()
    shutil.rmtree(place / "delta_2_2")
    contents = {b"one", b"three"}
    world.metastore.close()
    shutil.copytree(folder, before)
    for step in itertools.count(1):
        world.restart(crash_at=step)
        try:
            world.metastore.drop_table("db", "t")
        except CrashError:
            pass
        else:
            break
        world.metastore.close()
        kept = {path.read_bytes() for path in place.rglob("*") if path.is_file()}
        assert kept | set(world.archived().values()) >= contents, world.faults.labels[-1]
        world.recover()
        assert not place.exists(), world.faults.labels[-1]
        assert set(world.archived().values()) == contents
        world.metastore.close()
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
    assert step > 20


def test_a_renamed_table_takes_its_files_along(world: World) -> None:
    place = world.table()
    made = world.metastore.get_table("db", "t")
    world.metastore.alter_table("db", "t", replace(made, name="t2"))
    assert not place.exists()
    assert (place.parent / "t2" / "delta_1_1" / "bucket_00000").read_bytes() == b"one"


def test_a_table_elsewhere_stays_there_when_it_is_renamed(world: World, tmp_path: Path) -> None:
    far = tmp_path / "elsewhere" / "t"
    world.table(storage=orc_storage(location=str(far)))
    made = world.metastore.get_table("db", "t")
    world.metastore.alter_table("db", "t", replace(made, name="t2"))
    assert world.metastore.get_table("db", "t2").storage.location == f"file:{far}"
    assert (far / "x").exists()


def test_nothing_is_moved_onto_what_is_there(world: World) -> None:
    place = world.table()
    (place.parent / "t2").mkdir()
    made = world.metastore.get_table("db", "t")
    with pytest.raises(InvalidOperationError, match="already exists"):
        world.metastore.alter_table("db", "t", replace(made, name="t2"))
    assert (place / "x").exists()
    assert world.metastore.get_tables("db") == ("t",)


def test_files_of_a_renamed_replication_source_are_archived(world: World) -> None:
    world.table()
    world.metastore.alter_database("db", Database(name="db", parameters=SOURCE))
    made = world.metastore.get_table("db", "t")
    world.metastore.alter_table("db", "t", replace(made, name="t2"))
    assert set(world.archived().values()) == set(FILES.values())


def test_a_source_of_replication_keeps_its_tables(world: World) -> None:
    world.table()
    world.create_database("other", parameters=SOURCE)
    made = world.metastore.get_table("db", "t")
    with pytest.raises(InvalidOperationError, match="source of replication"):
        world.metastore.alter_table("db", "t", replace(made, database_name="other"))


def test_a_crash_while_a_table_is_renamed_leaves_it_whole(tmp_path: Path) -> None:
    for label in ("before move", "after move"):
        folder = tmp_path / label
        folder.mkdir()
        world = World(folder)
        world.create_database()
        place = world.table()
        made = world.metastore.get_table("db", "t")
        with pytest.raises(CrashError):
            world.restart(crash_label=label).alter_table("db", "t", replace(made, name="t2"))
        world.recover()
        assert world.metastore.get_tables("db") == ("t",)
        assert (place / "delta_1_1" / "bucket_00000").read_bytes() == b"one"
        assert not (place.parent / "t2").exists()
        world.metastore.alter_table("db", "t", replace(made, name="t2"))
        assert world.metastore.get_tables("db") == ("t2",)


def test_a_renamed_partition_takes_files_and_transactions_along(world: World) -> None:
    place = world.table(partition_columns=DS)
    world.metastore.add_partitions("db", "t", [partition("db", "t", v) for v in ("a", "b")])
    world.fill(place / "ds=a")
    txn = open_txn(world.metastore)
    given = write_id(world.metastore, txn, "db")
    world.metastore.add_dynamic_partitions(
        DynamicPartitions(
            txn_id=txn, write_id=given, database_name="db", table_name="t",
            partition_names=("ds=a",),
        )
    )  # fmt: skip
    commit(world.metastore, txn)
    old = world.metastore.get_partition("db", "t", ["a"])
    with pytest.raises(InvalidOperationError, match="already exists"):
        world.metastore.rename_partition("db", "t", ["a"], replace(old, values=("b",)))
    world.metastore.rename_partition("db", "t", ["a"], replace(old, values=("c d",)))
    assert world.metastore.get_partition_names("db", "t") == ("ds=b", "ds=c d")
    new = world.metastore.get_partition("db", "t", ["c d"])
    assert new.storage.location == f"file:{place}/ds=c d"
    assert (place / "ds=c d" / "x").read_bytes() == b"three"
    assert not (place / "ds=a").exists()
    potential = world.metastore.find_potential_compactions(1000, -1)
    assert [one.target.partition for one in potential] == ["ds=c d"]
    with pytest.raises(InvalidOperationError, match="does not exist"):
        world.metastore.rename_partition("db", "t", ["a"], replace(old, values=("d",)))


def test_a_crash_while_a_partition_is_renamed_leaves_it_whole(world: World) -> None:
    place = world.table(partition_columns=DS)
    world.metastore.add_partitions("db", "t", [partition("db", "t", "a")])
    world.fill(place / "ds=a")
    old = world.metastore.get_partition("db", "t", ["a"])
    dying = world.restart(crash_label="after move")
    with pytest.raises(CrashError):
        dying.rename_partition("db", "t", ["a"], replace(old, values=("b",)))
    world.recover()
    assert world.metastore.get_partition_names("db", "t") == ("ds=a",)
    assert (place / "ds=a" / "x").exists()


def test_a_refused_rename_of_a_partition_puts_its_directory_back(world: World) -> None:
    place = world.table(partition_columns=DS)
    world.metastore.add_partitions("db", "t", [partition("db", "t", "a")])
    world.fill(place / "ds=a")
    old = world.metastore.get_partition("db", "t", ["a"])
    unstorable = replace(old, values=("b",), parameters={"k" * 5000: ""})
    with pytest.raises(InvalidObjectError, match="property name"):
        world.metastore.rename_partition("db", "t", ["a"], unstorable)
    assert world.metastore.get_partition_names("db", "t") == ("ds=a",)
    assert (place / "ds=a" / "x").exists()
    assert not (place / "ds=b").exists()
