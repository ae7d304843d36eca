from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.config.settings import CompactorSettings
from tests.support.txns import Txns
from tests.support.world import World


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    """An abort is forgotten as soon as it may be: these are tests of that moment."""
    world = World(fast_folder, compactor=CompactorSettings(abort_retention_ms=0))
    yield world
    world.close()


@pytest.fixture
def txns(world: World) -> Txns:
    return world.txns
