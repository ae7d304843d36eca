"""Protective lines of what a cleaning pass says and waits for; see
:mod:`tests.simulation.mutations`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_CLI = "tests/cleaner/test_cleaner_cli.py::"

OF_CLEANING_REPORTS = (
    Mutation(
        name="a pass that failed does not count what went",
        file="cleaner/entry_work.py",
        within="EntryWork.note_what_went",
        old="not report.is_empty",
        new="report.is_empty",
        test=f"{_CLI}test_a_pass_that_failed_says_what_went_all_the_same",
    ),
    Mutation(
        name="a pass does not name what it passes over",
        file="cleaner/explain.py",
        within="explain_waiting",
        old="entry.id not in seen",
        new="entry.id in seen",
        test=f"{_CLI}test_what_a_pass_passes_over_is_named",
    ),
    Mutation(
        name="who retries at once waits for no reader",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old="(entry.next_txn_id or 0) >= watermark or entry.id in current.locks",
        new="not is_retried_now and (entry.next_txn_id or 0) >= watermark",
        test=f"{_CLI}test_readers_are_waited_for_now_too",
    ),
    Mutation(
        name="a full disk of the archive is answered with another archive",
        file="changemanager/archive.py",
        within="ChangeManager._unwritable",
        old="why.errno in _FULL",
        new="why.errno not in _FULL",
        test="tests/changemanager/test_archive.py::"
        "test_a_full_disk_keeps_the_source_and_leaves_no_part",
    ),
)
