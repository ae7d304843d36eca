"""A replica whose metastore has the source's warehouse: its tables would be the source's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError


def open_target(world, warehouse: Path) -> None:
    replica = world.replica
    replica.close()
    replica.settings = replace(replica.settings, warehouse=str(warehouse))
    replica.start()


def load(world) -> None:
    loader = world.loader()
    loader.run(loader.plan(replace(world.load_request, target_database="src")))


def files(world) -> dict[Path, bytes]:
    root = world.path("t")
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("is_link", [False, True])
def test_a_replica_in_the_sources_warehouse_is_refused(world, is_link):
    warehouse = world.folder / "source"
    if is_link:
        warehouse = world.folder / "link"
        warehouse.symlink_to(world.folder / "source")
    open_target(world, warehouse)
    before = files(world)
    world.dump()
    for _ in range(2):
        with pytest.raises(ReplError, match="both sides have one warehouse"):
            load(world)
    assert world.target.get_tables("src") == ()
    world.target.drop_database("src", is_cascade=True)
    assert files(world) == before
    open_target(world, world.folder / "another")
    load(world)
    assert world.target.get_tables("src") == ("t",)


def test_a_table_that_comes_later_is_refused_too(world):
    world.dump()
    load(world)
    world.create_table("later")
    world.insert("later", (2, "b"))
    later = world.path("later")
    there = world.target.get_database("src").location.removeprefix("file:")
    (Path(there) / "later").symlink_to(later)
    world.dump()
    with pytest.raises(ReplError, match="both sides have one warehouse"):
        load(world)
    assert world.target.get_tables("src") == ("t",)
    assert any(later.rglob("bucket_*"))
