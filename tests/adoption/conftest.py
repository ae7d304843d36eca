"""A metastore that adopts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[LocalStore]:
    shutil.copy(empty_database, tmp_path / "metastore.db")
    settings = Settings(
        warehouse=str(tmp_path / "warehouse"), archive=ArchiveSettings(root=str(tmp_path / "cm"))
    )
    opened = open_local(f"sqlite:///{tmp_path}/metastore.db", settings, is_created=False)
    yield opened
    opened.metastore.close()
