from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.golden_repl import GoldenRepl, open_cycle
from tests.support.repl_world import ReplWorld


@pytest.fixture(scope="session")
def cycle(tmp_path_factory) -> GoldenRepl:
    """The replication cycle of a real Hive; the project has all of it."""
    return open_cycle(tmp_path_factory.mktemp("cycle"))


@pytest.fixture
def empty_world(fast_folder: Path) -> Iterator[ReplWorld]:
    """A source without tables, and where its replica will be."""
    world = ReplWorld(fast_folder)
    yield world
    world.close()


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    """A source with one table and one row, not dumped yet."""
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"))
    return empty_world


@pytest.fixture
def busy_world(empty_world: ReplWorld) -> ReplWorld:
    """Two tables, one of them partitioned, with inserts, an update and a delete."""
    world = empty_world
    world.create_table("t")
    world.insert("t", (1, "a"), (2, "b"), (3, "c"))
    world.create_table("parted", is_partitioned=True)
    for value in ("x", "y"):
        world.add_partition("parted", value)
        world.insert("parted", (1, value), (2, value), partition=f"p={value}")
    return world
