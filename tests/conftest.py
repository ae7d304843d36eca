"""What holds for every test."""

from __future__ import annotations

import gc
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from hms_bridge.backend.engine import Database

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile("without deadlines", deadline=None)
# What decides whether a change may land tries the same examples on every machine: a test that fails
# by chance stops the one who runs it by hand, not somebody whose change has nothing to do with it.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "without deadlines")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make quick` asks for it."""
    parser.addoption("--quick", action="store_true", help="without the tests that take long")


def pytest_configure(config: pytest.Config) -> None:
    """What a quick run is stands in a file of its own."""
    if config.getoption("quick"):
        from tests.support.quick_run import QuickRun

        config.pluginmanager.register(QuickRun(config), "quick run")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a session of Spark run in one process; those of a file that starts one of
    its own in another."""
    for item in items:
        shares_session = "spark" in getattr(item, "fixturenames", ())
        if shares_session:
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark" if shares_session else item.path.stem))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: looking through it for garbage takes a tenth of the
    time of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for the whole run."""
    from hms_bridge.spark.session import open_session
    from tests.support.quick_jvm import prefer_quick_start

    prefer_quick_start(os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own sockets and deprecated calls
        session = open_session("tests", master="local[2]")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def fast_root() -> Iterator[Path]:
    """A folder in memory where there is one: syncs cost nothing there."""
    memory = Path("/dev/shm")
    above = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=above, prefix="hms-bridge-") as folder:
        yield Path(folder)


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """The same for one test, removed after it."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def database() -> Iterator[Database]:
    """With the schema, and nothing in it."""
    from tests.support.databases import fresh_database

    with fresh_database() as opened:
        yield opened


@pytest.fixture(scope="session")
def empty_database(fast_root: Path) -> Path:
    """A database with the schema, to be copied."""
    from tests.support.program import Program

    program = Program(fast_root / "empty")
    program.folder.mkdir()
    program.ok("schema", "init")
    return program.folder / "metastore.db"


@pytest.fixture(scope="session")
def typed_program(fast_root: Path) -> Iterator[Path]:
    """A folder for a shell's PATH, whose `hms-bridge` is loaded already."""
    from tests.support.ready_program import ready_program

    folder = fast_root / "bin"
    folder.mkdir()
    with ready_program(folder / "hms-bridge"):
        yield folder
