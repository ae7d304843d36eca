"""A replica whose metastore has the source's warehouse: its tables would be the source's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore


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


def lead_to_source(world, table: str) -> Path:
    """Where a table comes on the replica is a link to the source's."""
    there = world.target.get_database("src").location.removeprefix("file:")
    (Path(there) / table).symlink_to(world.path(table))
    return world.path(table)


def test_a_table_that_comes_later_is_refused_too(world):
    world.dump()
    load(world)
    world.create_table("later")
    world.insert("later", (2, "b"))
    later = lead_to_source(world, "later")
    world.dump()
    with pytest.raises(ReplError, match="both sides have one warehouse"):
        load(world)
    assert world.target.get_tables("src") == ("t",)
    assert any(later.rglob("bucket_*"))


def test_a_load_that_was_killed_before_it_looked_looks_again(world):
    world.dump()
    load(world)
    world.create_table("later")
    world.insert("later", (2, "b"))
    later = lead_to_source(world, "later")
    world.dump()
    faults = FaultPlan()
    faults.crash_label = "after create_table"
    loader = world.loader(FaultyMetastore(world.target, faults))
    with pytest.raises(CrashError):
        loader.run(loader.plan(replace(world.load_request, target_database="src")))
    world.clock.advance_ms(100_000)
    with pytest.raises(ReplError, match="both sides have one warehouse"):
        load(world)
    assert world.target.get_tables("src") == ("t",)
    assert any(later.rglob("bucket_*"))
