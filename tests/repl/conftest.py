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
