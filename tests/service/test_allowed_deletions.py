"""May this directory be deleted? Only below allowed roots, and never where somebody else lies."""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import InvalidObjectError, InvalidOperationError, MetaError
from hms_bridge.model.catalog import Column, Database, Partition, Storage, Table
from hms_bridge.model.target import TableName
from tests.conformance.objects import orc_storage
from tests.support.world import World

A, P = Column(name="a", type="int"), Column(name="p", type="string")
ACID = {"transactional": "true"}


class GuardedWorld(World):
    """A database ``db`` with tables ``t`` and ``u``, each with a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, deletion_roots=(str(folder / "allowed"),))
        self.home = folder / "warehouse" / "db.db"
        for name in "tu":
            self.table(name)
            (self.home / name / "file").write_text(name)

    def table(self, name: str, place: Path | str | None = None, **given: object) -> None:
        location = f"file:{place}" if isinstance(place, Path) else place
        values: dict = {"database_name": "db", "type": "MANAGED_TABLE"} | given
        storage = orc_storage(location=location)
        self.metastore.create_table(Table(name=name, storage=storage, **values))

    def external(self, name: str, place: Path) -> None:
        self.table(name, place, type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})

    def partitioned(self, *places: Path | None) -> Path:
        """A table ``q`` with partitions p=0, p=1 …; its directory."""
        self.table("q", partition_columns=(P,))
        for value, place in enumerate(places):
            storage = Storage(columns=(A,), location=f"file:{place}" if place else None)
            one = Partition(
                values=(str(value),), database_name="db", table_name="q", storage=storage
            )
            self.metastore.add_partitions("db", "q", [one])
        return self.home / "q"

    def move(self, name: str, place: Path) -> None:
        """ALTER TABLE … SET LOCATION."""
        found = self.metastore.get_table("db", name)
        storage = replace(found.storage, location=f"file:{place}")
        self.metastore.alter_table("db", name, replace(found, storage=storage))


@pytest.fixture
def world(tmp_path: Path) -> GuardedWorld:
    return GuardedWorld(tmp_path)


def filled(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "file").write_text("mine")
    return place


def created_there(world: GuardedWorld, place: Path) -> None:
    world.table("victim", place)
    world.metastore.drop_table("db", "victim")


def altered_to_there(world: GuardedWorld, place: Path) -> None:
    world.table("victim")
    world.move("victim", place)
    world.metastore.drop_table("db", "victim")


def partition_there(world: GuardedWorld, place: Path) -> None:
    world.partitioned(place)
    world.metastore.drop_partitions("db", "q", ["p=0"])


def table_of_a_partition_there(world: GuardedWorld, place: Path) -> None:
    world.partitioned(place)
    world.metastore.drop_table("db", "q")


def dropped_with_its_database(world: GuardedWorld, place: Path) -> None:
    world.table("victim", place)
    world.metastore.drop_database("db", is_cascade=True)


DROPS = [
    created_there, altered_to_there, partition_there, table_of_a_partition_there,
    dropped_with_its_database,
]  # fmt: skip


@pytest.mark.parametrize("drop", DROPS)
def test_files_outside_of_the_roots_stay_and_the_log_says_so(
    world: GuardedWorld,
    drop: Callable[[GuardedWorld, Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I12: the statement works, as in Hive."""
    place = filled(world.folder / "home" / "alice")
    with caplog.at_level(logging.WARNING):
        drop(world, place)
    assert (place / "file").read_text() == "mine"
    assert f"file:{place} is dropped, its files stay: it is outside of the warehouse" in caplog.text
    assert "hms.bridge.deletion.roots" in caplog.text


def test_rows_that_would_come_back_with_their_partition_are_not_dropped(
    world: GuardedWorld,
) -> None:
    """I1: the next INSERT makes the partition again, in the same directory."""
    home = world.folder / "home" / "q"
    world.table("q", home, partition_columns=(P,), parameters=ACID)
    partition = Partition(
        values=("0",), database_name="db", table_name="q", storage=Storage(columns=(A,))
    )
    world.metastore.add_partitions("db", "q", [partition])
    filled(home / "p=0" / "delta_0000001_0000001_0000")
    with pytest.raises(InvalidOperationError, match="hms.bridge.deletion.roots; its rows would"):
        world.metastore.drop_partitions("db", "q", ["p=0"])
    assert world.metastore.get_partition_names("db", "q") == ("p=0",)
    shutil.rmtree(home / "p=0")
    world.metastore.drop_partitions("db", "q", ["p=0"])
    assert world.metastore.get_partition_names("db", "q") == ()


