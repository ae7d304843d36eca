"""A replica whose metastore has the source's warehouse: its tables would be the source's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.repl.load.plan import LoadRequest


def open_target(world, warehouse: Path) -> None:
    replica = world.replica
    replica.close()
    replica.settings = replace(replica.settings, warehouse=str(warehouse))
    replica.start()


def request_of(world) -> LoadRequest:
    """With the source's name, whose place is that of its database."""
    return replace(world.load_request, target_database="src")


def load(world) -> None:
    loader = world.loader()
    loader.run(loader.plan(request_of(world)))


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


def dump_with_another(world) -> Path:
    """The replica has table t; the next dump has one more, and where that comes there is a link to
    the source's, which is answered."""
    world.dump()
    load(world)
    world.create_table("later")
    world.insert("later", (2, "b"))
    there = world.target.get_database("src").location.removeprefix("file:")
    (Path(there) / "later").symlink_to(world.path("later"))
    world.dump()
    return world.path("later")


def test_a_table_that_comes_later_is_refused_too(world):
    later = dump_with_another(world)
    with pytest.raises(ReplError, match="both sides have one warehouse"):
        load(world)
    assert world.target.get_tables("src") == ("t",)
    assert any(later.rglob("bucket_*"))


def test_a_load_that_was_killed_before_it_looked_looks_again(world):
    later = dump_with_another(world)
    world.kill_load("after create_table", request_of(world))
    world.clock.advance_ms(100_000)
    with pytest.raises(ReplError, match="both sides have one warehouse"):
        load(world)
    assert world.target.get_tables("src") == ("t",)
    assert any(later.rglob("bucket_*"))
