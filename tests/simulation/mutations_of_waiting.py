"""Mutations of the wait for open writers and of the snapshot after it; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_FILE = "hms_bridge/repl/dump/snapshot_wait.py"
_OVERLAPPING = "tests/repl/test_overlapping_writers.py::"

OF_WAITING = (
    Mutation(
        name="a dump waits for writers that came after its first look",
        file=_FILE,
        within="wait_for_snapshot",
        old="None if now_open is None else now_open.of(first_writers)",
        new="now_open",
        test=f"{_OVERLAPPING}test_a_bootstrap_begins_while_a_transaction_is_always_open",
        is_simulated=True,
    ),
    Mutation(
        name="a dump takes the snapshot of its last look, in which later writers are open",
        file=_FILE,
        within="wait_for_snapshot",
        old="first.as_ended(later)",
        new="later",
        test=f"{_OVERLAPPING}test_later_writes_hide_behind_none_that_was_waited_for",
    ),
    Mutation(
        name="a write that aborted while a dump waited is committed in its snapshot",
        file=_FILE,
        within="_as_ended",
        old="later.is_aborted(write_id)",
        new="False",
        test=f"{_OVERLAPPING}test_a_writer_of_the_set_that_aborts_meanwhile_is_aborted_on_the_replica",
    ),
    Mutation(
        name="a dump waits for locks alone, not for open write ids",
        file=_FILE,
        within="OpenWriters.of",
        old="not txn_ids and (not tables)",
        new="not txn_ids",
        test=f"{_OVERLAPPING}test_a_writer_of_the_set_that_aborts_meanwhile_is_aborted_on_the_replica",
    ),
    Mutation(
        name="a dump waits for open write ids alone, not for locks",
        file=_FILE,
        within="OpenWriters.of",
        old="not txn_ids and (not tables)",
        new="not tables",
        test=f"{_OVERLAPPING}test_only_who_was_waited_for_is_aborted",
    ),
)
