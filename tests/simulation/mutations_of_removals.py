"""Mutations of what removes several victims at once, and of reading pieces of files; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_TOGETHER = "tests/changemanager/test_removals_together.py::test_"
_PIECES = "tests/rows/test_reader.py::test_pieces_of_a_file_read_the_same"
_OF_A_PASS = "tests/cleaner/test_removals_of_a_pass.py::test_"
_BESIDE = "tests/cleaner/test_entries_together.py::test_"
_PROTOCOL = "changemanager/delete_protocol.py"

OF_REMOVALS = (
    Mutation(
        name="nobody asks before deletions whether the table is the same",
        file=_PROTOCOL,
        within="DeleteProtocol._drive",
        old="fail_changed(in_state(group, IntentState.ARCHIVED), require_same)",
        new="",
        test=f"{_TOGETHER}a_table_that_is_no_longer_the_same_loses_nothing_more",
    ),
    Mutation(
        name="whether the table is the same is asked before its victims are looked at",
        file=_PROTOCOL,
        within="DeleteProtocol._drive",
        old=(
            "for work in group:\n"
            "    with work.failing(), self._abandoning(work):\n"
            "        self._look_again(work)"
        ),
        new=(
            "fail_changed(group, require_same)\n"
            "for work in group:\n"
            "    with work.failing(), self._abandoning(work):\n"
            "        self._look_again(work)"
        ),
        also=(
            Edit(
                _PROTOCOL,
                "DeleteProtocol._drive",
                "fail_changed(in_state(group, IntentState.ARCHIVED), require_same)",
                "",
            ),
        ),
        test=f"{_TOGETHER}what_was_asked_before_the_look_is_not_enough",
    ),
    Mutation(
        name="any number of files is deleted after one question about the table",
        file=_PROTOCOL,
        within="_groups",
        old="group and count + files > FILES_AT_ONCE",
        new="False",
        test=f"{_TOGETHER}few_files_go_after_one_question",
    ),
    Mutation(
        name="nobody asks before each archiving whether the table is the same",
        file=_PROTOCOL,
        within="DeleteProtocol._drive",
        old="fail_changed([work], require_same)",
        new="",
        test=f"{_TOGETHER}nothing_is_archived_of_a_table_that_is_no_longer_the_same",
    ),
    Mutation(
        name="the rows of victims are not written before the first is touched",
        file=_PROTOCOL,
        within="DeleteProtocol.remove_all",
        old="self._intents.add_intents(planned)",
        new="planned",
        test=f"{_TOGETHER}the_store_is_asked_once_for_all",
    ),
    Mutation(
        name="a row that another process moved is gone on with",
        file=_PROTOCOL,
        within="DeleteProtocol._move",
        old="row.intent_id in moved",
        new="True",
        test=f"{_TOGETHER}a_row_that_another_process_has_moved_fails_its_victim_alone",
    ),
    Mutation(
        name="what is gone is not on record where the table changed meanwhile",
        file=_PROTOCOL,
        within="DeleteProtocol._drive",
        old=("self._record_deleted(works)\nraise"),
        new="raise",
        test=f"{_TOGETHER}a_table_that_is_no_longer_the_same_loses_nothing_more",
    ),
    Mutation(
        name="whoever lost the lease goes on with the other victims",
        file="changemanager/removal.py",
        within="RemovalWork.failing",
        old=(
            "try:\n"
            "    ...\n"
            "except LeaseLostError:\n"
            "    raise\n"
            "except (ChangeManagerError, OSError) as error:\n"
            "    self.error = error"
        ),
        new=(
            "try:\n    ...\nexcept (ChangeManagerError, OSError) as error:\n    self.error = error"
        ),
        test=f"{_TOGETHER}who_lost_the_lease_changes_nothing_more",
    ),
    Mutation(
        name="partitions of one table are cleaned by several threads",
        file="cleaner/daemon.py",
        within="Cleaner._clean_all",
        old="entry.target.table",
        new="str(entry.target)",
        test="tests/cleaner/test_side_by_side.py::test_a_table_is_cleaned_by_one_thread_alone",
    ),
    Mutation(
        name="rows of a root that lies in another one are given up",
        file="cleaner/remover.py",
        within="Remover.remove_all",
        old=(
            "{self._resolve(root.location).child(victim.path).uri for plan in "
            "plans for root in plan.roots for victim in root.plan.victims}"
        ),
        new=(
            "{self._resolve(root.location).child(victim.path).uri for plan in "
            "plans for root in plan.roots[:1] for victim in root.plan.victims}"
        ),
        test=f"{_OF_A_PASS}rows_of_all_partitions_are_taken_up",
    ),
    Mutation(
        name="a cleaner does not know the rows of an interrupted run",
        file="cleaner/remover.py",
        within="Remover._remove",
        old="begun",
        new="()",
        test=f"{_OF_A_PASS}an_interrupted_removal_is_taken_up_by_its_row",
    ),
    Mutation(
        name="a table that is another one is taken for one with a damaged compaction",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._excuse",
        old="change or work.result",
        new="work.result",
        test="tests/cleaner/test_cleaning_trouble.py::test_a_table_that_is_made_anew_while_it_is_cleaned",
    ),
    Mutation(
        name="a victim that may not go any more goes with others",
        file="changemanager/removal.py",
        within="fail_changed",
        old=("if error is not None:\n    work.error = error"),
        new="pass",
        test=f"{_TOGETHER}of_those_that_may_not_go_any_more_nothing_is_touched",
    ),
    Mutation(
        name="entries are cleaned at whose tables another one is",
        file="cleaner/entry_cleaner.py",
        within="EntryCleaner.clean_all",
        old="held",
        new="names",
        test=f"{_BESIDE}at_a_table_that_another_one_cleans_nothing_is_done",
    ),
    Mutation(
        name="several leases are taken from those who hold them",
        file="hms_bridge/archive/leases.py",
        within="take_all",
        old="owner == other or _is_over(held_at_ms, now_ms)",
        new="True",
        test="tests/archive/test_sql_manifest.py",
    ),
    Mutation(
        name="who lost one of several leases records what he removed",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._record",
        old="self._remover.lease.require()",
        new="",
        test=f"{_BESIDE}who_lost_a_lease_records_nothing",
    ),
    Mutation(
        name="of several leases only the first is kept alive",
        file="changemanager/lease.py",
        within="WorkLease.require",
        old="sorted(names)",
        new="sorted(names)[:1]",
        test=f"{_BESIDE}who_lost_a_lease_records_nothing",
    ),
    Mutation(
        name="what cannot be done for all entries is left undone for each",
        file="cleaner/entry_cleaner.py",
        within="EntryCleaner._clean_held",
        old="place not in outcomes",
        new="len(entries) < 2",
        test=f"{_BESIDE}what_cannot_be_done_for_all_is_done_for_each",
    ),
    Mutation(
        name="an entry of the queue that is gone is recorded with others",
        file="hms_bridge/txn/compaction_history.py",
        within="succeed",
        old="raise _unknown(compaction_id)",
        new="continue",
        test="tests/txn/test_cleaning.py::test_several_are_recorded_together_or_none",
    ),
    Mutation(
        name="much goes together with what is small",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._plan",
        old="work.goes_alone = len(works) > 1 and (not _is_small(plan))",
        new="",
        test=f"{_BESIDE}an_entry_of_much_goes_by_itself",
    ),
    Mutation(
        name="a whole table of partitions is cleaned beside one of them",
        file="cleaner/handlers/acid_cleaning.py",
        within="AcidCleaning._look_up",
        old="work.goes_alone = is_whole and len(works) > 1",
        new="",
        test=f"{_BESIDE}whole_tables_of_partitions_go_by_themselves",
    ),
    Mutation(
        name="removals move on from whatever state they are in",
        file="hms_bridge/archive/intents.py",
        within="",
        old=("select(_INTENT.INTENT_ID).where(is_meant, _INTENT.STATE == _FROM_STATE)"),
        new="select(_INTENT.INTENT_ID).where(is_meant)",
        test="tests/archive/test_sql_manifest.py",
        also=(
            Edit(
                "hms_bridge/archive/intents.py",
                "_advance",
                ("update(HMSB_ARCHIVE_INTENT).where(is_meant, _INTENT.STATE == _FROM_STATE)"),
                "update(HMSB_ARCHIVE_INTENT).where(is_meant)",
            ),
        ),
    ),
    Mutation(
        name="stripes at a border of two pieces are of both",
        file="hms_bridge/snapshot/plan.py",
        within="ReadSplit.has_stripe",
        old="self.start <= offset and (self.end is None or offset < self.end)",
        new="self.end is None or offset < self.end",
        test=_PIECES,
    ),
    Mutation(
        name="rows of a piece are numbered as if it were the whole file",
        file="hms_bridge/rows/reader.py",
        within="SnapshotReader._raw_stripes",
        old=(
            "before, first = (first, first + stripe.row_count)\n"
            "if not split.has_stripe(stripe.offset_bytes):\n"
            "    continue"
        ),
        new=(
            "if not split.has_stripe(stripe.offset_bytes):\n"
            "    continue\n"
            "before, first = (first, first + stripe.row_count)"
        ),
        test=_PIECES,
    ),
    Mutation(
        name="the last piece ends where the file ended when it was listed",
        file="hms_bridge/snapshot/plan.py",
        within="_ranges",
        old="[*bounds, None]",
        new="[*bounds, file.size_bytes]",
        test="tests/rows/test_reader.py::test_what_comes_behind_the_length_that_was_listed_is_read",
    ),
    Mutation(
        name="a join is written by as many as its sources are large",
        file="hms_bridge/dml/plan.py",
        within="_is_bounded",
        old=("isinstance(node, _MULTIPLYING) and (not isinstance(node, exp.Values))"),
        new="False",
        test="tests/spark/test_sql.py::test_an_insert_reads_its_source_once",
    ),
    Mutation(
        name="a file that a cleaner archived stays in the directory of a dropped table",
        file="changemanager/seen.py",
        within="_named_contents",
        old="('', *within)",
        new="('',)",
        test="tests/service/test_bound_deletions.py::"
        "test_a_file_that_a_cleaner_archived_meanwhile_goes_with_the_drop",
    ),
    Mutation(
        name="a directory that is a link itself is taken for one that is none",
        file="changemanager/containment.py",
        within="RealPaths.of_any",
        old="place.parent == place or place.volume.is_link(place.path)",
        new="place.parent == place",
        test="tests/service/test_allowed_deletions.py::"
        "test_a_directory_that_is_a_link_itself_is_followed",
    ),
    Mutation(
        name="the managed directory of a database is nobody's",
        file="hms_bridge/catalog/places.py",
        within="_databases_at_or_below",
        old="(_at_or_below(column, count) for column in _DATABASE_PLACES)",
        new="(_at_or_below(column, count) for column in _DATABASE_PLACES[:1])",
        test="tests/service/test_allowed_deletions.py::"
        "test_the_directory_of_a_database_is_taken_along_by_no_table",
    ),
    Mutation(
        name="of several tables a move of one is not seen",
        file="hms_bridge/catalog/target_marks.py",
        within="",
        old="_of_table(TBLS.c.SD_ID, TBLS.c.TBL_NAME)",
        new="_of_table(TBLS.c.SD_ID, '')",
        test="tests/service/test_target_marks.py",
    ),
    Mutation(
        name="emptied directories go while somebody may list them",
        file="cleaner/remover.py",
        within="Remover._remove",
        old=(
            "self._protocol.remove_all(removals, begun=begun, "
            "require_lease=self.lease.require, require_same=partial(asking, "
            "still_same), require_quiet=partial(asking, quiet))"
        ),
        new=(
            "self._protocol.remove_all(removals, begun=begun, "
            "require_lease=self.lease.require, require_same=partial(asking, "
            "still_same))"
        ),
        test="tests/cleaner/test_waiting_for_readers.py::"
        "test_no_directory_goes_while_a_reader_may_list_it",
    ),
    Mutation(
        name="who lists is looked for while files are left",
        file="changemanager/delete_protocol.py",
        within="DeleteProtocol._drive",
        old="self._delete_files(work, require_lease)",
        new="pass",
        test="tests/changemanager/test_removals_together.py::"
        "test_who_lists_is_looked_for_between_the_last_file_and_the_first_directory",
    ),
    Mutation(
        name="a table that is always read is never cleaned",
        file="hms_bridge/txn/readers.py",
        within="_gives_way",
        old="since_ms <= began_ms + GIVING_WAY_MS",
        new="since_ms > 0",
        test="tests/txn/test_listing_readers.py::test_on_a_table_that_is_always_read_it_ends",
    ),
    Mutation(
        name="streams of inserts hold up every cleaning",
        file="hms_bridge/txn/readers.py",
        within="_listing",
        old=(
            "select(_L.HL_TABLE, func.min(_L.HL_ACQUIRED_AT)).where(_L.HL_DB "
            "== bindparam('database'), _L.HL_LOCK_TYPE == "
            "LockType.SHARED_READ.stored, _L.HL_LOCK_STATE == "
            "LockState.ACQUIRED.stored, _L.HL_ACQUIRED_AT > now - LISTING_MS, "
            "_L.HL_TABLE.is_not(None), ~exists().where(_C.TC_TXNID == "
            "_L.HL_TXNID))"
        ),
        new=(
            "select(_L.HL_TABLE, func.min(_L.HL_ACQUIRED_AT)).where(_L.HL_DB "
            "== bindparam('database'), _L.HL_LOCK_TYPE == "
            "LockType.SHARED_READ.stored, _L.HL_LOCK_STATE == "
            "LockState.ACQUIRED.stored, _L.HL_ACQUIRED_AT > now - LISTING_MS, "
            "_L.HL_TABLE.is_not(None))"
        ),
        test="tests/txn/test_listing_readers.py::test_whoever_writes_does_not_count",
    ),
    Mutation(
        name="a reader holds up a cleaning for as long as it reads",
        file="hms_bridge/txn/readers.py",
        within="_listing",
        old=(
            "select(_L.HL_TABLE, func.min(_L.HL_ACQUIRED_AT)).where(_L.HL_DB "
            "== bindparam('database'), _L.HL_LOCK_TYPE == "
            "LockType.SHARED_READ.stored, _L.HL_LOCK_STATE == "
            "LockState.ACQUIRED.stored, _L.HL_ACQUIRED_AT > now - LISTING_MS, "
            "_L.HL_TABLE.is_not(None), ~exists().where(_C.TC_TXNID == "
            "_L.HL_TXNID))"
        ),
        new=(
            "select(_L.HL_TABLE, func.min(_L.HL_ACQUIRED_AT)).where(_L.HL_DB "
            "== bindparam('database'), _L.HL_LOCK_TYPE == "
            "LockType.SHARED_READ.stored, _L.HL_LOCK_STATE == "
            "LockState.ACQUIRED.stored, _L.HL_TABLE.is_not(None), "
            "~exists().where(_C.TC_TXNID == _L.HL_TXNID))"
        ),
        test="tests/txn/test_listing_readers.py::test_only_for_a_moment",
    ),
    Mutation(
        name="a partition is stored although its table's directory is being moved",
        file="hms_bridge/service/partitions.py",
        within="PartitionVerbs._insert",
        old="self._file_work.require_unmoved(unit.connection, places)",
        new="",
        test="tests/service/test_partitions_of_moved_tables.py::"
        "test_one_that_looked_before_the_move_began_is_refused",
    ),
    Mutation(
        name="partitions are exchanged for a place to which nobody moved their directories",
        file="hms_bridge/service/exchange_partitions.py",
        within="ExchangePartitionVerbs._exchange",
        old="plan.moves == planned.moves and plan.target.id == planned.target.id",
        new="plan.target.id == planned.target.id",
        test="tests/service/test_partition_conditions.py::"
        "test_a_table_that_gets_another_place_while_directories_are_moved_stops_the_exchange",
    ),
    Mutation(
        name="a view is rebuilt from new rows though its lowest open write has ended",
        file="hms_bridge/txn/materialization.py",
        within="changes_since",
        old="then is None or _lowest_open(then) != _lowest_open(now)",
        new="then is None",
        test="tests/txn/test_materialized_changes.py::"
        "test_a_view_whose_lowest_open_write_has_ended_is_made_anew",
    ),
)
