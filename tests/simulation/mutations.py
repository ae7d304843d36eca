"""Protective lines, each broken once: what `make mutants` proves that a test would see.

A mutation is a text of a file and what stands there instead. It must be there exactly once, so that
a line that moves or changes is looked at again.
"""

from __future__ import annotations

from tests.simulation.carried_mutations import CARRIED
from tests.simulation.edge_mutations import EDGES
from tests.simulation.handover_mutations import HANDOVER
from tests.simulation.mutation import Edit, Mutation
from tests.simulation.mutations_of_access import OF_ACCESS
from tests.simulation.mutations_of_cleaning_reports import OF_CLEANING_REPORTS
from tests.simulation.mutations_of_copies import OF_COPIES
from tests.simulation.mutations_of_directories_above import OF_DIRECTORIES_ABOVE
from tests.simulation.mutations_of_doors import OF_DOORS
from tests.simulation.mutations_of_dumps import OF_DUMPS
from tests.simulation.mutations_of_failed_statements import OF_FAILED_STATEMENTS
from tests.simulation.mutations_of_first_dumps import OF_FIRST_DUMPS
from tests.simulation.mutations_of_foreign_texts import OF_FOREIGN_TEXTS
from tests.simulation.mutations_of_hive_sources import OF_HIVE_SOURCES
from tests.simulation.mutations_of_hooks import OF_HOOKS
from tests.simulation.mutations_of_late_compactions import OF_LATE_COMPACTIONS
from tests.simulation.mutations_of_loads import OF_LOADS
from tests.simulation.mutations_of_locations import OF_LOCATIONS
from tests.simulation.mutations_of_looks import OF_LOOKS
from tests.simulation.mutations_of_meanwhile import OF_MEANWHILE
from tests.simulation.mutations_of_message_memory import OF_MESSAGE_MEMORY
from tests.simulation.mutations_of_origins import OF_ORIGINS
from tests.simulation.mutations_of_permissions import OF_PERMISSIONS
from tests.simulation.mutations_of_places import OF_PLACES
from tests.simulation.mutations_of_policies import OF_POLICIES
from tests.simulation.mutations_of_processes import OF_PROCESSES
from tests.simulation.mutations_of_removals import OF_REMOVALS
from tests.simulation.mutations_of_rights import OF_RIGHTS
from tests.simulation.mutations_of_schemas import OF_SCHEMAS
from tests.simulation.mutations_of_stores import OF_STORES
from tests.simulation.mutations_of_time import OF_TIME
from tests.simulation.mutations_of_turns import OF_TURNS
from tests.simulation.mutations_of_waiting import OF_WAITING
from tests.simulation.mutations_of_waits import OF_WAITS
from tests.simulation.mutations_of_workers import OF_WORKERS
from tests.simulation.mutations_of_write_races import OF_WRITE_RACES
from tests.simulation.mutations_of_writes import OF_WRITES
from tests.simulation.mutations_of_wrong_clocks import OF_WRONG_CLOCKS
from tests.simulation.scope_mutations import SCOPE

_READERS = "tests/cleaner/test_waiting_for_readers.py::"
_ABORTED = "tests/cleaner/test_aborted_writes.py::"
_TROUBLE = "tests/cleaner/test_cleaning_trouble.py::"
_WORKER = "tests/compaction/test_worker.py::"
_PROTOCOL = "tests/changemanager/test_delete_protocol.py::"
_BUDGET = "tests/changemanager/test_budget.py::"
_COPY = "tests/orc/test_stripe_copy.py::"

_HOUSE = "tests/txn/test_housekeeping.py::"
_FOUND = "tests/simulation/test_found.py::"
_DROPS = "tests/service/test_drops_and_moves.py::"

