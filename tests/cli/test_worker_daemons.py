"""Workers of a server that ends."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from hms_bridge.cli.serve_daemons import AskedDaemons, start_daemons
from hms_bridge.model.compaction import CompactionState
from hms_bridge.spark.request import SparkRequest
from tests.support.world import World

TABLES = 40
PATIENCE_SECONDS = 60.0


def _states(world: World) -> list[CompactionState]:
    return [entry.state for entry in world.metastore.show_compactions()]


def test_a_worker_of_a_server_that_ends_takes_nothing_more(tmp_path: Path) -> None:
    """Of a long queue it took entry after entry, until it was cut off in the middle of one."""
    world = World(tmp_path)
    for number in range(TABLES):
        world.create_table(f"t{number}")
        for row in range(2):
            world.insert(f"t{number}", (row, "v"))
        world.request_compaction(f"t{number}")
    asked = AskedDaemons(is_worker=True, is_initiator=False, is_cleaner=False, pool_name=None)
    with ExitStack() as stack:
        start_daemons(world.store, stack, asked, SparkRequest(master=None, settings={}))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while CompactionState.READY_FOR_CLEANING not in _states(world):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    states = _states(world)
    assert CompactionState.INITIATED in states
    assert set(states) == {CompactionState.INITIATED, CompactionState.READY_FOR_CLEANING}
    again = _states(world)
    assert again == states
