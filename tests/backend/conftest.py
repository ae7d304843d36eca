from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.backend.engine import Database
from tests.support.databases import fresh_database
from tests.support.txn_world import TxnWorld


@pytest.fixture
def database() -> Iterator[Database]:
    with fresh_database() as opened:
        yield opened


@pytest.fixture
def shared_database(tmp_path: Path) -> Iterator[Database]:
    """One that threads can use side by side."""
    with fresh_database(tmp_path) as opened:
        yield opened


@pytest.fixture
def world(database: Database) -> TxnWorld:
    return TxnWorld(database)
