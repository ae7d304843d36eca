"""PostgreSQL plans what a verb of a transaction asks a few times, and then no more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hms_bridge.clock import SystemClock
from tests.support.databases import ON_POSTGRESQL
from tests.support.txns import Txns
from tests.support.world import World

pytestmark = ON_POSTGRESQL
CLIENTS = 6
TURNS = 25
TRIED = 5
"""How many plans PostgreSQL makes of a text before it compares them with one that it keeps."""
REPLANNED = 4
"""How often it may do so again, as it learns what is in the tables."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """The database's own time."""
    world = World(tmp_path, clock=SystemClock())
    yield world
    world.close()


def test_no_statement_of_a_write_is_planned_each_time(world: World, txns: Txns) -> None:
    def write_often(_: int) -> None:
        for _ in range(TURNS):
            txn_id, _ = txns.write()
            txns.commit(txn_id)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(write_often, range(CLIENTS)))
    asked = (
        "SELECT statement, custom_plans FROM pg_prepared_statements "
        f"WHERE name LIKE 'hmsb%' AND custom_plans + generic_plans > {2 * TRIED + REPLANNED}"
    )
    world.engine.give_back_kept()
    pool = world.engine.engine.pool
    pooled = [world.engine.engine.raw_connection() for _ in range(pool.checkedin())]  # type: ignore[attr-defined]
    try:
        rows = [row for one in pooled for row in one.driver_connection.execute(asked)]  # type: ignore[union-attr]
    finally:
        for one in pooled:
            one.close()
    assert len(rows) > 5, "they are prepared at all"
    assert [row for row in rows if row[1] > TRIED + REPLANNED] == []
