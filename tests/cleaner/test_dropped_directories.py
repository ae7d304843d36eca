"""Soft drops, which a Hive beside us leaves, and directories in which others live: what may go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from cleaner.plan import CleaningState
from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import Database, Storage, Table
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import CompactionId, WriteId
from hms_bridge.model.property_text import format_properties
from hms_bridge.model.target import Target
from hms_bridge.server.serve import MetastoreServer
from tests.support.cleaning_world import CleaningWorld, delta


def soft_drop(world: CleaningWorld, location: Path, partition: str | None = None) -> Compaction:
    return Compaction(
        id=CompactionId(99),
        target=Target("db", "gone" if partition is None else "t", partition),
        type=CompactionType.MAJOR,
        state=CompactionState.READY_FOR_CLEANING,
        properties={"location": f"file:{location}", "ifPurge": "true"},
        highest_write_id=WriteId(1),
    )


def test_a_dropped_directory_goes_as_a_whole(world: CleaningWorld) -> None:
    dropped = world.table.parent / "gone.v0000012"
    (dropped / delta(1)).mkdir(parents=True)
    (dropped / delta(1) / "bucket_00000").write_bytes(b"dropped rows")
    outcome = world.cleaner()._first.dropped.clean(soft_drop(world, dropped))
    assert (outcome.state, outcome.archived_count) == (CleaningState.CLEANED, 1)
    assert not dropped.exists()
    assert "dropped rows" in world.archived_contents()


def test_a_dropped_directory_in_which_another_table_lives_stays(world: CleaningWorld) -> None:
    world.write()
    with pytest.raises(Exception, match="table t lies in it too; nothing was deleted"):
        world.cleaner()._first.dropped.clean(soft_drop(world, world.table))
    assert world.directories() == [delta(1)]


def test_a_dropped_directory_in_which_another_database_has_a_table_stays(
    world: CleaningWorld,
) -> None:
    dropped = world.table.parent / "gone"
    (dropped / "file").mkdir(parents=True)
    world.store.metastore.create_database(Database(name="other"))
    table = world.store.metastore.get_table("db", "t")
    moved = replace(table.storage, location=f"file:{dropped}/file")
    world.store.metastore.create_table(
        replace(table, database_name="other", name="mine", storage=moved)
    )
    with pytest.raises(Exception, match="table mine lies in it too; nothing was deleted"):
        world.cleaner()._first.dropped.clean(soft_drop(world, dropped))
    assert (dropped / "file").is_dir()


def test_a_dropped_partition_in_which_another_one_lives_stays(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one, two = world.add_partition("t", "1"), world.add_partition("t", "2")
    world.write(one)
    metastore = world.store.metastore
    (found,) = metastore.get_partitions_by_names("db", "t", [two])
    shared = replace(found.storage, location=f"file:{world.table / one}")
    metastore.alter_partitions("db", "t", [replace(found, storage=shared)])
    metastore.drop_partitions("db", "t", [one], is_data_deleted=False)
    with pytest.raises(Exception, match=f"partition {two} lies in it too; nothing was deleted"):
        world.cleaner()._first.dropped.clean(soft_drop(world, world.table / one, one))
    assert world.directories(one) == [delta(1)]


def test_a_dropped_partition_that_is_back_is_cleaned_as_acid(tmp_path: Path) -> None:
    """Golden g15c: only what the drop's own base covers goes."""
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one = world.add_partition("t", "1")
    world.write(one)
    drop_txn, drop_write = world.start_write(one)
    path = world.table / one / delta(drop_write)
    for file in path.iterdir():
        file.unlink()
    path.rename(world.table / one / f"base_{drop_write:07d}")
    world.commit(drop_txn)
    later = world.write(one)
    entry = replace(soft_drop(world, world.table / one, one), highest_write_id=WriteId(drop_write))
    outcome = world.cleaner()._first.dropped.clean(entry)
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories(one) == [f"base_{drop_write:07d}", delta(later)]


def test_a_dropped_directory_outside_of_the_warehouse_stays(world: CleaningWorld) -> None:
    """I12: its entry ends, and says that a person must delete it."""
    dropped = world.folder / "home" / "gone"
    (dropped / delta(1)).mkdir(parents=True)
    outcome = world.cleaner()._first.dropped.clean(soft_drop(world, dropped))
    assert outcome.state is CleaningState.CLEANED
    assert "its files stay: it is outside of the warehouse" in outcome.message
    assert (dropped / delta(1)).is_dir()


def test_a_compaction_that_names_a_directory_is_no_dropped_one(world: CleaningWorld) -> None:
    """A client of a Hive metastore beside us may put any property into its request."""
    victim = world.table.parent / "victim"
    victim.mkdir()
    (victim / "file").write_text("mine")
    world.write()
    world.write()
    entry = world.compact()
    engine = open_database(world.url)
    with engine.transaction(write=True) as connection:
        properties = format_properties({"location": f"file:{victim}", "ifPurge": "true"})
        connection.execute(update(COMPACTION_QUEUE).values(CQ_TBLPROPERTIES=properties))
    engine.close()
    (outcome,) = world.cleaner().run_once()
    assert (outcome.state, outcome.entry.id) == (CleaningState.CLEANED, entry.id)
    assert (victim / "file").read_text() == "mine"
    assert all(one.startswith("base_") for one in world.directories())


def test_a_client_cannot_name_a_directory_in_its_request(world: CleaningWorld) -> None:
    asked = CompactionRequest(
        target=Target("db", "t"), type=CompactionType.MAJOR,
        properties={"location": f"file:{world.folder}"},
    )  # fmt: skip
    with MetastoreServer(0, world.metastore) as server:
        client = ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}")
        for metastore in (world.metastore, client):
            with pytest.raises(InvalidOperationError, match="takes no property location"):
                metastore.compact(asked)
        client.close()
    assert world.metastore.show_compactions() == ()


def test_directories_in_which_another_table_lies_are_not_cleaned(world: CleaningWorld) -> None:
    """However that came about: others write into this database, too."""
    first = world.write()
    world.write()
    world.compact()
    place = world.table / delta(first)
    world.store.metastore.create_table(
        Table(
            name="inside", database_name="db", type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"}, storage=Storage(location=f"file:{place}"),
        )
    )  # fmt: skip
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert "table inside lies in it too" in outcome.message
    assert place.is_dir()
