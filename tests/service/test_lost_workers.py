"""Housekeeping gives entries of workers that take too long back to the queue."""

from __future__ import annotations

from pathlib import Path

from hms_bridge.model.compaction import CompactionRequest, CompactionState, CompactionType
from hms_bridge.model.ids import LockId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnType
from tests.support.cleaning_world import CleaningWorld


def test_a_worker_that_takes_too_long_loses_its_entry(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path)
    metastore = world.metastore
    metastore.compact(CompactionRequest(target=Target("db", "t"), type=CompactionType.MAJOR))
    entry = metastore.find_next_compaction("w-1", "4.0")
    assert entry is not None
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="u", host="h", type=TxnType.COMPACTION))
    metastore.update_compactor_state(entry, txn_id)
    timeout_ms = world.settings.compactor.worker_timeout_ms
    for milliseconds, state in (
        (timeout_ms, CompactionState.WORKING),
        (1, CompactionState.INITIATED),
    ):
        world.clock.advance(milliseconds)
        metastore.heartbeat(txn_id, LockId(0))  # it is alive
        metastore.run_housekeeping()
        assert [one.state for one in metastore.show_compactions()] == [state]
    metastore.close()
