from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.busy_metastore import BusyMetastore, make_busy_metastore
from tests.support.policy_program import Replication
from tests.support.program import Program


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


@pytest.fixture
def replication(busy: BusyMetastore) -> Replication:
    made = Replication(busy)
    assert made.add().exit_code == 0
    return made
