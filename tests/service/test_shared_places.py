"""What lies in a directory of another table's or partition's is neither deleted nor moved away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from changemanager.location import is_below
from hms_bridge.backend.schema.catalog_tables import SDS, TBLS
from hms_bridge.catalog import places
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import Column, Partition, Storage, Table
from hms_bridge.model.target import TableName
from tests.support.world import World

A, P = Column(name="a", type="int"), Column(name="p", type="string")


class SharedWorld(World):
    """A table ``t`` with two partitions, each with a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.directory = folder / "warehouse" / "db.db" / "t"
        self.table("t", "MANAGED_TABLE", Storage(columns=(A,)), (P,))
        self.table("u", "MANAGED_TABLE", Storage(columns=(A,)), (P,))
        for value in "12":
            one = Partition(values=(value,), database_name="db", table_name="t")
            self.metastore.add_partitions("db", "t", [one])
            (self.directory / f"p={value}" / "file").write_text(value)

    def table(
        self, name: str, kind: str, storage: Storage, partitioned: tuple[Column, ...] = ()
    ) -> None:
        self.metastore.create_table(
            Table(
                name=name, database_name="db", type=kind, storage=storage,
                partition_columns=partitioned,
                parameters={"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {},
            )
        )  # fmt: skip

    def stranger(self) -> None:
        """A table that somebody put into the first partition."""
        storage = Storage(columns=(A,), location=f"file:{self.directory}/p=1")
        self.table("stranger", "EXTERNAL_TABLE", storage)

    def sibling(self) -> None:
        """ALTER TABLE t PARTITION (p='2') SET LOCATION that of the first."""
        (found,) = self.metastore.get_partitions_by_names("db", "t", ["p=2"])
        moved = replace(found.storage, location=f"file:{self.directory}/p=1")
        self.metastore.alter_partitions("db", "t", [replace(found, storage=moved)])

    @property
    def is_file_there(self) -> bool:
        return (self.directory / "p=1" / "file").read_text() == "1"

    def rename_partition(self) -> None:
        (found,) = self.metastore.get_partitions_by_names("db", "t", ["p=1"])
        self.metastore.rename_partition("db", "t", ("1",), replace(found, values=("9",)))

    def rename_table(self) -> None:
        table = self.metastore.get_table("db", "t")
        self.metastore.alter_table("db", "t", replace(table, name="other"))

    def exchange(self) -> None:
        source, target = TableName("db", "t", "hive"), TableName("db", "u", "hive")
        self.metastore.exchange_partitions({"p": "1"}, source, target)

    def truncate_partition(self) -> None:
        self.metastore.truncate_table("db", "t", ["p=1"])

    def truncate_table(self) -> None:
        self.metastore.truncate_table("db", "t")


@pytest.fixture
def world(tmp_path: Path) -> SharedWorld:
    return SharedWorld(tmp_path)


@pytest.mark.parametrize("other", [SharedWorld.stranger, SharedWorld.sibling])
def test_a_dropped_partition_leaves_files_of_others(
    world: SharedWorld, other: Callable[[SharedWorld], None]
) -> None:
    other(world)
    world.metastore.drop_partitions("db", "t", ["p=1"], is_data_deleted=True)
    assert world.metastore.get_partition_names("db", "t") == ("p=2",)
    assert world.is_file_there


def test_a_dropped_partition_of_its_own_goes(world: SharedWorld) -> None:
    world.metastore.drop_partitions("db", "t", ["p=1"], is_data_deleted=True)
    assert not (world.directory / "p=1").exists()


@pytest.mark.parametrize(
    ("other", "change"),
    [
        (SharedWorld.stranger, SharedWorld.rename_partition),
        (SharedWorld.stranger, SharedWorld.rename_table),
        (SharedWorld.stranger, SharedWorld.exchange),
        (SharedWorld.stranger, SharedWorld.truncate_partition),
        (SharedWorld.stranger, SharedWorld.truncate_table),
        (SharedWorld.sibling, SharedWorld.rename_partition),
        (SharedWorld.sibling, SharedWorld.exchange),
        (SharedWorld.sibling, SharedWorld.truncate_partition),
    ],
)
def test_a_directory_with_others_in_it_is_neither_moved_nor_emptied(
    world: SharedWorld, other: Callable[[SharedWorld], None], change: Callable[[SharedWorld], None]
) -> None:
    other(world)
    with pytest.raises(InvalidOperationError, match="lies in it too; give that another location"):
        change(world)
    assert world.is_file_there
    assert world.metastore.get_partition_names("db", "t") == ("p=1", "p=2")


@pytest.mark.parametrize(
    "change", [SharedWorld.rename_partition, SharedWorld.rename_table, SharedWorld.exchange]
)
def test_one_that_comes_after_the_first_look_stops_the_move_too(
    world: SharedWorld, change: Callable[[SharedWorld], None]
) -> None:
    with pytest.MonkeyPatch.context() as patched:

        def meanwhile(*_: str) -> None:
            patched.undo()
            world.stranger()

        patched.setattr(world.metastore._file_work, "settle", meanwhile)
        with pytest.raises(InvalidOperationError, match="lies in it too"):
            change(world)
    assert world.is_file_there


def test_a_table_takes_along_its_own_partitions(world: SharedWorld) -> None:
    world.sibling()
    world.rename_table()
    (found,) = world.metastore.get_partitions_by_names("db", "other", ["p=2"])
    directory = world.directory.parent / "other" / "p=1"
    assert found.storage.location == f"file:{directory}"
    assert (directory / "file").read_text() == "1"


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("s3a://bucket/w/t/p=1", "s3://bucket/w/t"),
        ("s3n://bucket/w/t", "s3a://bucket/w/t/"),
        ("hdfs://nn:8020/w/t", "hdfs://nn/w/t"),
        ("hdfs://nn/w/t", "hdfs://nn:8020/w"),
        ("file:///w/t", "file:/w/t"),
        ("/w/t", "hdfs://nn/w/t"),
    ],
)
def test_places_are_the_same_however_they_are_spelled(
    world: SharedWorld, inner: str, outer: str
) -> None:
    """Hive beside us writes them its own way."""
    assert is_below(inner, outer)
    assert not is_below(inner, f"{outer.rstrip('/')}x")
    with world.engine.transaction(write=True) as connection:
        own = select(TBLS.c.SD_ID).where(TBLS.c.TBL_NAME == "u").scalar_subquery()
        connection.execute(update(SDS).where(own == SDS.c.SD_ID).values(LOCATION=inner))
        assert places.user_of(connection, outer) == "table u"
        assert places.user_of(connection, f"{outer.rstrip('/')}x") is None
