"""The cleaner on a whole metastore: what goes, what stays, and what the metastore is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleaner.plan import CleaningState
from hms_bridge.model.compaction import CompactionState, CompactionType
from tests.support.cleaning_world import CleaningWorld


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    return CleaningWorld(tmp_path)


def test_a_major_compaction_is_cleaned_and_its_inputs_archived(world: CleaningWorld) -> None:
    for _ in range(3):
        world.write()
    entry = world.compact()
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.CLEANED, outcome.message
    assert world.directories() == [f"base_0000003_v{entry.txn_id:07d}"]
    assert world.archived_contents() == {
        "2", *(f"rows of t/delta_000000{n}_000000{n}_0000" for n in (1, 2, 3)),
    }  # fmt: skip
    assert (outcome.victim_count, outcome.archived_count, outcome.deleted_count) == (3, 4, 6)
    assert world.state(entry) is CompactionState.SUCCEEDED
    assert world.cleaner().run_once() == ()
