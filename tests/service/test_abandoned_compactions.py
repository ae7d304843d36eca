"""The entry of a worker that died goes back to the queue once its transaction has ended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.compaction.dead_workers import end_dead_workers, is_other_process_alive
from hms_bridge.errors import MetastoreError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AbortTxnRequest, CommitTxnRequest, OpenTxnsRequest, TxnType
from tests.support.cleaning_world import CleaningWorld

INITIATED, WORKING, FAILED = (
    CompactionState.INITIATED,
    CompactionState.WORKING,
    CompactionState.FAILED,
)


@pytest.fixture
def world(tmp_path: Path):
    made = CleaningWorld(tmp_path)
    made.metastore.compact(CompactionRequest(target=Target("db", "t"), type=CompactionType.MAJOR))
    yield made
    made.metastore.close()


def claim(world: CleaningWorld, worker: str = "w-1") -> tuple[Compaction, TxnId]:
    """A worker takes the entry, and dies after it has named its transaction."""
    entry = world.metastore.find_next_compaction(worker, "4.0")
    assert entry is not None
    (txn_id,) = world.metastore.open_txns(
        OpenTxnsRequest(user="u", host="h", type=TxnType.COMPACTION)
    )
    world.metastore.update_compactor_state(entry, txn_id)
    return entry, txn_id


def pass_ms(world: CleaningWorld, milliseconds: int) -> Compaction:
    world.clock.advance(milliseconds)
    world.metastore.run_housekeeping()
    (entry,) = world.metastore.show_compactions()
    return entry


def test_it_goes_back_with_the_transaction_that_timed_out(world: CleaningWorld) -> None:
    entry, txn_id = claim(world)
    timeout_ms = world.settings.txn.timeout_ms
    assert pass_ms(world, timeout_ms).state is WORKING
    given_back = pass_ms(world, 1)
    assert (given_back.id, given_back.state) == (entry.id, INITIATED)
    assert given_back.error_message == (
        f"given back: worker w-1 has gone: its transaction {txn_id} has ended"
    )


def test_it_goes_back_with_an_aborted_transaction_at_once(world: CleaningWorld) -> None:
    _, txn_id = claim(world)
    world.metastore.abort_txn(AbortTxnRequest(txn_id=txn_id, type=TxnType.COMPACTION))
    assert pass_ms(world, 0).state is INITIATED
    again, _ = claim(world, "w-2")
    assert pass_ms(world, 0).state is WORKING
    assert again.worker_id == "w-2"


def test_one_that_never_named_a_transaction_goes_back_after_the_same_time(
    world: CleaningWorld,
) -> None:
    world.metastore.find_next_compaction("w-1", "4.0")
    timeout_ms = world.settings.txn.timeout_ms
    assert pass_ms(world, timeout_ms).state is WORKING
    assert pass_ms(world, 1).state is INITIATED


def test_what_killed_two_workers_fails(world: CleaningWorld) -> None:
    """It stands first in the queue: nothing behind it would ever be compacted."""
    for worker in ("w-1", "w-2"):
        _, txn_id = claim(world, worker)
        world.metastore.abort_txn(AbortTxnRequest(txn_id=txn_id, type=TxnType.COMPACTION))
        entry = pass_ms(world, 0)
    assert entry.state is FAILED
    assert "w-1" in (entry.error_message or "") and "w-2" in (entry.error_message or "")


def test_the_first_worker_publishes_nothing_any_more(world: CleaningWorld) -> None:
    """I9: it was suspended, not dead; another one has the entry."""
    old, old_txn = claim(world)
    pass_ms(world, world.settings.txn.timeout_ms + 1)
    new, new_txn = claim(world, "w-2")
    for forbidden in (
        lambda: world.metastore.mark_compacted(old),
        lambda: world.metastore.update_compactor_state(old, old_txn),
        lambda: world.metastore.commit_txn(
            CommitTxnRequest(txn_id=old_txn, type=TxnType.COMPACTION)
        ),
    ):
        with pytest.raises(MetastoreError):
            forbidden()
    world.metastore.mark_compacted(new)
    world.metastore.commit_txn(CommitTxnRequest(txn_id=new_txn, type=TxnType.COMPACTION))
    (entry,) = world.metastore.show_compactions()
    assert entry.state is CompactionState.READY_FOR_CLEANING
    assert entry.error_message is None


def test_a_worker_that_starts_anew_ends_those_of_its_host_that_were_killed(
    world: CleaningWorld,
) -> None:
    names = ("here-10-0", "here-11-0", "there-10-0", "here-10", "here-x-10-0")
    first = world.metastore.get_table("db", "t")
    for number in range(2, 1 + len(names)):
        name = f"t{number}"
        storage = replace(first.storage, location=None)
        world.metastore.create_table(replace(first, name=name, storage=storage))
        world.metastore.compact(
            CompactionRequest(target=Target("db", name), type=CompactionType.MAJOR)
        )
    claimed = [claim(world, name)[0].id for name in names]
    ended = end_dead_workers(world.metastore, "here", lambda process: process == 11)
    assert [one.id for one in ended] == claimed[:1]
    world.metastore.run_housekeeping()
    states = {one.id: one.state for one in world.metastore.show_compactions()}
    assert [states[one] for one in claimed] == [INITIATED, *[WORKING] * 4]


def test_the_own_process_has_only_begun() -> None:
    assert not is_other_process_alive(os.getpid())
    assert is_other_process_alive(os.getppid())
