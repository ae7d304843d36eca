from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.busy_metastore import BusyMetastore, make_busy_metastore
from tests.support.program import Program


@pytest.fixture(scope="session")
def fast_root() -> Iterator[Path]:
    """A folder in memory where there is one: syncs cost nothing there."""
    memory = Path("/dev/shm")
    above = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=above, prefix="hms-bridge-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def empty_database(fast_root: Path) -> Path:
    """A database with the schema, to be copied."""
    program = Program(fast_root / "empty")
    program.folder.mkdir()
    program.ok("schema", "init")
    return program.folder / "metastore.db"


@pytest.fixture
def program(fast_root: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with an empty metastore; its folder is the current directory."""
    folder = Path(tempfile.mkdtemp(dir=fast_root))
    shutil.copy(empty_database, folder / "metastore.db")
    monkeypatch.chdir(folder)
    return Program(folder)


@pytest.fixture(scope="session")
def busy_original(fast_root: Path) -> tuple[BusyMetastore, Path]:
    folder, copy = fast_root / "busy", fast_root / "busy-as-made"
    folder.mkdir()
    made = make_busy_metastore(folder)
    shutil.copytree(folder, copy, symlinks=True)
    return made, copy


@pytest.fixture
def busy(
    busy_original: tuple[BusyMetastore, Path], monkeypatch: pytest.MonkeyPatch
) -> BusyMetastore:
    """A metastore in the middle of its work, as it was made: its paths are in it."""
    made, copy = busy_original
    shutil.rmtree(made.program.folder)
    shutil.copytree(copy, made.program.folder, symlinks=True)
    monkeypatch.chdir(made.program.folder)
    return made