@pytest.mark.parametrize("drop", DROPS)
def test_files_below_a_configured_root_go(
    world: GuardedWorld, drop: Callable[[GuardedWorld, Path], None]
) -> None:
    place = filled(world.folder / "allowed" / "alice")
    drop(world, place)
    assert not place.exists()


def test_the_directory_of_a_database_is_no_root(world: GuardedWorld) -> None:
    """I12: a client names it, and the server may delete where its clients may not."""
    place = filled(world.folder / "home" / "alice")
    for kind in ("location", "managed_location"):
        database = Database(name="other", **{kind: f"file:{place.parent}"})
        world.metastore.create_database(database)
        world.table("alice", place, database_name="other")
        with pytest.raises(InvalidOperationError, match="cannot be emptied: it is outside"):
            world.metastore.truncate_table("other", "alice")
        world.metastore.drop_table("other", "alice")
        world.table("alice", place, database_name="other")
        world.metastore.drop_database("other", is_cascade=True)
        assert (place / "file").read_text() == "mine"


def test_files_of_a_database_below_a_configured_root_go(world: GuardedWorld) -> None:
    place = world.folder / "allowed" / "other.db"
    world.metastore.create_database(Database(name="other", location=f"file:{place}"))
    world.table("v", database_name="other")
    (place / "v" / "file").write_text("v")
    world.metastore.drop_table("other", "v")
    assert not (place / "v").exists() and place.exists()


def renamed(world: GuardedWorld, database: str, old: str, **changes: str) -> None:
    table = replace(world.metastore.get_table(database, old), **changes)
    world.metastore.alter_table(database, old, table)


def renamed_there(world: GuardedWorld) -> None:
    renamed(world, "other", "alice", name="eve")


def taken_into_the_warehouse(world: GuardedWorld) -> None:
    renamed(world, "other", "alice", database_name="db")


def put_there_from_the_warehouse(world: GuardedWorld) -> None:
    renamed(world, "db", "t", database_name="other")


def partition_renamed_there(world: GuardedWorld) -> None:
    found = world.metastore.get_partitions_by_names("other", "parts", ["p=0"])[0]
    wanted = replace(found, values=("1",))
    world.metastore.rename_partition("other", "parts", ["0"], wanted)


def partition_taken(world: GuardedWorld) -> None:
    world.metastore.exchange_partitions(
        {"p": "0"}, TableName("other", "parts", "hive"), TableName("db", "q", "hive")
    )


def partition_put_there(world: GuardedWorld) -> None:
    world.metastore.exchange_partitions(
        {"p": "5"}, TableName("db", "q", "hive"), TableName("other", "parts", "hive")
    )


MOVES = [
    renamed_there, taken_into_the_warehouse, put_there_from_the_warehouse, partition_renamed_there,
    partition_taken, partition_put_there,
]  # fmt: skip


@pytest.mark.parametrize("is_linked", [False, True])
def test_nothing_is_moved_from_or_to_a_place_outside_of_the_roots(
    world: GuardedWorld, is_linked: bool
) -> None:
    """I12: nor through a link that somebody put into the warehouse."""
    place = world.folder / "home"
    filled(place / "alice")
    filled(place / "parts" / "p=0")
    location = None if is_linked else f"file:{place}"
    if is_linked:
        (world.folder / "warehouse" / "other.db").symlink_to(place)
    world.metastore.create_database(Database(name="other", location=location))
    world.table("alice", database_name="other")
    world.table("parts", database_name="other", partition_columns=(P,))
    world.table("q", partition_columns=(P,))
    for database, name, value in (("other", "parts", "0"), ("db", "q", "5")):
        storage = Storage(columns=(A,))
        one = Partition(values=(value,), database_name=database, table_name=name, storage=storage)
        world.metastore.add_partitions(database, name, [one])
    before = sorted(world.folder.rglob("*"))
    for move in MOVES:
        with pytest.raises(
            InvalidOperationError, match=r"cannot be moved.*bridge\.deletion\.roots"
        ):
            move(world)
        assert sorted(world.folder.rglob("*")) == before


