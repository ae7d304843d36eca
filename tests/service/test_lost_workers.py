"""Housekeeping gives entries of workers that take too long back to the queue."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.model.compaction import CompactionRequest, CompactionState, CompactionType
from tests.support.cleaning_world import CleaningWorld


def test_a_worker_that_takes_too_long_loses_its_entry(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path)
    metastore = world.metastore
    metastore.compact(
        CompactionRequest(database_name="db", table_name="t", type=CompactionType.MAJOR)
    )
    assert metastore.find_next_compaction("w-1", "4.0") is not None
    timeout_ms = world.settings.compactor.worker_timeout_ms
    for milliseconds, state in (
        (timeout_ms, CompactionState.WORKING),
        (1, CompactionState.INITIATED),
    ):
        world.clock.advance(milliseconds)
        metastore.run_housekeeping()
        assert [one.state for one in metastore.show_compactions()] == [state]
    metastore.close()
