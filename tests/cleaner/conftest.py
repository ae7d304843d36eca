"""A metastore with something to clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cleaning_world import CleaningWorld


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    return CleaningWorld(tmp_path)
