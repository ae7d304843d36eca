"""Silence is measured by a clock that may be set: it ends nobody who lives, and everybody who is
dead (I13)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cleaner.plan import CleaningState
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, MATERIALIZATION_REBUILD_LOCKS, TXNS
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnType
from hms_bridge.service.task_leases import CLAIM_MS
from tests.support.databases import fresh_url
from tests.support.faults import CrashError
from tests.support.files_world import FilesWorld
from tests.support.simulated_clock import DAY_MS
from tests.support.world import World

HOUR_MS = 3_600_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, url=fresh_url(tmp_path))
    world.create_table()
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    yield world
    world.close()


def opened(world: World) -> TxnId:
    """A transaction with a lock, beside a lock of no transaction."""
    txn_id = world.txns.open_one()
    world.txns.lock(txn_id)
    world.txns.lock(0)
    return txn_id


def open_ids(world: World) -> set[int]:
    return {row["TXN_ID"] for row in world.records(TXNS) if row["TXN_STATE"] == "o"}


@pytest.mark.parametrize("step_ms", [HOUR_MS, 40 * DAY_MS, -HOUR_MS])
def test_a_step_of_the_clock_ends_nobody_who_lives(world: World, step_ms: int) -> None:
    alive, dead = opened(world), world.txns.open_one()
    read = world.records(HIVE_LOCKS)[-1]["HL_LOCK_EXT_ID"]
    timeout_ms = world.settings.txn.timeout_ms
    world.metastore.run_housekeeping()
    world.clock.set_back_ms(-step_ms)
    for _ in range(7):
        world.metastore.run_housekeeping()
        assert alive in open_ids(world)
        assert len(world.records(HIVE_LOCKS)) == 2
        world.clock.advance_ms(timeout_ms // 3)
        world.txns.beat(alive)
        world.txns.beat(0, read)
    world.metastore.run_housekeeping()
    assert open_ids(world) == {alive}
    assert dead not in open_ids(world)


def test_who_died_while_the_clock_was_ahead_is_dead_soon(world: World) -> None:
    world.clock.set_back_ms(-40 * DAY_MS)
    opened(world)
    world.put(
        MATERIALIZATION_REBUILD_LOCKS,
        MRL_TXN_ID=77, MRL_DB_NAME="db", MRL_TBL_NAME="v",
        MRL_LAST_HEARTBEAT=world.clock.now_ms(),
    )  # fmt: skip
    world.clock.set_back_ms(40 * DAY_MS)
    world.metastore.run_housekeeping()
    world.clock.advance_ms(world.settings.txn.timeout_ms + 1)
    world.metastore.run_housekeeping()
    assert open_ids(world) == set()
    assert world.records(HIVE_LOCKS) == []
    assert world.records(MATERIALIZATION_REBUILD_LOCKS) == []


def test_replayed_transactions_outlive_a_step(world: World) -> None:
    """Nobody beats for them, and a replica whose replays were aborted begins anew."""
    source = {"repl_policy": "p.*", "repl_source_txn_ids": (7,)}
    (replayed,) = world.txns.open(1, TxnType.REPL_CREATED, **source)
    world.metastore.run_housekeeping()
    world.clock.set_back_ms(-40 * DAY_MS)
    for _ in range(3):
        world.metastore.run_housekeeping()
        world.clock.advance_ms(world.settings.txn.timeout_ms)
    assert open_ids(world) == {replayed}


def test_what_a_fast_clock_compacted_is_cleaned_once_it_is_set_right(world: World) -> None:
    world.clock.set_back_ms(-40 * DAY_MS)
    entry = world.compact()
    world.clock.set_back_ms(40 * DAY_MS)
    world.insert("t", (3, "c"))
    world.cleaner().run_once()  # notices it; from now on the entry waits as any other does
    world.clean()
    assert world.entry(entry).state.name == "SUCCEEDED"


def test_a_cleaning_that_failed_by_a_fast_clock_is_tried_again_soon(world: World) -> None:
    entry = world.compact()
    ready = world.entry(entry)
    world.clock.set_back_ms(-40 * DAY_MS)
    world.metastore.mark_cleaning_postponed(ready, reason="full", retry_retention_ms=HOUR_MS)
    world.clock.set_back_ms(40 * DAY_MS)
    assert [one.state for one in world.cleaner().run_once()] in ([], [CleaningState.WAITING])
    world.clock.advance_ms(HOUR_MS)
    world.clean()
    assert world.entry(entry).state.name == "SUCCEEDED"


def test_a_claim_that_died_by_a_fast_clock_is_given_back(world: World) -> None:
    """A worker that died before it named its transaction."""
    world.request_compaction("t")
    world.clock.set_back_ms(-40 * DAY_MS)
    claimed = world.metastore.find_next_compaction("dead", "1")
    assert claimed is not None
    world.metastore.run_housekeeping()
    assert world.entry(claimed).state.name == "WORKING"
    world.clock.set_back_ms(40 * DAY_MS)
    world.metastore.run_housekeeping()
    assert world.entry(claimed).state.name == "INITIATED"


def test_a_drop_that_died_by_a_fast_clock_is_carried_out(tmp_path: Path) -> None:
    world = FilesWorld(tmp_path)
    world.create_database()
    world.clock.set_back_ms(-40 * DAY_MS)
    place = world.table("t")
    world.fill(place)
    with pytest.raises(CrashError):
        world.restart(crash_label="before remove_file x").drop_table("db", "t")
    world.clock.set_back_ms(40 * DAY_MS)
    world.clock.advance_ms(CLAIM_MS + 1)
    world.restart().run_housekeeping()
    assert not place.exists()
    world.metastore.close()
