"""What `make quick` leaves out, and that nothing else in it takes long."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LONG = frozenset(
    (
        "acid/test_golden_cleanings.py",
        "acid/test_obsolete_properties.py",
        "acid/test_simulated_table.py",
        "adoption/test_adopt.py",
        "adoption/test_adopt_golden.py",
        "backend/test_interrupts.py",
        "backend/test_schema_upgrade.py::test_an_upgrade_that_dies_is_begun_again",
        "changemanager/test_delete_protocol.py",
        "changemanager/test_removals_together.py",
        "cleaner/test_cleaner_cli.py",
        "cleaner/test_cleaning_trouble.py",
        "cleaner/test_entries_together.py",
        "cleaner/test_reaper.py",
        "cleaner/test_waiting_for_readers.py",
        "cli/test_adopt.py",
        "cli/test_archive_fsck.py",
        "cli/test_archive_links.py",
        "cli/test_archive_pins.py",
        "cli/test_bad_input.py",
        "cli/test_file_systems.py",
        "cli/test_formats.py",
        "cli/test_hooks.py",
        "cli/test_initiator.py",
        "cli/test_logs.py",
        "cli/test_output.py",
        "cli/test_repl_compare.py",
        "cli/test_repl_drill.py",
        "cli/test_repl_handover.py",
        "cli/test_repl_holders.py",
        "cli/test_repl_lag.py",
        "cli/test_repl_options.py",
        "cli/test_repl_policies.py",
        "cli/test_repl_policy_end.py",
        "cli/test_repl_repair.py",
        "cli/test_repl_wrong_names.py",
        "clients",
        "compaction/test_golden_compaction.py",
        "compaction/test_power_loss.py",
        "compaction/test_worker.py",
        "conformance/test_thrift_metastore.py",
        "hooks/test_shipped.py",
        "metrics/test_endpoint.py",
        "orc/test_round_trip.py",
        "orc/test_stripe_copy.py",
        "repl/test_archive_budget.py",
        "repl/test_at_target.py",
        "repl/test_compare.py",
        "repl/test_compare_constraints.py",
        "repl/test_compare_faults.py",
        "repl/test_compare_kinds.py",
        "repl/test_compare_simulated.py",
        "repl/test_constraints.py",
        "repl/test_copy_pool.py",
        "repl/test_discard.py",
        "repl/test_drill.py",
        "repl/test_dropped.py",
        "repl/test_dump_crash.py",
        "repl/test_dump_manifest.py",
        "repl/test_dump_resume.py",
        "repl/test_dump_size.py",
        "repl/test_edges.py",
        "repl/test_event_limit.py",
        "repl/test_expiry.py",
        "repl/test_failback.py",
        "repl/test_failback_as_planned.py",
        "repl/test_failback_views.py",
        "repl/test_file_pool.py",
        "repl/test_former_source.py",
        "repl/test_functions.py",
        "repl/test_handover_crash_matrix.py",
        "repl/test_handover_schedules.py",
        "repl/test_last_counts.py",
        "repl/test_lease.py",
        "repl/test_load_crash_matrix.py",
        "repl/test_load_golden.py",
        "repl/test_load_rows.py",
        "repl/test_load_windows.py",
        "repl/test_origin.py",
        "repl/test_policy_cycles.py",
        "repl/test_policy_pins.py",
        "repl/test_promote.py",
        "repl/test_repair.py",
        "repl/test_repair_crash.py",
        "repl/test_repl_status.py::test_after_a_kill_at_any_point_the_lag_is_what_readers_miss",
        "repl/test_replays.py",
        "repl/test_replica_gate.py",
        "repl/test_retention_timelines.py",
        "repl/test_scope.py",
        "repl/test_scope_schedules.py",
        "repl/test_tables_anew.py",
        "repl/test_two_metastores.py",
        "repl/test_unreported_writes.py",
        "repl/test_verbs_together.py",
        "repl/test_write_id_truth.py",
        "rows/test_golden_rows.py",
        "rows/test_writer.py",
        "server/test_bounded_texts.py::test_no_text_is_stored_that_is_longer_than_its_column",
        "server/test_every_change.py::"
        "test_what_hives_log_has_no_event_for_is_asked_and_heard_and_has_no_secrets",
        "server/test_golden_replay.py",
        "server/test_ignored_fields.py",
        "server/test_killed_calls.py",
        "server/test_malformed_input.py",
        "server/test_odd_texts.py",
        "service/test_allowed_deletions.py",
        "service/test_bound_deletions.py",
        "service/test_histories.py",
        "service/test_hooks.py",
        "service/test_many_at_once.py",
        "service/test_plans.py::test_each_index_of_ours_is_missed",
        "service/test_shared_writes.py::"
        "test_a_batch_dies_at_any_statement_and_each_verb_is_there_as_a_whole_or_not_at_all",
        "service/test_warehouse_files.py",
        "session/test_heartbeat.py",
        "simulation/test_cleaning_schedules.py",
        "simulation/test_found.py",
        "simulation/test_found_handovers.py",
        "simulation/test_repairs.py",
        "simulation/test_scopes.py",
        "simulation/test_simulated_cluster.py",
        "spark",
        "txn/test_txn_machine.py",
        "txn/test_valid_write_ids.py::test_lists_of_every_golden_table_state_as_in_hive",
        "wire/test_fields.py",
    )
)
"""Folders, files and single tests below tests/. They kill at every step, run whole schedules, or go
through all that a real Hive wrote, and take longer together than everything else. `make test` runs
them."""

SHARE_MAX = 0.08
"""Of the time of a whole quick run: a file that takes more fails it, until it, or the tests that
take so long, are in LONG. A share is the same on every machine."""


class QuickRun:
    """A plugin of pytest. Time is the processor's, so that others on the machine count little."""

    def __init__(self, config: pytest.Config) -> None:
        # What somebody names is no whole run, of which a file has a share; nor what one of several
        # processes does.
        is_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        self._is_whole = is_all and not hasattr(config, "workerinput")
        self._left_out_tests = {name for name in LONG if "::" in name}
        self._since = 0.0
        self._seconds: Counter[str] = Counter()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Nothing is said of what is not left out: others may have a reason."""
        if not collection_path.is_relative_to(TESTS):
            return None
        return True if collection_path.relative_to(TESTS).as_posix() in LONG else None

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """The single tests."""
        left_out = [item for item in items if _name(item) in self._left_out_tests]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]

    def pytest_runtest_logstart(self) -> None:
        self._since = time.process_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> object:
        """Once for each phase of a test; what runs the tests gets the figure with the report."""
        report = yield
        now = time.process_time()
        report.processor_seconds = now - self._since
        self._since = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += getattr(report, "processor_seconds", 0.0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run in which a file takes too long fails."""
        if self._is_whole and session.exitstatus == pytest.ExitCode.OK and self._too_long():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._is_whole:
            return
        total = sum(self._seconds.values())
        terminalreporter.write_line(f"{total:.0f} s of the processor in tests")
        for file in self._too_long():
            terminalreporter.write_line(
                f"{file} takes {self._seconds[file]:.1f} s of them: make it shorter, or enter it "
                "or its longest tests in LONG of tests/support/quick_run.py",
                red=True,
            )

    def _too_long(self) -> list[str]:
        return files_that_take_long(self._seconds)


def files_that_take_long(seconds: Mapping[str, float]) -> list[str]:
    """Those with more than their share."""
    longest = SHARE_MAX * sum(seconds.values())
    return sorted(file for file, taken in seconds.items() if taken > longest)


def _name(item: pytest.Item) -> str:
    """Below tests/, without parameters."""
    path, separator, test = item.nodeid.partition("::")
    return f"{path.removeprefix('tests/')}{separator}{test.partition('[')[0]}"
