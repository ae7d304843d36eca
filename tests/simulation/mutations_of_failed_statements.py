"""Mutations of what cleans up after failed statements; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_TESTS = "tests/cleaner/test_never_created.py::test_"
_HANDLER = "cleaner/handlers/never_created.py"
_LEFTOVERS = "cleaner/leftovers.py"

OF_FAILED_STATEMENTS = (
    Mutation(
        name="what others wrote into the directory of a table that was never made goes, too",
        file=_LEFTOVERS,
        within="_written",
        old="parsed.max_write_id in write_ids",
        new="write_ids",
        test=f"{_TESTS}the_next_try_keeps_what_it_writes_there",
    ),
    Mutation(
        name="nobody asks whether the write of a failed statement is aborted",
        file=_HANDLER,
        within="NeverCreatedHandler.clean",
        old="self._leftovers.aborted_writes(entry)[-1:]",
        new="(entry.highest_write_id,)",
        test=f"{_TESTS}what_nobody_knows_the_end_of_stays",
    ),
    Mutation(
        name="the clean-up of a failed statement forgets that it was aborted",
        file="hms_bridge/txn/cleaning.py",
        within="mark_all_cleaned",
        old="not ended.is_never_created",
        new="True",
        test=f"{_TESTS}what_it_wrote_goes_with_the_directory",
    ),
    Mutation(
        name="the record of an abort goes before the rows that it hides",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._gone",
        old="when_gone(entry)",
        new="pass",
        test=f"{_TESTS}a_statement_that_was_killed_shows_nothing_in_a_later_table",
    ),
    Mutation(
        name="anybody may have a directory cleaned",
        file="hms_bridge/txn/never_created.py",
        within="submit_for_cleanup",
        old="not connection.scalar(select(is_writer))",
        new="False",
        test=f"{_TESTS}only_who_wrote_it_may_ask",
    ),
    Mutation(
        name="what a failed statement left is cleaned before its transaction ends",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old=("and_(is_never_begun, ~of_txn.where(TXNS.c.TXN_STATE != TxnState.ABORTED.value))"),
        new="and_(is_never_begun)",
        test=f"{_TESTS}nothing_goes_while_it_may_still_be_committed",
    ),
    Mutation(
        name="what a failed statement left ends as a failed compaction",
        file="hms_bridge/txn/housekeeping.py",
        within="settle_compactions",
        old="[entry for entry in readable if not entry.is_never_created]",
        new="list(readable)",
        test=f"{_TESTS}what_it_wrote_goes_with_the_directory",
    ),
)
