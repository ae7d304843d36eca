"""Whatever is wrong with a replica is found, and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from hms_bridge.backend.schema.txn_tables import TXN_TO_WRITE_ID, TXNS
from hms_bridge.errors import EventGapError, HmsBridgeError, NoSuchObjectError, ReplError
from hms_bridge.model.catalog import Column, Database, Table
from hms_bridge.repl.compare.described import Verdict
from hms_bridge.repl.handover.own_part import Access, set_access
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare, different, equal_tables, told
from tests.support.simulated_clock import DAY_MS


@pytest.fixture
def loaded(busy_world: ReplWorld) -> ReplWorld:
    """With write ids that a bootstrap brought, and one of an incremental dump."""
    busy_world.replicate()
    busy_world.insert("t", (4, "d"))
    busy_world.replicate()
    return busy_world


def open_to(world: ReplWorld, access: Access) -> None:
    set_access(world.target, "dst", access)


def data_files(world: ReplWorld, table: str = "t", partition: str = "") -> list[Path]:
    return sorted(world.replica.path(table, partition).rglob("bucket_*"))


def test_a_lost_file_is_found_by_its_name(loaded: ReplWorld) -> None:
    lost = data_files(loaded)[-1]
    lost.unlink()
    quickly = compare(loaded, rows=False)
    name = f"file {lost.parent.name}/{lost.name}"
    assert different(quickly) == {("t", None, name)}
    assert (quickly.of(Verdict.DIFFERENT)[0].replica, quickly.exit_code) == ("missing", 2)
    assert equal_tables(quickly) == ["parted"]
    closely = compare(loaded)
    assert different(closely) == {("t", None, name), ("t", None, "rows")}
    rows = closely.of(Verdict.DIFFERENT)[-1]
    assert (rows.source, rows.replica) == ("4 rows", "3 rows")


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_lost_directory_is_found(loaded: ReplWorld, is_compacted: bool) -> None:
    """Of a source that was compacted since, by rows only, unless nothing is left."""
    if is_compacted:
        loaded.compact("t")
    shutil.rmtree(data_files(loaded)[-1].parent)
    quickly, closely = compare(loaded, rows=False), compare(loaded)
    assert (quickly.exit_code == 2) is not is_compacted
    assert closely.exit_code == 2
    assert ("t", None, "rows") in different(closely)
    shutil.rmtree(loaded.replica.path("parted", "p=x"))
    (found,) = compare(loaded, "parted", rows=False).of(Verdict.DIFFERENT)
    assert (found.partition, found.replica) == ("p=x", "missing")
    shutil.rmtree(loaded.replica.path("t"))
    assert compare(loaded, "t", rows=False).exit_code == 2


def test_a_row_that_somebody_else_wrote_is_found(loaded: ReplWorld) -> None:
    open_to(loaded, Access.WRITES)
    loaded.replica.insert("t", (99, "not the source's"))
    quickly, closely = compare(loaded, rows=False), compare(loaded)
    assert ("t", None, "write ids 3") in different(quickly)
    assert ("t", None, "file delta_0000003_0000003_0000/bucket_00000_0") in different(quickly)
    assert different(closely) == {*different(quickly), ("t", None, "rows")}


@pytest.mark.parametrize("is_hidden_at_source", [False, True])
def test_a_row_that_one_side_alone_shows_is_found(
    loaded: ReplWorld, is_hidden_at_source: bool
) -> None:
    side = loaded if is_hidden_at_source else loaded.replica
    with side.engine.transaction(write=True) as connection:
        w = TXN_TO_WRITE_ID.c
        txn_id = connection.execute(
            select(w.T2W_TXNID).where(w.T2W_TABLE == "t", w.T2W_WRITEID == 2)
        ).scalar_one()
        changed = connection.execute(
            update(TXNS).where(txn_id == TXNS.c.TXN_ID).values(TXN_STATE="a")
        )
        assert changed.rowcount == 1
    found = different(compare(loaded, rows=False))
    assert ("t", None, "file delta_0000002_0000002_0000/bucket_00000_0") in found
    assert ("t", None, "rows") in different(compare(loaded))


CHANGES: dict[str, Callable[[Table], Table]] = {
    "columns": lambda table: replace(
        table,
        storage=replace(
            table.storage,
            columns=(Column(name="id", type="bigint"), *table.storage.columns[1:]),
        ),
    ),
    "property color": lambda table: replace(table, parameters={**table.parameters, "color": "red"}),
    "property comment": lambda table: replace(
        table, parameters={**table.parameters, "comment": "another"}
    ),
    "owner": lambda table: replace(table, owner="somebody"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_definition_is_found(loaded: ReplWorld, what: str) -> None:
    open_to(loaded, Access.DEFINITIONS)
    table = loaded.replica.describe("t")
    loaded.target.alter_table("dst", "t", CHANGES[what](table))
    found = compare(loaded, rows=False)
    assert ("t", None, what) in different(found)
    assert found.exit_code == 2
    assert equal_tables(found) == ["parted"]


def test_statistics_and_times_are_each_sides_own(loaded: ReplWorld) -> None:
    open_to(loaded, Access.DEFINITIONS)
    table = loaded.replica.describe("t")
    own = {"numFiles": "17", "transient_lastDdlTime": "1", "last_modified_by": "x"}
    parameters = {**table.parameters, **own}
    loaded.target.alter_table("dst", "t", replace(table, parameters=parameters))
    assert told(compare(loaded)) == []


def test_a_missing_partition_and_one_too_many_are_found(loaded: ReplWorld) -> None:
    open_to(loaded, Access.DEFINITIONS)
    loaded.target.drop_partitions("dst", "parted", ["p=x"])
    loaded.replica.add_partition("parted", "new")
    report = compare(loaded)
    assert {
        (one.partition, one.what, one.source, one.replica) for one in report.of(Verdict.DIFFERENT)
    } == {
        ("p=x", "partition", "there", "missing"),
        ("p=new", "partition", "missing", "there"),
    }


def test_a_missing_table_and_one_too_many_are_found(loaded: ReplWorld) -> None:
    open_to(loaded, Access.DEFINITIONS)
    loaded.target.drop_table("dst", "t")
    loaded.replica.create_table("another")
    report = compare(loaded)
    assert different(report) == {("t", None, "table"), ("another", None, "table")}
    assert equal_tables(report) == ["parted"]


def test_a_file_of_the_same_length_is_found_by_its_bytes_or_its_rows_only(
    loaded: ReplWorld,
) -> None:
    one, other = (data_files(loaded, "parted", part)[0] for part in ("p=x", "p=y"))
    one.write_bytes(other.read_bytes())
    assert told(compare(loaded, rows=False)) == []
    by_sum = compare(loaded, rows=False, checksums=True)
    assert different(by_sum) == {("parted", "p=x", f"file {one.parent.name}/{one.name}")}
    by_rows = compare(loaded)
    assert different(by_rows) == {("parted", "p=x", "rows")}
    (found,) = by_rows.of(Verdict.DIFFERENT)
    assert str(found.source).startswith("2 rows with sum")
    assert found.source != found.replica
    assert equal_tables(by_rows) == ["t"]


def test_a_truncated_file_is_found(loaded: ReplWorld) -> None:
    file = data_files(loaded)[0]
    file.write_bytes(file.read_bytes()[:-40])
    assert ("t", None, f"file {file.parent.name}/{file.name}") in different(
        compare(loaded, rows=False)
    )
    (found,) = [one for one in compare(loaded).of(Verdict.DIFFERENT) if one.what == "rows"]
    assert "cannot be read" in str(found.replica)
    assert str(file) in str(found.replica)


def test_the_database_itself(loaded: ReplWorld) -> None:
    target = loaded.target.get_database("dst")
    loaded.target.alter_database("dst", replace(target, description="another"))
    assert different(compare(loaded)) == {(None, None, "comment")}
    source = loaded.source.get_database("src")
    loaded.source.alter_database("src", replace(source, parameters={**source.parameters, "a": "b"}))
    (found,) = told(compare(loaded))
    assert (found.verdict, found.what) == (Verdict.UNDECIDED, "definition of the database")


# -- what cannot be compared


def refusal(world: ReplWorld, kind: type[HmsBridgeError], *tables: str) -> str:
    with pytest.raises(kind) as caught:
        compare(world, *tables)
    return str(caught.value)


def test_a_replica_that_is_not_there(busy_world: ReplWorld) -> None:
    refusal(busy_world, NoSuchObjectError)


def test_a_database_into_which_nothing_was_loaded(busy_world: ReplWorld) -> None:
    busy_world.target.create_database(Database(name="dst"))
    assert "nothing was ever loaded into it" in refusal(busy_world, ReplError)


def test_swapped_sides(loaded: ReplWorld) -> None:
    loaded.target.create_database(Database(name="src"))
    assert "nothing was ever loaded" in refusal_of_swapped(loaded, "src", "src")
    assert "behind --source is one" in refusal_of_swapped(loaded, "dst", "src")


def refusal_of_swapped(world: ReplWorld, source: str, target: str) -> str:
    from hms_bridge.repl.compare.repl_compare import ReplCompare
    from hms_bridge.repl.compare.table_comparison import CompareRequest

    comparer = ReplCompare(world.resolve, world.clock, source=world.target, target=world.source)
    request = CompareRequest(
        root=str(world.repl_root), source_database=source, target_database=target
    )
    with pytest.raises(ReplError) as caught:
        comparer.run(request)
    return str(caught.value)


def test_a_table_that_no_side_has(loaded: ReplWorld) -> None:
    assert "has a table absent" in refusal(loaded, ReplError, "t", "absent")


def test_a_source_that_was_restored_from_a_backup(loaded: ReplWorld) -> None:
    """Also once it has as many events again."""
    backup, replica = loaded.backup(), loaded.replica.backup()
    loaded.insert("t", (5, "e"))
    loaded.replicate()
    replica = loaded.replica.backup()
    loaded.restore(backup)
    loaded.replica.start()
    assert loaded.replica.backup() == replica
    assert "restored from a backup" in refusal(loaded, EventGapError)
    for number in range(5):
        loaded.source.create_database(Database(name=f"other{number}"))
    assert "restored from a backup" in refusal(loaded, EventGapError)


def test_events_that_are_gone(loaded: ReplWorld) -> None:
    loaded.insert("t", (5, "e"))
    loaded.clock.advance_ms(40 * DAY_MS)
    loaded.metastore.run_housekeeping()
    assert "no longer all events after" in refusal(loaded, EventGapError)


def test_a_bootstrap_that_is_not_loaded_to_its_end(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    database = world.target.get_database("dst")
    parameters = {k: v for k, v in database.parameters.items() if k != "repl.last.id"}
    world.target.alter_database("dst", replace(database, parameters=parameters))
    assert "not loaded to its end" in refusal(world, ReplError)
