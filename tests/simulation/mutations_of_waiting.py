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
        old="        still_open = None if now_open is None else now_open.of(first_writers)\n",
        new="        still_open = now_open\n",
        test=f"{_OVERLAPPING}test_a_bootstrap_begins_while_a_transaction_is_always_open",
    ),
    Mutation(
        name="a dump takes the snapshot of its last look, in which later writers are open",
        file=_FILE,
        old="            return first.as_ended(later)\n",
        new="            return later\n",
        test=f"{_OVERLAPPING}test_later_writes_hide_behind_none_that_was_waited_for",
    ),
    Mutation(
        name="a write that aborted while a dump waited is committed in its snapshot",
        file=_FILE,
        old="for write_id in write_ids.open_ids if later.is_aborted(write_id)]\n",
        new="for write_id in write_ids.open_ids if False]\n",
        test=f"{_OVERLAPPING}test_a_writer_of_the_set_that_aborts_meanwhile_is_aborted_on_the_replica",
    ),
    Mutation(
        name="a dump waits for locks alone, not for open write ids",
        file=_FILE,
        old="        if not txn_ids and not tables:\n",
        new="        if not txn_ids:\n",
        test=f"{_OVERLAPPING}test_a_writer_of_the_set_that_aborts_meanwhile_is_aborted_on_the_replica",
    ),
    Mutation(
        name="a dump waits for open write ids alone, not for locks",
        file=_FILE,
        old="        if not txn_ids and not tables:\n",
        new="        if not tables:\n",
        test=f"{_OVERLAPPING}test_only_who_was_waited_for_is_aborted",
    ),
)
