from __future__ import annotations

import os
import tempfile
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
def fast_folder(tmp_path):
    """A folder in memory where there is one: syncs cost nothing there."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def world(fast_folder: Path) -> Iterator[ReplWorld]:
    """A source with one table and one row, not dumped yet, and where its replica will be."""
    world = ReplWorld(fast_folder)
    world.create_table("t")
    world.insert("t", (1, "a"))
    yield world
    world.close()