def test_a_table_outside_of_the_roots_is_not_emptied(world: GuardedWorld) -> None:
    place = filled(world.folder / "home" / "alice")
    world.table("victim", place)
    with pytest.raises(InvalidOperationError, match="cannot be emptied: it is outside"):
        world.metastore.truncate_table("db", "victim")
    assert (place / "file").exists()


def test_a_list_of_no_partitions_empties_a_plain_table(world: GuardedWorld) -> None:
    """Clients send one."""
    world.metastore.truncate_table("db", "t", [])
    assert list((world.home / "t").iterdir()) == []


def test_nothing_is_put_around_a_warehouse(world: GuardedWorld) -> None:
    """All tables would lie in it, and could be neither made, emptied, moved nor cleaned."""
    for place in (world.folder / "warehouse", world.folder):
        refused = pytest.raises(InvalidObjectError, match="is around the warehouse file:.*of its")
        with refused:
            world.external("around", place)
        with refused:
            world.move("t", place)
        with refused:
            world.partitioned(place)
        world.metastore.drop_table("db", "q")
    world.table("mine", parameters=ACID)
    world.metastore.truncate_table("db", "t")


def test_a_table_around_others_is_neither_emptied_nor_deleted(world: GuardedWorld) -> None:
    """In the directory of a database, too."""
    world.table("around", world.home)
    with pytest.raises(InvalidOperationError, match="lies in it too"):
        world.metastore.truncate_table("db", "around")
    world.metastore.drop_table("db", "around")
    assert (world.home / "t" / "file").exists() and (world.home / "u" / "file").exists()


def test_a_table_inside_of_another_takes_nothing_of_it_along(world: GuardedWorld) -> None:
    """I1: a delta of the outer table is no directory of the inner one's."""
    inner = filled(world.home / "t" / "delta_0000001_0000001_0000")
    world.table("inner", inner)
    with pytest.raises(InvalidOperationError, match="it lies in the directory of table t"):
        world.metastore.truncate_table("db", "inner")
    world.metastore.drop_table("db", "inner")
    assert (inner / "file").read_text() == "mine"


@pytest.mark.parametrize("other", ["", "below"])
def test_a_partition_outside_of_its_table_is_looked_at_too(world: GuardedWorld, other: str) -> None:
    place = filled(world.folder / "allowed" / "part")
    world.partitioned(place)
    world.external("stranger", place / other)
    with pytest.raises(InvalidOperationError, match="table stranger lies in it too"):
        world.metastore.truncate_table("db", "q", ["p=0"])
    with pytest.raises(InvalidOperationError, match="table stranger lies in it too"):
        world.metastore.truncate_table("db", "q")
    with pytest.raises((InvalidOperationError, MetaError)):
        world.metastore.exchange_partitions(
            {"p": "0"}, TableName("db", "q", "hive"), TableName("db", "q", "hive")
        )
    world.metastore.drop_partitions("db", "q", ["p=0"])
    assert (place / "file").exists()


def test_a_partition_in_a_directory_of_its_own_table_leaves_the_others(world: GuardedWorld) -> None:
    place = world.partitioned(None)
    (place / "p=0" / "file").write_text("0")
    around = Partition(
        values=("9",), database_name="db", table_name="q",
        storage=Storage(columns=(A,), location=f"file:{place}"),
    )  # fmt: skip
    world.metastore.add_partitions("db", "q", [around])
    with pytest.raises(InvalidOperationError, match="table q lies in it too"):
        world.metastore.truncate_table("db", "q", ["p=9"])
    world.metastore.drop_partitions("db", "q", ["p=9"])
    assert (place / "p=0" / "file").exists()


