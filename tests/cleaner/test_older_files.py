"""Numbers that are given again after the metastore was restored from an older backup (I1).

The table has directories of writes that this metastore knows nothing of. A new write gets the
number of one of them and aborts: the directory is not its own.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from cleaner.plan import CleaningState
from hms_bridge.acid.obsolete import CLOCKS_APART_MS
from hms_bridge.model.compaction import CompactionType, ShowCompactionsRequest
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import AllocateWriteIdsRequest, TableWriteIdState, TxnType
from tests.support.cleaning_world import CleaningWorld, aborted_ids, delta

HOUR_MS = 3_600_000


def lost(world: CleaningWorld, name: str, *, partition: str | None = None) -> Path:
    """A directory from an hour ago, of which the metastore knows nothing any more."""
    path = world.write_directory(name, partition=partition)
    make_older(path, world.clock.now_ms() - HOUR_MS)
    return path


def make_older(directory: Path, time_ms: int) -> None:
    for file in directory.iterdir():
        os.utime(file, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def abort_one(world: CleaningWorld) -> WriteId:
    """A write that takes its number and is refused then, as the directory is there."""
    txn_id = world.open()
    (given,) = world.metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(database_name="db", table_name="t", txn_ids=(txn_id,))
    )
    world.abort(txn_id)
    return given.write_id


def keep_house(world: CleaningWorld) -> None:
    """Forget transactions that left nothing behind; the newest one is not forgotten."""
    world.commit(world.open())
    world.clock.advance_ms(60_000)
    world.metastore.run_housekeeping()


def queued(world: CleaningWorld) -> list[str]:
    entries = world.metastore.show_compactions(ShowCompactionsRequest())
    return [one.error_message or "" for one in entries if one.error_message]


def test_an_older_directory_of_the_number_stays_and_is_told(
    world: CleaningWorld, caplog: pytest.LogCaptureFixture
) -> None:
    path = lost(world, delta(1))
    assert abort_one(world) == 1
    world.write_aborted()
    for _ in range(3):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            (outcome,) = world.cleaner().run_once()
        assert outcome.state is CleaningState.WAITING
        assert f"left where it is: file:{path}, which has files from before" in outcome.message
        assert outcome.message[-60:] in caplog.text
        assert [one[:200] for one in queued(world)] == [outcome.message[:200]]
        assert world.cleaner().run_once() == ()  # not again before its turn
        keep_house(world)
        assert world.directories() == [delta(1)]
        assert aborted_ids(world) == (1,)
    shutil.rmtree(path)
    (outcome,) = world.cleaner().run_once()
    keep_house(world)
    assert outcome.state is CleaningState.CLEANED
    assert (aborted_ids(world), queued(world)) == ((), [])


def test_nothing_goes_where_numbers_were_never_given(world: CleaningWorld) -> None:
    """However young the files are: the metastore is older than the table."""
    world.write()
    world.compact()
    world.write_aborted()
    world.write_directory(delta(4))
    before = world.directories()
    for outcome in world.cleaner().run_once():
        assert outcome.state is CleaningState.POSTPONED
        assert f"{delta(4)} is of write id 4, which this metastore" in outcome.message
    assert world.directories() == before
    shutil.rmtree(world.table / delta(4))
    world.clock.advance_ms(600_000)
    assert {one.state for one in world.cleaner().run_once()} == {CleaningState.CLEANED}
    assert len(world.directories()) == 1


def test_so_does_one_of_which_only_a_file_is_older(world: CleaningWorld) -> None:
    world.write_aborted()
    new = world.table / delta(1) / "bucket_00001"
    make_older(world.table / delta(1), world.clock.now_ms() - HOUR_MS)
    new.write_text("rows")
    world.cleaner().run_once()
    assert {one.name for one in (world.table / delta(1)).iterdir()} >= {"bucket_00000", new.name}


@pytest.mark.parametrize("is_older", [False, True])
def test_clocks_may_be_apart(world: CleaningWorld, is_older: bool) -> None:
    world.write_aborted()
    time_ms = world.clock.now_ms() - CLOCKS_APART_MS - is_older
    make_older(world.table / delta(1), time_ms)
    world.cleaner().run_once()
    assert world.directories() == ([delta(1)] if is_older else [])


def test_compactions_go_on_and_their_inputs_go(world: CleaningWorld) -> None:
    lost(world, delta(1))
    abort_one(world)
    for last in (3, 5):
        world.write()
        world.write()
        entry = world.compact()
        states = {one.entry.id: one.state for one in world.cleaner().run_once()}
        assert states[entry.id] is CleaningState.CLEANED
        keep_house(world)
        assert world.directories() == [f"base_{last:07d}_v{entry.txn_id:07d}", delta(1)]
        assert aborted_ids(world) == (1,)


def test_an_older_output_of_a_compaction_stays(world: CleaningWorld) -> None:
    """It may be all that is left of the rows."""
    world.write()
    other = world.open(TxnType.COMPACTION, "worker")
    name = f"base_0000001_v{other:07d}"
    lost(world, name)
    world.abort(other)
    entry = world.compact(kind=CompactionType.MINOR)
    world.cleaner().run_once()
    assert world.directories() == [name, f"delta_0000001_0000001_v{entry.txn_id:07d}"]


def test_one_partition_keeps_no_other_from_being_cleaned(tmp_path: Path) -> None:
    world = CleaningWorld(tmp_path, is_partitioned=True)
    one, two = world.add_partition("t", "1"), world.add_partition("t", "2")
    lost(world, delta(1), partition=one)
    assert abort_one(world) == 1
    world.write_directory(delta(1), partition=two)
    world.write_directory(delta(2), partition=one)
    assert abort_one(world) == 2
    for _ in range(2):
        world.cleaner().run_once()
        keep_house(world)
    assert world.directories(one) == [delta(1)]
    assert world.directories(two) == []
    assert aborted_ids(world) == (1,)


def test_what_another_metastore_aborted_is_older(world: CleaningWorld) -> None:
    """An adopted table is told which of its writes were aborted long ago."""
    lost(world, delta(1))
    lost(world, delta(2))
    state = TableWriteIdState(
        database_name="db", table_name="t", valid_write_ids="db.t:2:9223372036854775807::2",
        user="u", host="h",
    )  # fmt: skip
    world.metastore.repl_table_write_id_state(state)
    world.cleaner().run_once()
    keep_house(world)
    assert world.directories() == [delta(1)]
    assert aborted_ids(world) == ()
