import pytest

from hms_bridge.backend.engine import Database
from tests.support.txn_world import TxnWorld


@pytest.fixture
def world(database: Database) -> TxnWorld:
    return TxnWorld(database)
