"""kill -9 of a real cleaner at its steps; running it again loses nothing and doubles nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from changemanager.manifest import IntentState
from hms_bridge.clock import SystemClock
from hms_bridge.connect import open_local
from hms_bridge.model.compaction import CompactionState
from tests.support.cleaning_world import CleaningWorld
from tests.support.killed_cleaner import settings_of

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = {f"rows of t/delta_000000{n}_000000{n}_0000" for n in (1, 2)}


def run_cleaner(world: CleaningWorld, step: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable, "-m", "tests.support.killed_cleaner",
            world.url, str(world.folder), step,
        ],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    "step", ["after add_intents", "after record_archived", "after advance_intents", "17", "24"]
)
def test_killed_between_archive_and_delete(tmp_path: Path, step: str) -> None:
    world = CleaningWorld(tmp_path)
    world.write()
    world.write()
    entry = world.compact()
    base = f"base_0000002_v{entry.txn_id:07d}"
    world.metastore.close()

    killed = run_cleaner(world, step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "survived" not in killed.stdout
    in_place = {path.read_text() for path in world.table_path.glob("delta_*/bucket_*")}
    assert in_place | world.archived_contents() >= ROWS
    assert (world.table_path / base / "bucket_00000").exists()

    again = run_cleaner(world, "never")
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in world.table_path.iterdir()) == [base]
    assert sorted(path.name.partition("_0000020")[0] for path in tmp_path.glob("cmroot/*")) == [
        "_orc_acid_version", "bucket_00000", "bucket_00000",
    ]  # fmt: skip
    assert world.archived_contents() == {"2", *ROWS}

    store = open_local(world.url, settings_of(tmp_path), SystemClock())
    try:
        (found,) = store.metastore.show_compactions()
        assert found.state is CompactionState.SUCCEEDED
        intents = store.manifest.intents(list(IntentState))
        assert [one.state for one in intents] == [IntentState.DONE, IntentState.DONE]
        entries = store.manifest.entries(store.archive().cmroot.uri)
        assert len(entries) == 3
        origins = [origin.uri for one in entries.values() for origin in one.origins]
        assert len(origins) == len(set(origins)) == 4
    finally:
        store.metastore.close()
