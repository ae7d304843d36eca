"""What a client learns, and has made, of directories that nobody but itself names."""

from __future__ import annotations

import gzip
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Column, Database, Table
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.statistics_state import ACCURATE
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.service.directories import Directories, WalkLimit
from hms_bridge.service.file_statistics import COUNTED
from tests.conformance.objects import ACID, acid_table, orc_storage, partition, write
from tests.support.installation import Installation

TRUSTED = {ACCURATE: '{"BASIC_STATS":"true"}'}


class Outside:
    """A server, a client of it, and a directory that only the server may read."""

    def __init__(self, folder: Path, client: Metastore) -> None:
        self.client = client
        self.folder = folder
        self.secret = folder / "secret"
        (self.secret / "deep").mkdir(parents=True)
        (self.secret / "deep" / "f").write_bytes(b"12345")

    def listing(self) -> list[Path]:
        return sorted(self.secret.rglob("*"))

    def table(self, place: Path, *, is_external: bool = True, **given: object) -> Table:
        values: dict[str, object] = {
            "storage": orc_storage(location=place.as_uri()),
            "type": "EXTERNAL_TABLE" if is_external else "MANAGED_TABLE",
            "parameters": {"EXTERNAL": "TRUE"} if is_external else {},
        }
        table = acid_table("default", **(values | given))
        self.client.create_table(table)
        return self.client.get_table("default", "t")


@pytest.fixture
def outside_with(tmp_path: Path) -> Iterator[Callable[..., Outside]]:
    opened: list[Callable[[], None]] = []

    def open_with(*roots: str, limit: WalkLimit | None = None) -> Outside:
        world = Installation(tmp_path, location_roots=tuple(f"{tmp_path}/{one}" for one in roots))
        if limit is not None:
            world.close()
            world.start(directories=Directories(FsspecResolver(), limit))
        server = MetastoreServer(0, world.metastore)
        server.__enter__()
        client = ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}")
        opened.extend((world.close, lambda: server.__exit__(None, None, None), client.close))
        return Outside(tmp_path, client)

    yield open_with
    for close in reversed(opened):
        close()


@pytest.fixture
def outside(outside_with: Callable[..., Outside]) -> Outside:
    return outside_with()


def counted(parameters: dict[str, str]) -> set[str]:
    return {name for name in COUNTED if name in parameters}


@pytest.mark.parametrize("is_external", [True, False])
@pytest.mark.parametrize("where", ["secret", "not-there"])
def test_a_table_tells_nothing_of_a_place_outside(
    outside: Outside, where: str, is_external: bool
) -> None:
    table = outside.table(outside.folder / where, is_external=is_external)
    assert table.storage.location == f"file:{outside.folder / where}"
    altered = replace(table, parameters={**table.parameters, "a": "b", **TRUSTED})
    outside.client.alter_table("default", "t", altered)
    table = outside.client.get_table("default", "t")
    assert counted(dict(table.parameters)) == set()
    assert ACCURATE not in table.parameters, "nobody knows what is there"
    assert not (outside.folder / "not-there").exists()
    events = outside.client.get_next_notification(NotificationRequest(last_event_id=0))
    assert [event.type for event in events][0] == "CREATE_TABLE"
    texts = [gzip.decompress(b64decode(event.message)).decode() for event in events]
    assert "deep" not in "".join(texts)


def test_nothing_is_put_into_a_directory_outside(outside: Outside) -> None:
    before = outside.listing()
    outside.table(outside.secret, is_external=False, parameters=dict(ACID))
    _, given = write(outside.client, "default")
    with pytest.raises(InvalidOperationError, match=r"name a directory above it in"):
        outside.client.truncate_table("default", "t", write_id=given)
    assert outside.listing() == before


def test_nor_does_a_partition(outside: Outside) -> None:
    outside.table(
        outside.folder / "not-there", partition_columns=(Column(name="p", type="string"),)
    )
    for where in ("secret", "nor-that"):
        given = partition(
            "default", "t", where, storage=orc_storage(location=(outside.folder / where).as_uri())
        )
        outside.client.add_partitions("default", "t", [replace(given, parameters=TRUSTED)])
        stored = outside.client.get_partition("default", "t", (where,))
        assert counted(dict(stored.parameters)) == set()
        assert ACCURATE not in stored.parameters
        changed = replace(stored, parameters={**stored.parameters, "a": "b"})
        outside.client.alter_partitions("default", "t", [changed])
        stored = outside.client.get_partition("default", "t", (where,))
        assert counted(dict(stored.parameters)) == set()
    assert not (outside.folder / "nor-that").exists()


def test_a_database_is_noted_and_nothing_made_for_it(outside: Outside) -> None:
    place = outside.folder / "not-there"
    outside.client.create_database(Database(name="d", location=place.as_uri()))
    assert outside.client.get_database("d").location == f"file:{place}"
    outside.client.create_table(acid_table("d"))
    assert not place.exists()


def test_a_replica_would_lack_the_files_of_a_managed_table_outside(outside: Outside) -> None:
    default = outside.client.get_database("default")
    marked = replace(default, parameters={"repl.source.for": "p"})
    outside.client.alter_database("default", marked)
    with pytest.raises(MetaError, match=r"name a directory above it in hms\.bridge\.location\.ro"):
        outside.table(outside.secret, is_external=False)


def test_a_drop_does_not_list_without_end_where_a_client_put_a_database(
    outside_with: Callable[..., Outside],
) -> None:
    """Not at all, but where rows would come back with the next partition of a name."""
    outside = outside_with(limit=WalkLimit(names_max=0))
    client, before = outside.client, outside.listing()
    client.create_database(Database(name="d", location=outside.folder.as_uri()))
    given = {"storage": orc_storage(location=outside.secret.as_uri()), "parameters": {}}
    client.create_table(acid_table("d", **given))
    client.drop_table("d", "t")
    given |= {"parameters": dict(ACID), "partition_columns": (Column(name="p", type="string"),)}
    client.create_table(acid_table("d", **given))
    deep = orc_storage(location=(outside.secret / "deep").as_uri())
    client.add_partitions("d", "t", [partition("d", "t", "1", storage=deep)])
    with pytest.raises(MetaError, match=r"more than 0 names.*drop it without its data"):
        client.drop_partitions("d", "t", ["p=1"])
    assert outside.listing() == before


def test_whoever_runs_the_server_names_more(outside_with: Callable[..., Outside]) -> None:
    outside = outside_with("secret", "data")
    assert counted(dict(outside.table(outside.secret).parameters)) == set(COUNTED)
    outside.client.create_database(
        Database(name="d", location=(outside.folder / "data" / "d").as_uri())
    )
    assert (outside.folder / "data" / "d").is_dir()
    outside.client.create_database(
        Database(name="e", location=(outside.folder / "database").as_uri())
    )
    assert not (outside.folder / "database").exists()


@pytest.mark.parametrize(
    "limit", [WalkLimit(names_max=1), WalkLimit(seconds_max=0.0)], ids=["names", "seconds"]
)
def test_what_is_too_much_is_unknown(
    outside_with: Callable[..., Outside], limit: WalkLimit
) -> None:
    outside = outside_with("secret", limit=limit)
    table = outside.table(outside.secret)
    assert counted(dict(table.parameters)) == set()
    outside.client.drop_table("default", "t", is_data_deleted=False)
    with pytest.raises(MetaError, match=r"more than .* names, or takes longer .*external table"):
        outside.table(outside.secret, is_external=False)
