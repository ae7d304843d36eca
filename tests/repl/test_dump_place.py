"""Dumps in the directory of a table would go with it: a DROP removes the directory whole (I5)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.repl.dump.plan import DumpKind
from hms_bridge.server.serve import MetastoreServer
from tests.repl.test_edges import external_table


def everything(world) -> dict[Path, bytes | None]:
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in world.folder.rglob("*")
        if not path.name.startswith("source.db3")
    }


def refuse(world, root: Path | str, holder: str, source=None) -> None:
    world.source.alter_database("src", replace(world.source.get_database("src"), parameters={}))
    before, event = everything(world), world.source.get_current_event_id()
    with pytest.raises(ReplError, match=rf"with {holder} \(.*set hive\.repl\.rootdir"):
        world.dump(source, root=str(root))
    assert everything(world) == before
    assert world.source.get_current_event_id() == event
    assert not world.source.get_database("src").is_replication_source


@pytest.mark.parametrize("below", ["", "dumps", "delta_0000001_0000001_0000/x"])
def test_a_table(world, below):
    refuse(world, Path(world.root("t").path) / below, r"table src\.t")


def test_a_table_of_another_database(world):
    world.source.create_database(Database(name="other"))
    table = world.source.get_table("src", "t")
    storage = replace(table.storage, location=None)
    world.source.create_table(replace(table, database_name="other", storage=storage))
    place = world.source.get_table("other", "t").storage.location
    refuse(world, f"{place}/dumps", r"table other\.t")


def test_an_external_table(world):
    place = world.folder / "lake"
    external_table(world, "ext", place)
    refuse(world, place / "dumps", r"table src\.ext")


def test_a_directory_that_only_a_client_names_stops_no_dump(world, caplog):
    """Anybody who reaches the port would stop all dumps by one external table above them."""
    place = world.folder / "lake"
    external_table(world, "ext", place)
    world.close()
    world.start(location_roots=())
    world.dump(root=str(place / "dumps"))
    assert f"{place}/dumps lies in the directory of table src.ext" in caplog.text
    refuse(world, Path(world.root("t").path) / "dumps", r"table src\.t")


def test_a_partition_that_lies_elsewhere(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    (found,) = world.source.get_partitions("src", "part")
    place = world.folder / "elsewhere"
    storage = replace(found.storage, location=f"file:{place}")
    world.source.alter_partitions("src", "part", [replace(found, storage=storage)])
    refuse(world, place / "dumps", r"partition p=1 of table src\.part")


def test_a_link_into_a_table(world):
    link = world.folder / "link"
    link.symlink_to(world.root("t").path)
    refuse(world, link / "dumps", r"table src\.t")


def test_a_table_behind_a_link(world):
    place, there = Path(world.root("t").path), world.folder / "other disk"
    shutil.move(place, there)
    place.symlink_to(there)
    refuse(world, there / "dumps", r"table src\.t")


def test_a_later_dump_is_refused_too_and_goes_on_elsewhere(world):
    world.replicate()
    external_table(world, "around", world.repl_root)
    with pytest.raises(ReplError, match=r"table src\.around"):
        world.dump()
    elsewhere = world.folder / "other dumps"
    shutil.copytree(world.repl_root, elsewhere)
    assert world.dump(root=str(elsewhere)).kind is DumpKind.INCREMENTAL


def test_beside_tables_dumps_may_lie_in_a_warehouse(world):
    warehouse = world.folder / "source"
    for root in (warehouse / "dumps", warehouse / "src.db" / "t_dumps", warehouse):
        assert world.dump(root=str(root), is_bootstrap_forced=True).kind is DumpKind.BOOTSTRAP


def test_over_thrift_the_tables_of_the_database_are_looked_at(world):
    with (
        MetastoreServer(0, world.source) as server,
        ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}") as client,
    ):
        refuse(world, Path(world.root("t").path) / "dumps", r"table src\.t", client)
        link = world.folder / "link"
        link.symlink_to(world.root("t").path)
        refuse(world, link / "dumps", r"table src\.t", client)
        root = world.folder / "source" / "dumps"
        assert world.dump(client, root=str(root)).kind is DumpKind.BOOTSTRAP