# Not for the simulated cluster, because another line holds the same promise there: the gate
# covers for what the cleaner makes of old readers and of compactions under them (and the reverse,
# so both are broken at once, too), CQ_NEXT_TXN_ID for the look at the compaction's transaction,
# the name of its transaction for a worker that publishes too late and for a base beyond an open
# write, the look at the archive before a deletion for the archiving itself (and the reverse), the
# abort record for aborted files that go too early, repl.last.id and the dump's own marks for a
# load that lost its lease or comes again. And no writer of the simulated cluster mixes aborted
# rows with others in one directory, as streams do, and no two workers there compact one range, as
# those of Hive may.
MUTATIONS = (
    *CARRIED,
    *OF_CLEANING_REPORTS,
    *OF_DIRECTORIES_ABOVE,
    *OF_DOORS,
    *OF_DUMPS,
    *OF_FOREIGN_TEXTS,
    *OF_FIRST_DUMPS,
    *OF_HIVE_SOURCES,
    *OF_HOOKS,
    *OF_TIME,
    *OF_WRONG_CLOCKS,
    *OF_TURNS,
    *OF_LATE_COMPACTIONS,
    *OF_LOADS,
    *OF_LOCATIONS,
    *OF_MEANWHILE,
    *OF_MESSAGE_MEMORY,
    *OF_PLACES,
    *OF_PERMISSIONS,
    *OF_LOOKS,
    *OF_ORIGINS,
    *OF_POLICIES,
    *OF_PROCESSES,
    *OF_ACCESS,
    *OF_RIGHTS,
    *OF_SCHEMAS,
    *OF_WAITS,
    *OF_FAILED_STATEMENTS,
    *OF_REMOVALS,
    *OF_WORKERS,
    *OF_WAITING,
    Mutation(
        name="the cleaner waits for no reader and judges for none",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old="(entry.next_txn_id or 0) >= watermark or entry.id in current.locks",
        new="False",
        also=(
            Edit(
                "cleaner/planner.py",
                "_lists",
                "is_for_everyone",
                "not is_for_everyone",
            ),
        ),
        is_simulated=True,
    ),
    Mutation(
        name="the cleaner takes older files for those of an aborted write",
        file="cleaner/planner.py",
        within="CleaningPlanner.plan",
        old=(
            "plan_cleaning(listing, txns=chosen.txns, "
            "write_ids=chosen.write_ids, "
            "highest_write_id=entry.highest_write_id, scope=scope, "
            "since=chosen.since)"
        ),
        new=(
            "plan_cleaning(listing, txns=chosen.txns, "
            "write_ids=chosen.write_ids, "
            "highest_write_id=entry.highest_write_id, scope=scope)"
        ),
        test="tests/cleaner/test_older_files.py::"
        "test_an_older_directory_of_the_number_stays_and_is_told",
    ),
    Mutation(
        name="the cleaner goes on where the metastore is older than the table",
        file="cleaner/planner.py",
        within="CleaningPlanner.plan",
        old=(
            "require_known_ids(self._metastore, target.table, listing, "
            "chosen.txns, chosen.write_ids)"
        ),
        new="",
        test="tests/cleaner/test_older_files.py::test_nothing_goes_where_numbers_were_never_given",
    ),
    Mutation(
        name="dumps go into the directory of a table",
        file="hms_bridge/repl/dump/planner.py",
        within="DumpPlanner.plan",
        old="require_lasting(self.source, self.resolve, request)",
        new="",
        test="tests/repl/test_dump_place.py::test_a_table",
    ),
    Mutation(
        name="what was forgotten counts as open when the clock is set back",
        file="hms_bridge/txn/housekeeping.py",
        within="forget_txns",
        old="update(TXNS).where(_T.TXN_ID.in_(batch))",
        new="update(TXNS).where(_T.TXN_ID < 0)",
        test=f"{_HOUSE}TestForgettingTxns::test_what_was_purged_is_not_open_when_the_clock_is_set_back",
        is_simulated=True,
    ),
    Mutation(
        name="a drop deletes what came after it",
        file="hms_bridge/service/file_work.py",
        within="FileWork._delete",
        old=(
            "self._protocol.remove(task.location, root=task.root, "
            "context=task.context, is_archived=task.is_archived, "
            "is_purge=task.is_purge, require_lease=require_lease, seen=task.seen)"
        ),
        new=(
            "self._protocol.remove(task.location, root=task.root, "
            "context=task.context, is_archived=task.is_archived, "
            "is_purge=task.is_purge, require_lease=require_lease)"
        ),
        test="tests/service/test_bound_deletions.py::test_rows_written_after_a_drop_stay",
        is_simulated=True,
    ),
    Mutation(
        name="a rename that goes back takes what others put at the new place",
        file="hms_bridge/service/directories.py",
        within="Directories.move_back",
        old="new.child(_mark(token))",
        new="new",
        test="tests/service/test_bound_deletions.py::"
        "test_what_others_wrote_for_the_new_name_is_not_taken_back",
    ),
    Mutation(
        name="a dropped partition takes the record of its aborts along",
        file="hms_bridge/txn/resources.py",
        within="forget_partitions",
        old="named.table is TXN_COMPONENTS",
        new="False",
        test="tests/cleaner/test_late_writers.py::test_a_partition_that_is_made_again_shows_nothing_late",
    ),
    Mutation(
        name="a removal that is planned anew leaves what it has archived",
        file="changemanager/seen.py",
        within="files_as_seen.is_as_seen",
        old="before == found or is_same(found)",
        new="before == found",
        test="tests/service/test_bound_deletions.py::test_a_file_that_another_took_away_stops_no_drop",
    ),
    Mutation(
        name="a move of an older version is taken for none",
        file="hms_bridge/service/directories.py",
        within="Directories.move_back",
        old="old.status() is None and new.status() is not None",
        new="False",
        test="tests/service/test_moved_directories.py::test_a_move_without_a_mark_is_left_to_a_person",
    ),
    Mutation(
        name="a finished dump is not brought to the disk",
        file="hms_bridge/repl/dump/repl_dump.py",
        within="ReplDump._finish",
        old="settle_tree(dumped.volume, dumped.path, pool.all)",
        new="pass",
        test="tests/simulation/test_found.py::test_a_finished_dump_is_whole_after_a_power_loss",
    ),
    Mutation(
        name="an abort is forgotten before its writer can know",
        file="hms_bridge/txn/aborted_writes.py",
        within="aborts_end_ms",
        old="now_ms - work.settings.compactor.abort_retention_ms",
        new="now_ms",
        test="tests/cleaner/test_late_writers.py::test_what_comes_late_is_aborted_and_goes",
        is_simulated=True,
    ),
    Mutation(
        name="a client's word lets aborts be forgotten",
        file="hms_bridge/server/compaction_calls.py",
        within="CompactionCalls.mark_cleaned",
        old="replace(entry, highest_write_id=WriteId(0))",
        new="entry",
        test="tests/service/test_hostile_clients.py::test_nor_by_an_entry_that_it_claims",
    ),
    Mutation(
        name="a published directory's name is not brought to the disk",
        file="hms_bridge/directories/rename.py",
        within="rename_directory",
        old="settle_names(volume, target.rpartition('/')[0])",
        new="",
        test="tests/compaction/test_power_loss.py::test_a_committed_write_survives_a_cut_at_any_step",
        is_simulated=True,
    ),
    Mutation(
        name="what takes the place of others may be lost with the power after they have gone",
        file="cleaner/replacement.py",
        within="require_whole",
        old="settle_tree(directory.volume, directory.path)",
        new="",
        test="tests/compaction/test_power_loss.py::"
        "test_what_its_writer_did_not_sync_is_on_the_disk_before_what_it_replaces_goes",
    ),
    Mutation(
        name="a compaction's files are not brought to the disk",
        file="hms_bridge/compaction/kernel.py",
        within="_new_file",
        old="settle_file(volume, path)",
        new="",
        test="tests/compaction/test_power_loss.py::test_a_compaction_survives_a_cut_at_any_step",
        is_simulated=True,
    ),
    Mutation(
        name="the gate waits for no reader",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old="(entry.next_txn_id or 0) >= watermark or entry.id in current.locks",
        new="False",
        test=f"{_READERS}test_a_reader_from_before_the_commit_is_waited_for",
    ),
    Mutation(
        name="a rename takes along the files of a table that came after its first look",
        file="hms_bridge/service/rename_partitions.py",
        within="RenamePartitionVerbs._rename",
        old=("self._files.rule.require_alone(unit.connection, owner, move.location)"),
        new="",
        test="tests/service/test_shared_places.py::"
        "test_one_that_comes_after_the_first_look_stops_the_move_too",
    ),
    Mutation(
        name="a partition comes into a table that was made while its directory was",
        file="hms_bridge/service/partitions.py",
        within="PartitionVerbs._insert",
        old="stored.id != table_id",
        new="False",
        test="tests/service/test_partitions_of_tables_made_again.py::"
        "test_it_is_not_added_to_a_table_that_lies_elsewhere",
    ),
    Mutation(
        name="a partition is exchanged whose directory was not moved",
        file="hms_bridge/service/exchange_partitions.py",
        within="ExchangePartitionVerbs._exchange",
        old=("not is_same or not all((self._file_work.finish(unit, task) for task in moved))"),
        new="not all((self._file_work.finish(unit, task) for task in moved))",
        test="tests/service/test_partition_conditions.py::"
        "test_a_partition_that_comes_while_directories_are_moved_stops_the_exchange",
    ),
    Mutation(
        name="a clock that was set back keeps a claim on files unrenewed",
        file="hms_bridge/service/task_leases.py",
        within="TaskLeases.check",
        old="0",
        new="-10 ** 12",
        test="tests/service/test_task_leases.py::"
        "test_a_clock_that_is_set_back_keeps_no_claim_unrenewed",
    ),
    Mutation(
        name="a worker that lost its entry ends what another has compacted",
        file="hms_bridge/txn/compaction_history.py",
        within="_is_done_by_another",
        old="is_other_txn or queued.next_txn_id is not None",
        new="queued.next_txn_id is not None",
        test="tests/txn/test_compaction_queue.py::TestLostLease::"
        "test_the_loser_ends_nothing_that_another_has_compacted",
    ),
    Mutation(
        name="the gate waits for no lock that is waited for itself",
        file="hms_bridge/txn/readers.py",
        within="locked_without_txn",
        old="lock.HL_ACQUIRED_AT is None or lock.HL_ACQUIRED_AT <= until_ms",
        new="lock.HL_ACQUIRED_AT is not None and lock.HL_ACQUIRED_AT <= until_ms",
        test=f"{_READERS}test_a_lock_that_is_waited_for_blocks_whenever_it_was_asked_for",
    ),
    Mutation(
        name="the gate lets a compaction pass that is not committed",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old=(
            "and_(_Q.CQ_NEXT_TXN_ID.is_not(None), "
            "~of_txn.where(TXNS.c.TXN_STATE != TxnState.COMMITTED.value))"
        ),
        new="and_(_Q.CQ_NEXT_TXN_ID.is_not(None))",
        test="tests/txn/test_cleaning.py::TestWhen::test_an_open_one_does_not_come_whatever_its_entry_says",
    ),
    Mutation(
        name="the cleaner judges by what a new reader sees",
        file="cleaner/planner.py",
        within="_lists",
        old="is_for_everyone",
        new="not is_for_everyone",
        test=f"{_READERS}test_of_two_bases_of_one_number_the_old_one_stays_for_its_readers",
    ),
    Mutation(
        name="abort records go while aborted rows are there",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._reached",
        old="highest = _NO_WRITE",
        new="pass",
        test=f"{_ABORTED}test_abort_records_stay_as_long_as_aborted_rows_do",
    ),
    Mutation(
        name="an open first write is forgotten when it aborts during a pass",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._reached",
        old="judged if reached is None else min(reached, judged)",
        new="min(reached or judged, judged)",
        test=f"{_ABORTED}test_a_write_that_aborts_during_a_pass_keeps_its_record",
    ),
    Mutation(
        name="a table that was made anew is cleaned by the old plan",
        file="cleaner/handlers/acid_cleaning.py",
        within="_change",
        old="now != target.mark",
        new="False",
        test=f"{_TROUBLE}test_a_table_that_is_made_anew_while_it_is_cleaned",
    ),
    Mutation(
        name="aborted writes beyond the compaction are deleted",
        file="hms_bridge/acid/obsolete.py",
        within="_Judge._judge_aborted",
        old="directory.name.max_write_id > self._highest",
        new="False",
        test="tests/acid/test_obsolete.py",
    ),
    Mutation(
        name="half of an old compaction proves the other half",
        file="hms_bridge/acid/obsolete.py",
        within="_Judge._judge_shadowed",
        old="not self._is_proven(directory, shadowed.by)",
        new="False",
        test="tests/acid/test_obsolete.py",
    ),
    Mutation(
        name="an entry without partition cleans partitions",
        file="cleaner/planner.py",
        within="scope_of",
        old="is_whole or entry.type is CompactionType.ABORT_TXN_CLEANUP",
        new="entry.type is CompactionType.ABORT_TXN_CLEANUP",
        test=f"{_ABORTED}test_an_entry_without_partition_removes_nothing_obsolete_from_partitions",
    ),
    Mutation(
        name="files are deleted and not archived",
        file="changemanager/delete_protocol.py",
        within="DeleteProtocol._drive",
        old="work.kept = self._archive_files(work, require_lease)",
        new="",
        test=f"{_PROTOCOL}test_a_victim_is_archived_then_deleted",
    ),
    Mutation(
        name="nobody looks whether the archived copy is there",
        file="changemanager/delete_protocol.py",
        within="DeleteProtocol._require_archived",
        old="status is None or status.size_bytes != file.size_bytes",
        new="False",
        test=f"{_PROTOCOL}test_an_archived_copy_that_vanished_before_the_delete_stops_it",
    ),
    Mutation(
        name="files and no archive: neither planned nor looked for",
        file="changemanager/delete_protocol.py",
        within="DeleteProtocol.plan",
        old="archive if is_archived else None",
        new="None",
        test=f"{_PROTOCOL}test_a_victim_is_archived_then_deleted",
        is_simulated=True,
    ),
    Mutation(
        name="what came after the plan goes too",
        file="changemanager/removal.py",
        within="unplanned_changes",
        old="changes.append(f'{found.path} is new')",
        new="continue",
        test=f"{_PROTOCOL}test_changes_of_a_listing",
    ),
    Mutation(
        name="a file written anew after a crash is deleted",
        file="changemanager/delete_protocol.py",
        within="DeleteProtocol._look_again",
        old="self._require_content(intent, place, listing)",
        new="pass",
        test=f"{_PROTOCOL}test_a_file_that_was_written_anew_after_the_crash_is_not_deleted",
    ),
    Mutation(
        name="the names of archived files are not brought to the disk",
        file="changemanager/archive.py",
        within="ChangeManager._record",
        old="settle_names(self.cmroot.volume, self.cmroot.path)",
        new="pass",
        test="tests/simulation/test_found.py::test_archived_files_survive_a_power_loss",
        is_simulated=True,
    ),
    Mutation(
        name="a renamed directory is not brought to the disk",
        file="hms_bridge/service/directories.py",
        within="_rename",
        old="settle_names(old.volume, directory)",
        new="pass",
        test="tests/simulation/test_found.py::test_a_renamed_table_is_where_its_rows_say_after_a_power_loss",
        is_simulated=True,
    ),
    Mutation(
        name="a partition that a load renames is not brought to the disk",
        file="hms_bridge/repl/load/events/partition.py",
        within="_transfer",
        old="settle_names(new.volume, directory)",
        new="pass",
        test="tests/simulation/test_found.py::test_a_partition_renamed_on_the_replica_is_there_after_a_power_loss",
        is_simulated=True,
    ),
    Mutation(
        name="what is deleted from a directory that stays is not off the disk",
        file="changemanager/removed_directories.py",
        within="settle_removals",
        old="settle_names(place.volume, directory.path)",
        new="pass",
        test="tests/simulation/test_found.py::test_rows_of_a_dropped_partition_stay_away_after_a_power_loss",
        is_simulated=True,
    ),
    Mutation(
        name="the purge looks at no pin",
        file="hms_bridge/archive/purges.py",
        within="claim_purge",
        old="set(holders) - set(overridden_holders)",
        new="False",
        also=(
            Edit(
                "changemanager/purge.py",
                "Purge._holders",
                ("self._manifest.holders(cmroot.uri, [item.name for item in expired], now_ms)"),
                "{}",
            ),
        ),
        test="tests/archive/test_sql_manifest.py::TestSqlManifest::test_a_cmroot_is_one_however_it_is_spelled",
        is_simulated=True,
    ),
    Mutation(
        name="a dump pins nothing",
        file="hms_bridge/repl/dump/named_files.py",
        within="hold_named",
        old="frozenset(pins.hold(paths.root, files))",
        new="frozenset[str]()",
        test="tests/simulation/test_found.py::test_a_purge_keeps_what_an_unloaded_dump_names",
        is_simulated=True,
    ),
    Mutation(
        name="a dump counts on files that a purge has begun to take",
        file="hms_bridge/repl/dump/named_files.py",
        within="hold_named",
        old="located.location is None or _is_being_purged(located, late)",
        new="located.location is None",
        test="tests/repl/test_archive_budget.py::"
        "test_a_dump_does_not_count_on_what_a_purge_has_begun_to_take",
    ),
    Mutation(
        name="a purge gives up without writing it down",
        file="changemanager/purge.py",
        within="Purge.run",
        old="self._give_up(plan)",
        new="plan.ends",
        test=_BUDGET + "test_a_purge_may_be_killed_anywhere_and_never_takes_a_file_in_silence",
    ),
    Mutation(
        name="a dump has no more time than what it names has had",
        file="changemanager/budget.py",
        within="_outlived_of",
        old="_needed_since_ms(pin, clock_ms)",
        new="clock_ms",
        test=_BUDGET + "test_a_dump_has_its_budget_from_when_it_was_made",
    ),
    Mutation(
        name="a pin that has outlived its budget for one file holds no other",
        file="changemanager/budget.py",
        within="_outlived_of",
        old=("gone.append((item.name, too_old))\ncontinue"),
        new="return [(one.name, too_old) for one in held]",
        test=_BUDGET + "test_what_is_within_the_budget_stays_of_a_pin_that_was_given_up",
    ),
    Mutation(
        name="a pin is given up that was put anew since it was looked at",
        file="hms_bridge/archive/budgets.py",
        within="give_up",
        old=(
            "select(_PIN.HOLDER).where(_PIN.HOLDER_DIGEST == digest(holder), "
            "_PIN.CREATED_AT_MS == seen_created_at_ms)"
        ),
        new="select(_PIN.HOLDER).where(_PIN.HOLDER_DIGEST == digest(holder))",
        test="tests/repl/test_archive_budget.py::"
        "test_a_dump_that_is_finished_while_the_purge_begins_is_not_given_up",
    ),
    Mutation(
        name="a dump may name files that are gone",
        file="hms_bridge/repl/dump/named_files.py",
        within="hold_named",
        old=("if missing:\n    ..."),
        new=("if False:\n    ..."),
        test="tests/repl/test_two_metastores.py::test_a_purge_before_the_dump_is_found_by_the_dump",
    ),
    Mutation(
        name="events of a kind that cannot be replayed are passed over",
        file="hms_bridge/repl/load/incremental.py",
        within="_is_passed",
        old="raise refusal(event.where, event.type, 'an event of this kind')",
        new="return True",
        test="tests/repl/test_load_golden.py::"
        "test_a_kind_of_event_that_is_not_replayed_is_refused_by_name",
    ),
    Mutation(
        name="a load applies events that it has applied",
        file="hms_bridge/repl/load/incremental.py",
        within="_pending",
        old="(event for event in reader.events() if event.id > after)",
        new="(event for event in reader.events())",
        test="tests/repl/test_load_crash_matrix.py::test_an_incremental_load_may_be_killed_anywhere",
    ),
    Mutation(
        name="a load sets repl.last.id back",
        file="hms_bridge/repl/load/replica.py",
        within="Replica.set_parameters",
        old=("stands_at is not None and wanted is not None and (wanted < stands_at)"),
        new="False",
        test="tests/repl/test_lease.py::test_the_last_event_is_never_set_back",
    ),
    Mutation(
        name="a load goes on without its lease",
        file="hms_bridge/repl/load/replica.py",
        within="Replica.metastore",
        old="self._check_lease()",
        new="",
        test="tests/repl/test_lease.py::test_no_call_of_a_load_without_its_lease_reaches_the_replica",
    ),
    Mutation(
        name="a worker that was given up for lost publishes",
        file="hms_bridge/compaction/worker.py",
        within="Worker._compact",
        old="transaction.heartbeat.check()",
        new="",
        test=f"{_WORKER}test_a_worker_whose_transaction_is_over_publishes_nothing",
    ),
    Mutation(
        name="nobody counts what a task wrote",
        file="hms_bridge/compaction/worker.py",
        within="Worker._compact",
        old="_check(plan, results)",
        new="",
        test=f"{_WORKER}test_a_task_that_loses_rows_publishes_nothing",
    ),
    Mutation(
        name="a compaction reaches beyond open writes",
        file="hms_bridge/compaction/snapshot.py",
        within="take_snapshot",
        old=("metastore.get_valid_write_ids([target.table.full_name], txns)[0].compactor_view()"),
        new="metastore.get_valid_write_ids([target.table.full_name], txns)[0]",
        is_simulated=True,
        test=f"{_WORKER}test_a_compaction_ends_below_open_writes",
    ),
    Mutation(
        name="readers and compactions pass delete events over",
        file="hms_bridge/rows/deletes.py",
        within="DeleteEvents.victims",
        old="rows.append(between)",
        new="continue",
        test="tests/rows/test_reader.py::test_deletes_over_many_stripes",
        is_simulated=True,
    ),
    Mutation(
        name="encrypted files are copied",
        file="hms_bridge/orc/stripe_copy.py",
        within="_refusal_of",
        old="source.tail.is_encrypted",
        new="False",
        test=f"{_COPY}test_what_cannot_be_copied_as_it_is",
    ),
    Mutation(
        name="files without statistics of their stripes are copied",
        file="hms_bridge/orc/stripe_copy.py",
        within="_refusal_of",
        old="len(source.tail.stripe_statistics()) != len(source.tail.stripes)",
        new="False",
        test=f"{_COPY}test_what_cannot_be_copied_as_it_is",
    ),
    Mutation(
        name="files whose rows are out of order are copied",
        file="hms_bridge/orc/stripe_copy.py",
        within="_refusal_of",
        old="list(keys) != sorted(keys)",
        new="False",
        test=f"{_COPY}test_what_cannot_be_copied_as_it_is",
    ),
    Mutation(
        name="bounds of a file's columns are taken for its keys",
        file="hms_bridge/orc/stripe_copy.py",
        within="stated_key_range",
        old="write_id != last_write_id or bucket != last_bucket",
        new="False",
        test="tests/compaction/test_kernel.py::test_files_whose_keys_overlap_are_sorted_together",
    ),
    Mutation(
        name="the second reader reads the first stripe only",
        file="hms_bridge/compaction/verify.py",
        within="_stripes",
        old="file.nstripes",
        new="min(1, file.nstripes)",
        test="tests/compaction/test_kernel.py::test_a_second_reader_reads_every_stripe",
    ),
    Mutation(
        name="files of which only a part may be read are copied",
        file="hms_bridge/compaction/kernel.py",
        within="_copyable",
        old="file.raw or file.side_file",
        new="file.raw",
        test="tests/compaction/test_kernel.py::"
        "test_stripes_are_copied_only_where_the_whole_file_may_be_read",
    ),
    Mutation(
        name="pins and purges pass each other",
        file="hms_bridge/archive/lock.py",
        within="",
        old="select(HMSB_ARCHIVE_LOCK).with_for_update()",
        new="select(HMSB_ARCHIVE_LOCK)",
        test="tests/archive/test_sql_manifest.py::TestSqlManifest::"
        "test_pins_and_purges_come_one_after_the_other",
    ),
    Mutation(
        name="a purge takes no lock",
        file="hms_bridge/archive/purges.py",
        within="claim_purge",
        old="hold_archive(connection)",
        new="",
        test="tests/archive/test_sql_manifest.py::TestSqlManifest::"
        "test_pins_and_purges_come_one_after_the_other",
    ),
    Mutation(
        name="a pin takes no lock",
        file="hms_bridge/archive/pins.py",
        within="put_pin",
        old="hold_archive(connection)",
        new="",
        test="tests/archive/test_sql_manifest.py::TestSqlManifest::"
        "test_pins_and_purges_come_one_after_the_other",
    ),
    Mutation(
        name="a partition comes where an old one is still being deleted",
        file="hms_bridge/service/partitions.py",
        within="PartitionVerbs._make_directories",
        old=(
            "self._file_work.settle(*(place for place, p in given if not "
            "asks_to_keep(p.parameters)))"
        ),
        new="",
        test="tests/simulation/test_found.py::"
        "test_a_partition_that_comes_again_meets_no_rows_of_the_old_one",
        is_simulated=True,
    ),
    Mutation(
        name="an adopted table is dumped without its rows",
        file="hms_bridge/repl/dump/events.py",
        within="_require_no_rows",
        old="table.is_transactional and asks_to_keep(parameters)",
        new="False",
        test="tests/simulation/test_found.py::test_an_adopted_table_is_not_missing_on_the_replica",
        is_simulated=True,
    ),
    Mutation(
        name="columns that partitions get by CASCADE are in no event",
        file="hms_bridge/service/alter_tables.py",
        within="AlterTableVerbs._alter",
        old="changes = _cascade_columns(unit, stored, after)",
        new="_cascade_columns(unit, stored, after)",
        test="tests/simulation/test_found.py::test_columns_that_partitions_get_come_to_the_replica",
        is_simulated=True,
    ),
    Mutation(
        name="two updates of one row both commit",
        file="hms_bridge/txn/commit.py",
        within="_settle_changes",
        old="_conflict(connection, txn_id, commit_id, mine)",
        new="None",
        test="tests/txn/test_write_conflicts.py::test_the_refused_transaction_is_aborted_at_once",
    ),
    Mutation(
        name="two updates of one row both commit if the older one commits first",
        file="hms_bridge/txn/commit.py",
        within="_conflict",
        old="_S.WS_COMMIT_ID >= txn_id",
        new="_S.WS_TXNID >= txn_id",
        test="tests/txn/test_write_conflicts.py::test_the_later_commit_is_refused_whichever_began_first",
    ),
    Mutation(
        name="exclusive writers do not wait for each other",
        file="hms_bridge/txn/lock_rules.py",
        within="",
        old="{_WRITE, _EXCL_WRITE, _EXCLUSIVE}",
        new="{_EXCLUSIVE}",
        test="tests/txn/test_lock_matrix.py::test_pure_rules_as_in_hive",
        is_simulated=True,
    ),
    Mutation(
        name="a young transaction without a row yet counts as ended",
        file="hms_bridge/txn/open_txns.py",
        within="_with_gaps",
        old="txn_id != low + 1",
        new="txn_id == low",
        test="tests/txn/test_open_txns.py::test_gaps_as_hive_counts_them",
    ),
    Mutation(
        name="a partition is read in another one's format",
        file="hms_bridge/catalog/storage.py",
        within="alikeness.of",
        old="len(_ALIKE_COLUMNS)",
        new="1",
        test="tests/service/test_partition_formats.py::test_each_keeps_its_own",
    ),
    Mutation(
        name="a partition is read with the parameters of another one's storage",
        file="hms_bridge/catalog/storage.py",
        within="alikeness.of",
        old="described",
        new="buckets",
        test="tests/service/test_partition_formats.py::test_each_keeps_its_own",
    ),
    Mutation(
        name="a lock is found by no type that is in its way",
        file="hms_bridge/txn/locks.py",
        within="_earlier_in",
        old="kinds",
        new="kinds[:1]",
        test="tests/txn/test_lock_matrix.py",
    ),
    Mutation(
        name="a snapshot sees aborted writes",
        file="hms_bridge/txn/valid_write_ids.py",
        within="judge",
        old="aborted.append(write_id)",
        new="continue",
        test="tests/txn/test_valid_write_ids.py::test_open_aborted_and_committed",
        is_simulated=True,
    ),
    Mutation(
        name="a snapshot sees open writes",
        file="hms_bridge/txn/valid_write_ids.py",
        within="judge",
        old="opened.append(write_id)",
        new="continue",
        test="tests/txn/test_valid_write_ids.py::test_open_aborted_and_committed",
        is_simulated=True,
    ),
    Mutation(
        name="a compacted base is used beyond an open write",
        file="hms_bridge/acid/directory.py",
        within="_Walk._is_usable",
        old="self._write_ids.is_base_valid(number)",
        new="True",
        test="tests/acid/test_directory.py",
    ),
    Mutation(
        name="what an open or aborted compaction wrote is read",
        file="hms_bridge/acid/directory.py",
        within="_Walk._is_published",
        old="self._txns.is_valid(txn_id)",
        new="True",
        test="tests/acid/test_directory.py",
        is_simulated=True,
    ),
    Mutation(
        name="a delta that was compacted is read beside the compaction",
        file="hms_bridge/acid/directory.py",
        within="_Walk.sweep_deltas",
        old="key in compacted or not _is_companion(directory, cover, previous)",
        new="key in compacted",
        test="tests/acid/test_directory.py",
        is_simulated=True,
    ),
    Mutation(
        name="of two compactions of one range the earliest is read",
        file="hms_bridge/acid/directory.py",
        within="_sweep_order",
        old="-name.visibility_txn_id",
        new="name.visibility_txn_id",
        test="tests/acid/test_directory.py::test_newest_of_two_outputs_of_one_range",
    ),
    Mutation(
        name="two compactions of one range are both read",
        file="hms_bridge/acid/directory.py",
        within="_Walk.sweep_deltas",
        old="key in compacted or not _is_companion(directory, cover, previous)",
        new="not _is_companion(directory, cover, previous)",
        test="tests/acid/test_obsolete.py::test_of_two_outputs_of_one_range_the_earlier_goes",
    ),
    Mutation(
        name="a load takes other bytes under the right name for the file",
        file="hms_bridge/repl/load/file_copy.py",
        within="FileCopy._keep",
        old="target.checksum_like(expected) == expected",
        new="True",
        test="tests/repl/test_copy.py",
    ),
    Mutation(
        name="a replayed commit leaves out what it has copied",
        file="hms_bridge/repl/load/events/commit.py",
        within="prepare_commit",
        old=(
            "tables = {dumped.table.name: dumped for dumped in "
            "context.reader.commit_tables(event)}\n"
            "_require_all_dumped(event, writes, tables)"
        ),
        new="tables = {}",
        test="tests/repl/test_two_metastores.py",
        is_simulated=True,
    ),
    Mutation(
        name="compactions that ended under an old reader are final for it",
        file="cleaner/planner.py",
        within="_ended_late",
        old=(
            "entry.txn_id is not None and entry.txn_id < watermark and "
            "(entry.next_txn_id is None or entry.next_txn_id >= watermark)"
        ),
        new=(
            "False and entry.txn_id is not None and (entry.txn_id < watermark) "
            "and (entry.next_txn_id is None or entry.next_txn_id >= watermark)"
        ),
        test=f"{_READERS}test_of_two_bases_of_one_number_the_old_one_stays_for_its_readers",
    ),
    Mutation(
        name="file work that lost its claim goes on",
        file="hms_bridge/service/file_work.py",
        within="FileWork._is_carried_out",
        old="self._delete(task, partial(self._leases.check, task))",
        new="self._delete(task)",
        test="tests/service/test_bound_deletions.py"
        "::test_a_deletion_that_lost_its_claim_touches_nothing_more",
    ),
    Mutation(
        name="a NOT NULL column takes NULL",
        file="hms_bridge/dml/constraints.py",
        within="kept_value",
        old="exp.Coalesce(this=value, expressions=[error])",
        new="value",
        test="tests/dml/test_constraints.py::test_a_null_in_a_not_null_column_fails_the_statement",
    ),
    Mutation(
        name="an event on which a hook failed is passed over",
        file="hms_bridge/service/hooks.py",
        within="HookTeller._deliver",
        old="not self._is_heard(event)",
        new="not self._is_heard(event) and False",
        test="tests/service/test_hooks.py"
        "::test_what_a_hook_failed_on_is_told_again_before_anything_else",
    ),
    Mutation(
        name="nobody hears that events were purged before a hook heard them",
        file="hms_bridge/service/hooks.py",
        within="HookTeller._deliver",
        old="complete != last",
        new="False",
        test="tests/service/test_hooks.py"
        "::test_events_that_were_purged_before_a_hook_heard_them_are_told_of",
    ),
    Mutation(
        name="a rename goes on although somebody wrote while the directory moved",
        file="hms_bridge/service/moves.py",
        within="require_no_new_writer",
        old="highest != highest_before",
        new="False",
        test=f"{_FOUND}test_rows_written_while_a_rename_moves_the_directory_are_there",
        is_simulated=True,
    ),
    Mutation(
        name="workers get entries of a table whose directory is being moved",
        file="hms_bridge/txn/compaction_queue.py",
        within="",
        old="and_(_Q.CQ_STATE == CompactionState.INITIATED.stored, ~_IS_MOVING)",
        new="_Q.CQ_STATE == CompactionState.INITIATED.stored",
        test=f"{_FOUND}test_nothing_is_compacted_while_a_rename_moves_it",
    ),
    Mutation(
        name="workers that have looked into a directory go on while it is moved",
        file="hms_bridge/service/moves.py",
        within="begin",
        old=(
            "compaction_queue.give_back_table(connection, database, table, "
            "f'{task.location} is moved by a rename')"
        ),
        new="",
        test=f"{_FOUND}test_nothing_is_compacted_while_a_rename_moves_it",
    ),
    Mutation(
        name="a cleaner looks into a directory that is being moved",
        file="cleaner/planner.py",
        within="_settled",
        old="not mark.moves",
        new="True",
        test=f"{_FOUND}test_nothing_is_recorded_as_cleaned_while_a_rename_moves_it",
        also=(
            Edit(
                "hms_bridge/service/moves.py",
                "begin",
                ("not is_of_move and (not leases.take(connection, name, owner, work.now_ms))"),
                "False",
            ),
        ),
    ),
    Mutation(
        name="a drop does not look for moves in its transaction",
        file="hms_bridge/service/drops.py",
        within="Drops._still",
        old="self._file_work.require_unmoved(unit.connection, list(wanted))",
        new="",
        test=f"{_DROPS}test_a_drop_that_looked_before_the_move_began_is_refused",
    ),
    Mutation(
        name="a drop does not wait for moves before it looks at files",
        file="hms_bridge/service/drops.py",
        within="Drops._look",
        old="self._file_work.settle_moves(*wanted)",
        new="",
        test=f"{_DROPS}test_a_drop_puts_back_what_a_killed_move_left_elsewhere",
    ),
    Mutation(
        name="a drop leaves what was renamed since it looked",
        file="hms_bridge/service/drops.py",
        within="Looked.still",
        old="not content.partition_places.issuperset(partition_places)",
        new="False",
        test=f"{_DROPS}test_what_moved_into_a_dropped_table_since_it_was_looked_at_goes_with_it",
    ),
    Mutation(
        name="a move begins where something waits to be deleted",
        file="hms_bridge/service/file_work.py",
        within="FileWork._note_move.work",
        old="self.require_settled(connection, place)",
        new="pass",
        test=f"{_DROPS}test_what_was_dropped_is_not_moved_away_from_its_deletion",
    ),
    Mutation(
        name="a move begins to where somebody lies",
        file="hms_bridge/service/file_work.py",
        within="FileWork._note_move.work",
        old="places.user_of(connection, target) is not None",
        new="False",
        test=f"{_DROPS}test_nothing_is_moved_to_where_another_table_has_come_meanwhile",
    ),
    Mutation(
        name="a table is made where a rename has moved another one",
        file="hms_bridge/service/tables.py",
        within="TableVerbs._insert_table",
        old="self._file_work.require_settled(unit.connection, place)",
        new="pass",
        test=f"{_DROPS}test_a_table_is_not_made_of_what_a_rename_moved_to_its_place",
    ),
    Mutation(
        name="a truncation that is refused leaves its base",
        file="hms_bridge/service/truncations.py",
        within="TruncationVerbs._add_bases",
        old="self._files.undo_truncated_bases(added, truncation.write_id)",
        new="pass",
        test=f"{_DROPS}test_a_truncation_leaves_no_base_where_its_table_is_gone",
    ),
    Mutation(
        name="a truncation empties what is being moved",
        file="hms_bridge/service/truncations.py",
        within="TruncationVerbs._require_all_alone",
        old="self._require_in_place(connection, truncation, stored)",
        new="",
        test=f"{_DROPS}test_what_is_being_moved_is_not_emptied",
    ),
    Mutation(
        name="a table is adopted under a writer of before its drop",
        file="hms_bridge/adoption/adopt.py",
        within="check_target",
        old="_require_no_writers(metastore, table)",
        new="",
        test=f"{_FOUND}test_a_table_is_not_adopted_under_the_writer_that_it_was_dropped_under",
    ),
    Mutation(
        name="a load that was stopped alters a table of before a rename",
        file="hms_bridge/repl/load/incremental.py",
        within="",
        old=(
            "{DumpType.CREATE_TABLE.value, DumpType.RENAME_TABLE.value, "
            "DumpType.DROP_TABLE.value, DumpType.RENAME_DROP_TABLE.value, "
            "DumpType.RENAME_PARTITION.value, DumpType.DROP_PARTITION.value}"
        ),
        new=(
            "{DumpType.CREATE_TABLE.value, DumpType.DROP_TABLE.value, "
            "DumpType.RENAME_DROP_TABLE.value, "
            "DumpType.RENAME_PARTITION.value, DumpType.DROP_PARTITION.value}"
        ),
        test=f"{_FOUND}test_a_load_that_is_killed_between_renames_goes_on_from_there",
        also=(
            Edit(
                "hms_bridge/repl/load/events/table.py",
                "alter_table",
                "table is None or replica.is_newer(table.parameters, event.id)",
                "table is None",
            ),
        ),
    ),
    Mutation(
        name="rows that must stay where they are come back with their partition",
        file="hms_bridge/service/drops.py",
        within="Drops._deletions",
        old="owner.partitions is not None",
        new="False and owner.partitions is not None",
        test="tests/service/test_allowed_deletions.py::"
        "test_rows_that_would_come_back_with_their_partition_are_not_dropped",
    ),
    Mutation(
        name="a load that was stopped renames again",
        file="hms_bridge/repl/load/incremental.py",
        within="",
        old=(
            "{DumpType.CREATE_TABLE.value, DumpType.RENAME_TABLE.value, "
            "DumpType.DROP_TABLE.value, DumpType.RENAME_DROP_TABLE.value, "
            "DumpType.RENAME_PARTITION.value, DumpType.DROP_PARTITION.value}"
        ),
        new=(
            "{DumpType.CREATE_TABLE.value, DumpType.DROP_TABLE.value, "
            "DumpType.RENAME_DROP_TABLE.value, "
            "DumpType.RENAME_PARTITION.value, DumpType.DROP_PARTITION.value}"
        ),
        test=f"{_FOUND}test_a_load_that_is_killed_between_renames_goes_on_from_there",
        also=(
            Edit(
                "hms_bridge/repl/load/events/table.py",
                "rename_table",
                "old is None or replica.is_newer(old.parameters, event.id)",
                "old is None",
            ),
        ),
    ),
    Mutation(
        name="a clause of SQL that nobody carries out is passed over",
        file="hms_bridge/dml/clauses.py",
        within="refuse_more",
        old="value and name not in heeded",
        new="False",
        test="tests/dml/test_parse.py",
        is_simulated=True,
    ),
    Mutation(
        name="a day that the calendar lacks is stored as another one",
        file="hms_bridge/orc/calendar.py",
        within="hybrid_day",
        old="proleptic >= _GAP_DAY",
        new="False",
        test="tests/orc/test_calendar.py::test_a_label_of_the_gap_is_refused",
        is_simulated=True,
    ),
    Mutation(
        name="a time that readers show a second later is stored",
        file="hms_bridge/orc/timestamps.py",
        within="wall_to_stored",
        old="pc.any(is_lost).as_py()",
        new="False",
        test="tests/orc/test_timestamps.py"
        "::test_a_time_that_readers_would_show_a_second_later_is_refused",
        is_simulated=True,
    ),
    Mutation(
        name="a message may hold any number of elements",
        file="hms_bridge/wire/element_count.py",
        within="ElementCounter._add",
        old="self._count > self._count_max",
        new="False",
        test="tests/server/test_malformed_input.py::test_a_message_of_too_many_elements_is_refused",
        is_simulated=True,
    ),
    Mutation(
        name="messages of all clients take any memory together",
        file="hms_bridge/wire/message_memory.py",
        within="MessageMemory.hold",
        old="self._sum + size_bytes > self._limit_bytes",
        new="False",
        test="tests/server/test_malformed_input.py"
        "::test_messages_of_all_clients_have_a_limit_together",
    ),
    Mutation(
        name="a refused message keeps its share",
        file="hms_bridge/wire/message_memory.py",
        within="MessageMemory.hold",
        old="self._release(holder)",
        new="self._sum -= self._held.get(holder, (0, never))[0]",
        test="tests/wire/test_message_memory.py::test_of_two_that_grow_together_one_is_refused",
    ),
    Mutation(
        name="file work of the dead is free for nobody",
        file="hms_bridge/archive/file_tasks.py",
        within="claim",
        old="_ROW.CLAIMED_AT_MS.between(now_ms - lease_ms, now_ms + lease_ms)",
        new="_ROW.CLAIMED_AT_MS.is_not(None)",
        test="tests/service/test_bound_deletions.py",
        is_simulated=True,
    ),
    Mutation(
        name="a dump of another source fits by its numbers",
        file="hms_bridge/repl/load/planner.py",
        within="LoadPlanner.plan",
        old="require_same_source(reader, database)",
        new="",
        test="tests/repl/test_origin.py::test_a_dump_of_another_source_is_not_loaded",
    ),
    Mutation(
        name="a replica forgets which event of its source it stands at",
        file="hms_bridge/repl/load/same_source.py",
        within="origin_note",
        old="{ORIGIN: None if noted is None else f'{event_id} {noted}'}",
        new=("{} if noted else {ORIGIN: None if noted is None else f'{event_id} {noted}'}"),
        test="tests/repl/test_origin.py::test_a_dump_of_another_source_is_not_loaded",
    ),
    Mutation(
        name="a table that is being removed from a dump counts as dropped",
        file="hms_bridge/repl/format/hashed_texts.py",
        within="CheckedTexts.directories",
        old=("if gone:\n    ..."),
        new=("if False and gone:\n    ..."),
        test="tests/repl/test_discard.py::"
        "test_a_load_whose_dump_is_removed_meanwhile_leaves_nothing_out",
    ),
    Mutation(
        name="a table goes before the dump was seen to have it",
        file="hms_bridge/repl/load/bootstrap.py",
        within="replace_tables",
        old="dumped_tables = reader.tables_anew()",
        new="",
        test="tests/repl/test_discard.py::"
        "test_a_load_whose_dump_is_removed_meanwhile_leaves_nothing_out",
        also=(
            Edit(
                "hms_bridge/repl/load/bootstrap.py",
                "replace_tables",
                "dumped_tables",
                "reader.tables_anew()",
            ),
        ),
    ),
    Mutation(
        name="a lease with capitals in its name is looked for as it is",
        file="hms_bridge/repl/lease.py",
        within="LeaseRequest.scope",
        old="self.database_name.lower()",
        new="self.database_name",
        test="tests/repl/test_lease.py::"
        "test_a_policy_with_capitals_is_run_by_one_and_taken_over_from_a_dead_one",
    ),
    Mutation(
        name="a partition that somebody dropped on the replica is made anew",
        file="hms_bridge/repl/load/events/commit.py",
        within="_is_gone",
        old="context.reader.has_manifest and (before or after)",
        new="context.reader.has_manifest",
        test="tests/repl/test_replica_gate.py::"
        "test_a_partition_that_somebody_dropped_is_not_made_anew_without_its_rows",
    ),
    *HANDOVER,
    *EDGES,
    *SCOPE,
    Mutation(
        name="a repair drops a database that no load made",
        file="hms_bridge/repl/repair/plan.py",
        within="_bootstrap",
        old="replica.name if replica.is_loaded else None",
        new="replica.name",
        test="tests/repl/test_repair_plan.py::test_marks_that_do_not_fit_need_a_bootstrap",
    ),
    Mutation(
        name="a repair drops a replica that has moved on",
        file="hms_bridge/repl/repair/repl_repair.py",
        within="ReplRepair._drop",
        old=(
            "(last_event_of(parameters), parameters.get(CHECKPOINT)) != "
            "(replica.stands_at, replica.begun)"
        ),
        new=(
            "(last_event_of(parameters), parameters.get(CHECKPOINT)) in "
            "(replica.stands_at, replica.begun)"
        ),
        test="tests/repl/test_repair.py::test_a_replica_that_moved_on_meanwhile_is_not_dropped",
    ),
    Mutation(
        name="a repair begins anew without leave",
        file="hms_bridge/repl/repair/repl_repair.py",
        within="require_allowed",
        old="plan.step is not Step.BOOTSTRAP or request.is_bootstrap_allowed",
        new="True",
        test="tests/repl/test_repair.py::"
        "test_a_gap_in_the_events_needs_a_bootstrap_that_is_allowed",
    ),
    Mutation(
        name="a repair goes on beside what a person must end",
        file="hms_bridge/repl/repair/plan.py",
        within="decide",
        old="cure is Cure.BY_HAND",
        new="False and cure is Cure.BY_HAND",
        test="tests/repl/test_repair_plan.py::test_what_a_person_must_end_stops_everything",
    ),
    Mutation(
        name="a repair loads tables whole that the load itself refuses",
        file="hms_bridge/repl/repair/plan.py",
        within="_tables",
        old=("names <= waiting.anew and (not _is_seen_by_verbs(troubles, Cure.TABLES))"),
        new="names <= waiting.anew",
        test="tests/repl/test_repair_plan.py::test_but_not_if_the_load_itself_refuses_it",
    ),
    Mutation(
        name="constraints beside tables that a Hive brings whole are left out",
        file="hms_bridge/repl/load/bootstrap.py",
        within="check_tables_anew",
        old="_check_parts(reader)",
        new="",
        test="tests/repl/test_load_golden.py::test_what_lies_beside_such_tables_is_refused_by_name",
    ),
    Mutation(
        name="a table that comes whole takes data of an external one along",
        file="hms_bridge/repl/load/scope.py",
        within="drop_replicated",
        old="not table.is_external",
        new="True",
        test="tests/repl/test_tables_anew.py::test_data_of_an_external_table_stays",
    ),
    Mutation(
        name="tables that a Hive brings whole are not read",
        file="hms_bridge/repl/format/reader.py",
        within="DumpReader.names_anew",
        old="text is None and (not self.has_manifest)",
        new="False",
        test="tests/repl/test_load_golden.py::"
        "test_a_table_that_a_hives_incremental_dump_brings_whole",
    ),
    Mutation(
        name="what is committed while a drop looks stays behind",
        file="hms_bridge/service/drops.py",
        within="Looked.still",
        old="content.writers != now",
        new="False",
        test=f"{_FOUND}test_what_is_committed_while_a_drop_looks_at_a_partition_goes_with_it",
    ),
    *OF_COPIES,
    *OF_STORES,
    *OF_WRITE_RACES,
    *OF_WRITES,
)
