"""PostgreSQL plans what a verb of a transaction asks a few times, and then no more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

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


@pytest.fixture
def state_index(world: World) -> Iterator[str]:
    """Of Hive's since 4.1, beside ours."""
    name = "TXN_STATE_IDX"
    world.execute(text(f'CREATE UNIQUE INDEX "{name}" ON "TXNS" ("TXN_STATE", "TXN_ID")'))
    yield name
    world.execute(text(f'DROP INDEX "{name}"'))


def test_no_statement_of_a_write_is_planned_each_time(world: World, txns: Txns) -> None:
    _write_often(txns)
    asked = (
        "SELECT statement, custom_plans FROM pg_prepared_statements "
        f"WHERE name LIKE 'hmsb%' AND custom_plans + generic_plans > {2 * TRIED + REPLANNED}"
    )
    with _kept_connections(world) as pooled:
        rows = [row for one in pooled for row in one.execute(asked)]
    assert len(rows) > 5, "they are prepared at all"
    assert [row for row in rows if row[1] > TRIED + REPLANNED] == []


def test_a_txn_is_looked_up_by_its_id_where_the_table_was_known_as_empty(
    world: World, txns: Txns, state_index: str
) -> None:
    """Else all that are open are read each time, in the index of their states. PostgreSQL looks
    once a minute what a table has; thousands may be open before it does so again."""
    _leave_one_row_in_many_pages(world)
    _write_often(txns)
    with _kept_connections(world) as pooled:
        scans = [scan for one in pooled for scan in _index_scans(one)]
    names = {scan["Index Name"] for scan in scans}
    assert {"TXNS_pkey", "HMSB_WRITE_IDS_OF_TXN"} <= names
    by_state = [scan for scan in scans if scan["Index Name"] in (state_index, "HMSB_TXN_STATE")]
    assert [scan for scan in by_state if "TXN_STATE" not in scan.get("Index Cond", "")] == []


def test_so_do_foreign_keys(world: World, txns: Txns) -> None:
    """Where Hive's index of states is not there."""
    _leave_one_row_in_many_pages(world)
    txns.open(1000)
    with world.engine.engine.connect() as connection:
        for statement in (
            "SET LOCAL enable_seqscan TO off",
            "SET LOCAL plan_cache_mode TO force_generic_plan",
            'PREPARE looked_up AS SELECT 1 FROM ONLY "TXNS" x WHERE "TXN_ID" = $1 FOR KEY SHARE',
        ):
            connection.execute(text(statement))
        shown = connection.execute(text("EXPLAIN (FORMAT JSON) EXECUTE looked_up(7)"))
        plan = shown.scalar_one()
        connection.execute(text("DEALLOCATE looked_up"))
    assert [scan["Index Name"] for scan in _scans_in(plan[0]["Plan"])] == ["TXNS_pkey"]


def _write_often(txns: Txns) -> None:
    def write(_: int) -> None:
        for _ in range(TURNS):
            txn_id, _ = txns.write()
            txns.commit(txn_id)

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(write, range(CLIENTS)))


@contextmanager
def _kept_connections(world: World) -> Iterator[list[Any]]:
    """The driver's, with the plans that they keep."""
    world.engine.give_back_kept()
    pool = world.engine.engine.pool
    pooled = [world.engine.engine.raw_connection() for _ in range(pool.checkedin())]  # type: ignore[attr-defined]
    try:
        yield [one.driver_connection for one in pooled]
    finally:
        for one in pooled:
            one.close()


def _leave_one_row_in_many_pages(world: World) -> None:
    rows = (
        'INSERT INTO "TXNS" ("TXN_STATE", "TXN_STARTED", "TXN_LAST_HEARTBEAT", "TXN_USER", '
        "\"TXN_HOST\") SELECT 'c', 0, 0, repeat('u', 100), 'h' FROM generate_series(1, 3000)"
    )
    all_but_the_last = 'DELETE FROM "TXNS" WHERE "TXN_ID" < (SELECT max("TXN_ID") FROM "TXNS")'
    with world.engine.engine.connect() as connection:
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        # Of two indexes that would do, the smaller one looks better.
        shrunk = 'REINDEX INDEX "HMSB_TXN_STATE"'
        for statement in (rows, all_but_the_last, 'VACUUM ANALYZE "TXNS"', shrunk):
            alone.execute(text(statement))


def _index_scans(connection: Any) -> Iterator[dict[str, Any]]:
    """Of all plans that a connection keeps."""
    connection.execute("SET enable_seqscan TO off")
    connection.execute("SET plan_cache_mode TO force_generic_plan")
    kept = connection.execute(
        "SELECT name, cardinality(parameter_types) FROM pg_prepared_statements "
        "WHERE name LIKE 'hmsb%' AND statement ~ '^(SELECT|INSERT|UPDATE|DELETE|WITH)'"
    ).fetchall()
    for name, count in kept:
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        shown = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE {name}{values}").fetchone()
        yield from _scans_in(shown[0][0]["Plan"])


def _scans_in(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Index Name" in node:
        yield node
    for part in node.get("Plans", ()):
        yield from _scans_in(part)