@pytest.mark.parametrize("kind", ["location", "managed_location"])
def test_the_directory_of_a_database_is_taken_along_by_no_table(
    world: GuardedWorld, kind: str
) -> None:
    """Neither of its two."""
    place = world.home / "t" / "other.db"
    world.metastore.create_database(Database(name="other", **{kind: f"file:{place}"}))
    (place / "file").write_text("mine")
    with pytest.raises(InvalidOperationError, match="database other lies in it too"):
        world.metastore.truncate_table("db", "t")
    world.metastore.drop_table("db", "t")
    assert (place / "file").exists()


def test_a_link_into_the_directory_of_another_is_followed(world: GuardedWorld) -> None:
    inside = filled(world.home / "t" / "x")
    (world.home / "link").symlink_to(world.home / "t")
    world.table("sly", world.home / "link" / "x")
    with pytest.raises(InvalidOperationError, match="it lies in the directory of table t"):
        world.metastore.truncate_table("db", "sly")
    world.metastore.drop_table("db", "sly")
    assert (inside / "file").exists()


def test_a_directory_that_is_a_link_itself_is_followed(world: GuardedWorld) -> None:
    inside = filled(world.home / "t" / "x")
    (world.home / "link").symlink_to(inside)
    world.table("sly", world.home / "link")
    with pytest.raises(InvalidOperationError, match="it lies in the directory of table t"):
        world.metastore.truncate_table("db", "sly")
    world.metastore.drop_table("db", "sly")
    assert (inside / "file").exists()


def test_a_link_out_of_the_warehouse_is_not_followed(world: GuardedWorld) -> None:
    outside = filled(world.folder / "home" / "bob")
    (world.home / "link").symlink_to(outside.parent)
    world.table("sly", world.home / "link" / "bob")
    world.metastore.drop_table("db", "sly")
    assert (outside / "file").exists()


@pytest.mark.parametrize("text", ["/", "file:/", "file:///", "hdfs://nn:8020/"])
def test_a_whole_file_system_is_no_location(world: GuardedWorld, text: str) -> None:
    with pytest.raises(InvalidObjectError, match="is a whole file system"):
        world.table("v", text)
    with pytest.raises(InvalidObjectError, match="is a whole file system"):
        world.metastore.create_database(Database(name="other", location=text))


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "github", "sftp", "dask"])
def test_a_scheme_that_is_not_served_is_refused_by_name(world: GuardedWorld, scheme: str) -> None:
    with pytest.raises(MetaError, match=f"{scheme}://.*not|no host that a client names"):
        world.table("v", f"{scheme}://127.0.0.1:1/x")


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs", "http"])
def test_no_connection_is_opened_for_a_client(world: GuardedWorld, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        place = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/data/x"
        with pytest.raises(MetaError, match="connects to no host that a client names"):
            world.table("v", place)
        with pytest.raises(MetaError, match="connects to no host that a client names"):
            world.metastore.create_database(Database(name="other", location=place))
        world.table("seen", place, type="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
        world.metastore.drop_table("db", "seen")
        with pytest.raises(TimeoutError):
            server.accept()


def put_around(world: GuardedWorld) -> None:
    world.table("mine", world.home, parameters=ACID)


def put_inside(world: GuardedWorld) -> None:
    world.table("mine", world.home / "t" / "below", parameters=ACID)


def put_at(world: GuardedWorld) -> None:
    world.table("mine", world.home / "t", parameters=ACID)


def altered_to(world: GuardedWorld) -> None:
    world.table("mine", parameters=ACID)
    world.move("mine", world.home / "t")


def partition_in(world: GuardedWorld) -> None:
    world.table("mine", partition_columns=(P,), parameters=ACID)
    storage = orc_storage(location=f"file:{world.home}/t")
    one = Partition(values=("1",), database_name="db", table_name="mine", storage=storage)
    world.metastore.add_partitions("db", "mine", [one])


@pytest.mark.parametrize("share", [put_around, put_inside, put_at, altered_to, partition_in])
def test_a_transactional_table_shares_no_directory(
    world: GuardedWorld, share: Callable[[GuardedWorld], None]
) -> None:
    """Its compaction would take the other's files for its own."""
    with pytest.raises(InvalidObjectError, match=r"table db.mine: .*(table t|database db)"):
        share(world)
