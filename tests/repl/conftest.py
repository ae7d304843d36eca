from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.support.golden_repl import GoldenRepl, golden_cycles, open_cycle


@pytest.fixture(scope="session")
def own_cycle(tmp_path_factory) -> GoldenRepl:
    """The project's own copy alone, for what need not be seen twice."""
    return open_cycle(golden_cycles()[0], tmp_path_factory.mktemp("cycle"))


@pytest.fixture
def fast_folder(tmp_path):
    """A folder in memory where there is one: syncs cost nothing there."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(
    scope="session", params=golden_cycles(), ids=["own", "shared"][: len(golden_cycles())]
)
def cycle(request, tmp_path_factory) -> GoldenRepl:
    return open_cycle(request.param, tmp_path_factory.mktemp("cycle"))
