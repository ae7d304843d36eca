"""Protective lines against what others change between a look and a transaction, and against limits
that hide what follows; see :mod:`tests.simulation.mutations`.

Not here: locks of rows, because SQLite lets one transaction write at a time anyway.
"""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_REMADE = "tests/service/test_partitions_of_tables_made_again.py::"
_EXCHANGES = "tests/service/test_partition_conditions.py::"
_JOBS = "tests/compaction/test_shared_jobs.py::"
_CLEANING = "tests/txn/test_cleaning.py::"

OF_MEANWHILE = (
    Mutation(
        name="files of a dropped table are counted for the one made again",
        file="hms_bridge/service/partitions.py",
        within="_Alteration.with_statistics",
        old="not is_same_place(looked, old)",
        new="False",
        test=f"{_REMADE}test_files_of_a_dropped_table_are_not_counted_for_another_one",
    ),
    Mutation(
        name="files are counted for a partition that has got another directory",
        file="hms_bridge/catalog/found_partitions.py",
        within="is_same_place",
        old=(
            "looked.id == now.id and looked.partition.storage.location == "
            "now.partition.storage.location"
        ),
        new=(
            "looked.id == now.id or looked.partition.storage.location == "
            "now.partition.storage.location"
        ),
        test=f"{_REMADE}test_files_of_another_place_are_not_counted_for_a_partition_that_was_moved",
    ),
    Mutation(
        name="a partition of a dropped table is renamed in the one made again",
        file="hms_bridge/service/rename_partitions.py",
        within="RenamePartitionVerbs._rename",
        old="not is_same_place(renaming.old, old)",
        new="False",
        test=f"{_REMADE}test_nor_is_one_renamed_whose_directory_stays",
    ),
    Mutation(
        name="a table made again is noted as empty",
        file="hms_bridge/service/truncations.py",
        within="TruncationVerbs._require_in_place",
        old="truncation.require_same(now)",
        new="",
        test=f"{_REMADE}test_a_table_made_again_is_not_noted_as_empty",
    ),
    Mutation(
        name="what a rename has elsewhere is noted as empty",
        file="hms_bridge/service/truncations.py",
        within="TruncationVerbs._note_truncation",
        old="self._require_in_place(unit.connection, truncation, stored)",
        new="truncation.require_same(stored)",
        test="tests/service/test_drops_and_moves.py::"
        "test_what_a_rename_has_elsewhere_is_not_noted_as_empty",
    ),
    Mutation(
        name="a partition that comes while others are emptied is noted as empty",
        file="hms_bridge/service/truncations.py",
        within="_Truncation.emptied_of",
        old="partition.id in self.partitions",
        new="self.partitions.setdefault(partition.id, partition)",
        test=f"{_REMADE}test_a_partition_that_comes_while_others_are_emptied_keeps_its_statistics",
    ),
    Mutation(
        name="partitions are exchanged into a table that was made again",
        file="hms_bridge/service/exchange_partitions.py",
        within="ExchangePartitionVerbs._exchange",
        old="plan.moves == planned.moves and plan.target.id == planned.target.id",
        new="plan.moves == planned.moves",
        also=(
            Edit(
                "hms_bridge/service/exchange_partitions.py",
                "_Exchange.require_same",
                "into.id == self.target.id",
                "True",
            ),
        ),
        test=f"{_EXCHANGES}"
        "test_a_table_that_is_made_again_while_directories_are_moved_stops_the_exchange",
    ),
    Mutation(
        name="a partition is exchanged whose directory was not moved",
        file="hms_bridge/service/exchange_partitions.py",
        within="ExchangePartitionVerbs._exchange",
        old=(
            "is_same = [old.id for old, _ in plan.pairs] == [old.id for old, _ "
            "in planned.pairs]\n"
            "is_same &= plan.moves == planned.moves and plan.target.id == "
            "planned.target.id"
        ),
        new="is_same = plan.target.id == planned.target.id",
        test=f"{_EXCHANGES}"
        "test_a_partition_that_comes_while_directories_are_moved_stops_the_exchange",
    ),
    Mutation(
        name="a master key gets the number of a removed one",
        file="hms_bridge/catalog/tokens.py",
        within="add_master_key",
        old="values['KEY_ID'] = _next_number(connection)",
        new="pass",
        test="tests/server/test_tokens.py::test_the_number_of_a_removed_key_is_never_given_again",
    ),
    Mutation(
        name="a master key gets the number of one that an earlier release added",
        file="hms_bridge/catalog/tokens.py",
        within="_next_number",
        old=(
            "(number := next_sequence_values(connection, _KEY_SEQUENCE, 1, "
            "after=highest)) <= highest"
        ),
        new=("(number := next_sequence_values(connection, _KEY_SEQUENCE, 1, after=0)) < 0"),
        test="tests/server/test_tokens.py::test_keys_that_an_earlier_release_added_are_counted",
    ),
    Mutation(
        name="aborted writes that have to wait hide all others",
        file="hms_bridge/txn/aborted_writes.py",
        within="find_ready_to_clean_aborts",
        old="targets.items()",
        new="list(targets.items())[:FETCH_MAX]",
        test=f"{_CLEANING}TestAborts::test_those_that_have_to_wait_hide_no_others",
    ),
    Mutation(
        name="failed cleanings that were made good are tried again",
        file="hms_bridge/txn/cleaning.py",
        within="retry_failed_cleanings",
        old=(
            "select(COMPLETED_COMPACTIONS).where(_H.CC_STATE == "
            "CompactionState.FAILED.stored, _H.CC_NEXT_TXN_ID > 0, "
            "_H.CC_COMMIT_TIME > 0, ~_H.CC_END.between(now - after_ms, now), "
            "~is_made_good)"
        ),
        new=(
            "select(COMPLETED_COMPACTIONS).where(_H.CC_STATE == "
            "CompactionState.FAILED.stored, _H.CC_NEXT_TXN_ID > 0, "
            "_H.CC_COMMIT_TIME > 0, ~_H.CC_END.between(now - after_ms, now))"
        ),
        test=f"{_CLEANING}test_failed_cleanings_that_were_made_good_hide_no_others",
    ),
    Mutation(
        name="privileges of a call are not counted where commas part them",
        file="hms_bridge/server/privilege_calls.py",
        within="bounded",
        old="1 + grant.privilege.count(',')",
        new="1",
        test="tests/server/test_privileges.py::test_too_many_in_a_call_are_refused",
    ),
    Mutation(
        name="what a view saw is an internal error where it is nested too deep",
        file="hms_bridge/txn/materialization.py",
        within="_seen",
        old="(ValueError, RecursionError)",
        new="ValueError",
        test="tests/txn/test_materialized_changes.py::"
        "test_what_a_view_saw_may_be_no_text_of_any_kind",
    ),
    Mutation(
        name="an object of another one's event is an internal error where it is nested too deep",
        file="hms_bridge/wire/object_json.py",
        within="struct_from_json",
        old=(
            "(TException, EOFError, LookupError, TypeError, ValueError, "
            "AttributeError, RecursionError)"
        ),
        new=("(TException, EOFError, LookupError, TypeError, ValueError, AttributeError)"),
        test="tests/wire/test_conversions.py::test_a_text_that_is_none_is_refused",
    ),
    Mutation(
        name="a text of statistics that nobody can read stops their changes",
        file="hms_bridge/model/statistics_state.py",
        within="_parsed",
        old="(ValueError, RecursionError)",
        new="ValueError",
        test="tests/model/test_statistics_state.py::test_a_text_that_nobody_can_read_is_replaced",
    ),
    Mutation(
        name="a job of small compactions begins without those that come back",
        file="hms_bridge/compaction/shared_job.py",
        within="SharedJobs._next_job",
        old="self._wait_for_company()",
        new="",
        test=f"{_JOBS}test_a_job_waits_for_as_many_as_came_of_late",
    ),
    Mutation(
        name="who had company once waits for it each time",
        file="hms_bridge/compaction/shared_job.py",
        within="SharedJobs._next_job",
        old="self._expected - 1",
        new="self._expected",
        test=f"{_JOBS}test_whom_nobody_joins_goes_alone",
    ),
)
