"""Protective lines of patterns of tables, each broken once; for ``mutations.py``."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_SCOPE = "tests/repl/test_scope.py::"
_DUMP = "hms_bridge/repl/dump/"
_LOAD = "hms_bridge/repl/load/"

SCOPE: tuple[Mutation, ...] = (
    Mutation(
        name="a second replica never hears of a change of scope that brings nothing",
        file="hms_bridge/repl/load/planner.py",
        within="LoadPlanner._has_all",
        old="lacks_tables(reader, replica) or lacks_scope(reader, replica)",
        new="lacks_tables(reader, replica)",
        test="tests/repl/test_scope.py::"
        "test_a_second_replica_takes_a_change_of_scope_that_brings_nothing",
    ),
    Mutation(
        name="a drop goes on from a scope that the replica never got",
        file=f"{_DUMP}dropped.py",
        within="plan_dropped",
        old="scope = read_scope_note(resolve, previous.paths, scope).before",
        new="pass",
        test="tests/repl/test_dropped.py::"
        "test_a_drop_in_place_of_a_changed_scope_goes_on_from_what_the_replica_has",
    ),
    Mutation(
        name="a failover advises to load a dump that drops what nobody else has",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="_plan_failover",
        old="replica.waiting_scope is not None",
        new="False",
        test="tests/repl/test_promote.py::"
        "test_a_dump_that_waits_and_leaves_fewer_tables_is_told_as_such",
    ),
    Mutation(
        name="another scope is taken for meant",
        file=f"{_DUMP}scope_change.py",
        within="require_meant",
        old="change.is_modified",
        new="False",
        test=f"{_SCOPE}test_another_scope_is_refused_unless_it_is_meant",
    ),
    Mutation(
        name="tables that a changed scope covers or not are not looked for",
        file=f"{_DUMP}scope_change.py",
        within="names_anew",
        old=("crossing = {table.name for table in tables if change.crosses(table.name)}"),
        new="crossing: set[str] = set()",
        test=f"{_SCOPE}test_from_all_tables_to_some_and_back",
        is_simulated=True,
        is_scope=True,
    ),
    Mutation(
        name="a table that left the scope and is gone stays on the replica",
        file=f"{_DUMP}scope_change.py",
        within="_crossing_in",
        old="crossing |= {name for name in names if change.crosses(name)}",
        new="",
        test=f"{_SCOPE}test_the_scope_is_changed",
    ),
    Mutation(
        name="a table that is lost as it leaves the scope stays on the replica",
        file=f"{_DUMP}repl_dump.py",
        within="ReplDump._run_incremental",
        old="names_anew(self._source, change, whole, plan.asked, listed)",
        new=("names_anew(self._source, change, whole, plan.asked, self._planner.tables(name))"),
        test=f"{_SCOPE}test_a_table_that_is_lost_as_it_leaves_the_scope_goes_too",
    ),
    Mutation(
        name="a rename across the edge of a scope is passed over",
        file=f"{_DUMP}scope_change.py",
        within="_crossing_in",
        old="crossing |= names",
        new="pass",
        test=f"{_SCOPE}test_tables_change_places_across_the_edge",
        is_simulated=True,
        is_scope=True,
    ),
    Mutation(
        name="events of tables outside of the scope are dumped",
        file=f"{_DUMP}scope_change.py",
        within="LeftOutTables.__contains__",
        old="name in self.anew or not self.change.carries(str(name))",
        new="name in self.anew",
        test=f"{_SCOPE}test_events_of_others_are_left_out_and_the_scope_goes_on_unsaid",
        is_simulated=True,
        is_scope=True,
    ),
    Mutation(
        name="a Hive is not told of a scope that was changed",
        file=f"{_DUMP}repl_dump.py",
        within="ReplDump._write_metadata",
        old=(
            "texts.write_metadata(DumpType.INCREMENTAL, change.now, "
            "plan.request.cm_root, covered.after, covered.until, "
            "is_scope_modified=change.is_modified)"
        ),
        new=(
            "texts.write_metadata(DumpType.INCREMENTAL, change.now, "
            "plan.request.cm_root, covered.after, covered.until)"
        ),
        test=f"{_SCOPE}test_the_scope_is_changed",
    ),
    Mutation(
        name="a dump in the place of one that changes the scope goes on from that",
        file=f"{_DUMP}planner.py",
        within="DumpPlanner._plan_incremental",
        old="change = replace(change, before=note.before)",
        new="",
        test=f"{_SCOPE}test_a_dump_in_the_place_of_one_that_changes_the_scope_changes_it_too",
    ),
    Mutation(
        name="a discarded dump leaves its changed scope behind",
        file=f"{_DUMP}discard.py",
        within="ReplDiscard._scope_before",
        old="plan.directory",
        new="'/'",
        test=f"{_SCOPE}test_a_discarded_change_is_none",
    ),
    Mutation(
        name="plain tables outside of the scope stop the dump",
        file=f"{_DUMP}repl_dump.py",
        within="ReplDump._run_incremental",
        old="tables_in(change.now, listed)",
        new="listed",
        test=f"{_SCOPE}test_plain_tables_outside_of_the_scope_are_not_looked_at",
    ),
    Mutation(
        name="a replica that missed a change of scope goes on",
        file=f"{_LOAD}planner.py",
        within="LoadPlanner._incremental_start",
        old="require_scope(request.names, reader, database)",
        new="",
        test=f"{_SCOPE}test_a_replica_that_missed_a_change_of_scope_is_told",
    ),
    Mutation(
        name="a replica does not note its scope",
        file=f"{_LOAD}scope.py",
        within="scope_parameter",
        old="{SCOPE: reader.scope.patterns_text or None}",
        new="{}",
        test=f"{_SCOPE}test_a_bootstrap_brings_what_is_in_scope_and_lists_it_as_hive_does",
    ),
    Mutation(
        name="a table that no load made goes with a name that left the scope",
        file=f"{_LOAD}scope.py",
        within="is_kept",
        old="table.name in reader.scope_note.names and (not is_loaded(table))",
        new="False",
        test=f"{_SCOPE}test_a_table_of_somebody_else_stays_when_its_name_leaves_the_scope",
    ),
    Mutation(
        name="a table that no load made is replaced by one that is new in the scope",
        file=f"{_LOAD}planner.py",
        within="LoadPlanner._plan_incremental",
        old="refuse_foreign(reader, self._replica(request))",
        new="",
        test=f"{_SCOPE}test_a_table_of_somebody_else_is_not_replaced_by_one_that_is_new_in_scope",
    ),
    Mutation(
        name="a table that no load made goes with a rename out of the scope",
        file=f"{_LOAD}events/table.py",
        within="drop_renamed",
        old="table is not None and (not is_loaded(table))",
        new="False and table is not None",
        test=f"{_SCOPE}"
        "test_a_table_of_somebody_else_stays_when_its_name_is_renamed_out_of_the_scope",
    ),
    Mutation(
        name="a table that no load made goes with a changed scope of a Hive's dump",
        file=f"{_LOAD}scope.py",
        within="drop_outside",
        old="is_loaded(table)",
        new="True",
        test="tests/repl/test_load_golden.py::"
        "test_a_hives_dump_of_a_changed_scope_drops_what_a_load_made_and_nothing_else",
    ),
    Mutation(
        name="write ids of a table that comes into a Hive's scope stop the load",
        file=f"{_LOAD}events/txn.py",
        within="allocate_write_ids",
        old="is_gone or comes_whole",
        new="is_gone",
        test=f"{_SCOPE}test_a_hives_dump_tells_write_ids_of_a_table_that_comes_whole_by_a_rename",
    ),
    Mutation(
        name="a replica of some tables closes the others of its source",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="plan_promotion",
        old="_require_all_tables(request, source, replica)",
        new="",
        test="tests/repl/test_promote.py::test_a_replica_of_some_tables_does_not_close_the_others",
        is_simulated=True,
        is_handover=True,
        is_scope=True,
    ),
    Mutation(
        name="a way back drops tables that were never in the scope",
        file="hms_bridge/repl/handover/failback_plan.py",
        within="plan_failback",
        old="_require_all_tables(request.policy, new.database)",
        new="",
        test="tests/repl/test_promote.py::"
        "test_the_tables_that_were_never_replicated_are_not_dropped_by_a_way_back",
        is_simulated=True,
        is_handover=True,
        is_scope=True,
    ),
    Mutation(
        name="a promoted replica forgets that its scope was limited",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion._take_over",
        old="del changes[SCOPE]",
        new="",
        test="tests/repl/test_promote.py::"
        "test_the_tables_that_were_never_replicated_are_not_dropped_by_a_way_back",
    ),
    Mutation(
        name="a pattern that means another thing in Java decides what is dropped",
        file="hms_bridge/model/name_pattern.py",
        within="name_pattern",
        old=(
            "if piece is None:\n"
            "    raise _refusal(text, f'{text[at:at + 8]} may mean another "
            "thing to a Hive')"
        ),
        new=(
            "if piece is None:\n"
            "    break\n"
            "if False:\n"
            "    raise _refusal(text, f'{text[at:at + 8]} may mean another "
            "thing to a Hive')"
        ),
        test="tests/model/test_name_pattern.py::test_what_is_no_pattern_is_refused_by_name",
    ),
)
