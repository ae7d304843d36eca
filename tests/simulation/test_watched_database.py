"""The database of a simulated cluster has all that the product's has."""

from __future__ import annotations

from hms_bridge.backend.engine import Database
from tests.simulation.side import WatchedDatabase


def test_nothing_of_a_database_is_missing() -> None:
    asked = {name for name in vars(Database) if not name.startswith("_")}
    assert asked <= {*vars(WatchedDatabase)}
