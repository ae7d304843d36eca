"""An incremental dump follows on the log that the one before it was made of, or says it cannot.

Numbers of events alone tell nothing: another metastore has the same ones, and so has one that was
restored from an older backup and went on since (I11).
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.errors import AcidFormatError, EventGapError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.target import Target
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.repl_dump import DumpKind
from hms_bridge.rows.scan import plan_scan
from hms_bridge.rows.transaction import current_snapshot
from tests.support.repl_world import LEASE, ReplWorld


def restore(world, backup: Path) -> None:
    """An administrator brings back an older copy of the source's database."""
    world.source.close()
    for file in world.folder.glob("source.db3*"):
        file.unlink()
    shutil.copy(backup, world.folder / "source.db3")
    world.source = world._open("source")


def backed_up(world) -> Path:
    world.source.close()
    backup = world.folder / "backup"
    shutil.copy(world.folder / "source.db3", backup)
    world.source = world._open("source")
    return backup


@pytest.mark.parametrize("written", [2, 5])
def test_a_source_that_was_restored_and_went_on_is_noticed(world, written):
    """As long as the log is shorter it is noticed by that; here it is as long again, and longer."""
    backup = backed_up(world)
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.replicate()
    end = world.source.get_current_event_id()
    restore(world, backup)
    shutil.rmtree(world.root("t").path)
    while world.source.get_current_event_id() < end + written - 2:
        world.source.create_database(Database(name=f"other{world.source.get_current_event_id()}"))
    with pytest.raises(EventGapError, match="restored from a backup.*To begin anew"):
        world.dump()


def test_another_metastore_is_noticed(world):
    world.replicate()
    folder = world.folder / "other"
    folder.mkdir()
    other = ReplWorld(folder)
    other.create_table("t")
    for number in range(5):
        other.insert("t", (number, "z"))
    with pytest.raises(EventGapError, match="look at --metastore"):
        other.dump(root=str(world.repl_root))
    other.close()


def test_it_is_noticed_after_a_dump_was_discarded_too(world):
    world.replicate()
    backup = backed_up(world)
    world.insert("t", (2, "b"))
    world.replicate()
    world.insert("t", (3, "c"))
    world.dump()
    discard = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    request = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
    discard.run(discard.plan(request))
    dumper = world.dumper()
    assert dumper.plan(world.dump_request()).kind is DumpKind.INCREMENTAL
    restore(world, backup)
    for number in range(9):
        world.source.create_database(Database(name=f"other{number}"))
    with pytest.raises(EventGapError, match="restored from a backup"):
        world.dump()


def test_a_log_whose_last_dumped_event_was_purged_is_followed(world):
    """As in a database without a change for longer than events are kept."""
    world.replicate()
    with sqlite3.connect(world.folder / "source.db3") as connection:
        connection.execute("DELETE FROM NOTIFICATION_LOG")
    world.insert("t", (2, "b"))
    world.replicate()
    world.assert_same()


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_tables_that_are_newer_than_their_metastore_are_not_dumped_as_empty(world, is_cleaned):
    """Neither a SELECT nor a compaction takes them so: what replaced the rows is not seen."""
    backup = backed_up(world)
    for number in (2, 3, 4):
        world.insert("t", (number, "later"))
    if is_cleaned:
        world.compact("t", CompactionType.MAJOR)
        world.clean()
    restore(world, backup)
    with pytest.raises(AcidFormatError, match="which this metastore never gave"):
        world.dump()
    world.source.compact(CompactionRequest(target=Target("src", "t"), type=CompactionType.MAJOR))
    worker = Worker(
        world.source,
        LocalExecutor(kernel=BucketKernel(resolver=world.resolve)),
        world.resolve,
        WorkerIdentity(worker_id="w", version="1", user="u", host="h"),
    )
    outcome = worker.run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    txns = current_snapshot(world.source)
    table = world.source.get_table("src", "t")
    (write_ids,) = world.source.get_valid_write_ids(["src.t"], txns)
    with pytest.raises(AcidFormatError, match="which this metastore never gave"):
        plan_scan(world.source, world.resolve, table, txns=txns, write_ids=write_ids)


def test_a_write_that_comes_during_a_look_is_no_sign_of_an_older_metastore(world):
    """The reader's lists end before it; the metastore, asked again, knows it."""
    txns = current_snapshot(world.source)
    table = world.source.get_table("src", "t")
    (write_ids,) = world.source.get_valid_write_ids(["src.t"], txns)
    world.insert("t", (2, "b"))
    world.compact("t", CompactionType.MAJOR)
    splits = plan_scan(world.source, world.resolve, table, txns=txns, write_ids=write_ids)
    assert len(splits) == 1
