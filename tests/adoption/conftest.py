"""A metastore that adopts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.connect import LocalStore
from tests.support.world import World


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return World(tmp_path, clock=SystemClock()).store
