"""Mutations of how constraints and functions are carried over, and failures marked; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_CONSTRAINTS = "tests/repl/test_constraints.py::test_"
_FUNCTIONS = "tests/repl/test_functions.py::test_"
_COMPARED = "tests/repl/test_compare_constraints.py::"
_STATISTICS = "tests/repl/test_compare_statistics.py::test_"
_DROPPED = "tests/repl/test_dropped.py::test_"
_LIMIT = "tests/repl/test_event_limit.py::test_"
_EXPIRY = "tests/repl/test_expiry.py::test_"
_MARK = "tests/repl/test_non_recoverable.py::test_"

CARRIED = (
    Mutation(
        name="a constraint that is in the way stays",
        file="hms_bridge/repl/load/constraints.py",
        old="        for old in _in_the_way(there, wanted):\n",
        new="        for old in ():\n",
        test=f"{_CONSTRAINTS}what_a_bootstrap_brought_gives_way_to_the_last_event",
    ),
    Mutation(
        name="constraints that are there are added again",
        file="hms_bridge/repl/load/constraints.py",
        old="        if _compared(wanted) == _compared(_named(there, name)):\n",
        new="        if False:\n",
        test=f"{_CONSTRAINTS}a_load_is_repeated_without_harm",
    ),
    Mutation(
        name="a foreign key to what is not there stops a load",
        file="hms_bridge/repl/load/constraints.py",
        old=" and not has_key(replica.metastore, wanted):\n",
        new=" and False:\n",
        test=f"{_CONSTRAINTS}a_foreign_key_to_another_database_is_left_out_with_a_note",
    ),
    Mutation(
        name="a constraint on a column that is gone stops a load for ever",
        file="hms_bridge/repl/load/constraints.py",
        old="        if gone:\n",
        new="        if False:\n",
        test=f"{_CONSTRAINTS}a_constraint_on_a_column_that_a_bootstrap_missed_is_left_out",
    ),
    Mutation(
        name="foreign keys to a table that comes anew are lost",
        file="hms_bridge/repl/dump/constraints.py",
        old="    for name in others:\n",
        new="    for name in ():\n",
        test=f"{_CONSTRAINTS}a_table_that_comes_anew_keeps_foreign_keys_to_it",
    ),
    Mutation(
        name="a foreign key is taken for one of the database that it refers to",
        file="hms_bridge/repl/dump/event_source.py",
        old="    if is_default and event.type == EventType.ADD_FOREIGN_KEY.value:\n",
        new="    if False:\n",
        test=f"{_CONSTRAINTS}a_foreign_key_is_of_the_table_that_has_it",
    ),
    Mutation(
        name="constraints of one table are loaded as those of another",
        file="hms_bridge/repl/format/constraints.py",
        old="        if name != table:\n",
        new="        if False:\n",
        test=f"{_CONSTRAINTS}a_file_of_another_table_is_refused_before_anything_is_loaded",
    ),
    Mutation(
        name="a jar that is gone is left out of a dump",
        file="hms_bridge/repl/dump/functions.py",
        old="        if now is not None and _uris(now) == _uris(function):\n            raise\n",
        new="",
        test=f"{_FUNCTIONS}a_jar_that_is_gone_stops_the_dump_unless_its_function_is_gone_too",
    ),
    Mutation(
        name="jars are not looked for before a load",
        file="hms_bridge/repl/format/verify.py",
        old="        for function in reader.functions():\n",
        new="        for function in ():\n",
        test=f"{_FUNCTIONS}a_jar_that_was_changed_since_the_dump_is_lost_loudly",
    ),
    Mutation(
        name="a function keeps the jar that it had before",
        file="hms_bridge/repl/load/functions.py",
        old='/{name}/{dumped.last_event_id}"\n',
        new='/{name}/0"\n',
        test=f"{_FUNCTIONS}events_bring_functions_and_take_them",
    ),
    Mutation(
        name="a forged name of a function leaves its root",
        file="hms_bridge/repl/format/reader.py",
        old='replace(function, name=checked_name(function.name, "function"))',
        new="function",
        test=f"{_FUNCTIONS}a_forged_function_does_not_leave_its_place",
    ),
    Mutation(
        name="a failed dump leaves no mark",
        file="hms_bridge/repl/format/non_recoverable.py",
        old="            _mark(resolve, paths, error, later_than(",
        new="            (resolve, paths, error, later_than(",
        test=f"{_MARK}lost_events_are_marked_and_stop_dump_and_load",
    ),
    Mutation(
        name="a dump that another replica has loaded is marked",
        file="hms_bridge/repl/format/non_recoverable.py",
        old="if newest is not None and newest.state is DumpState.FINISHED:",
        new="if newest is not None:",
        test=f"{_MARK}a_dump_that_another_replica_has_loaded_is_not_marked",
    ),
    Mutation(
        name="a mark is passed over",
        file="hms_bridge/repl/format/directories.py",
        old="            if is_mark_ignored:\n",
        new="            if True:\n",
        test=f"{_MARK}lost_events_are_marked_and_stop_dump_and_load",
    ),
    Mutation(
        name="constraints of a replica are not compared",
        file="hms_bridge/repl/compare/judge.py",
        old="        *_constraints(whole, source, replica, circumstances),\n",
        new="",
        test=f"{_COMPARED}TestConstraints::test_one_that_says_something_else_is_named",
    ),
    Mutation(
        name="a foreign key is taken for a change of the table that it refers to",
        file="hms_bridge/repl/compare/later_events.py",
        old="    if event.type == EventType.ADD_FOREIGN_KEY.value:\n",
        new="    if False:\n",
        test=f"{_COMPARED}TestConstraints::test_one_that_the_source_made_since_is_undecided",
    ),
    Mutation(
        name="a foreign key that went with its table is a difference",
        file="hms_bridge/repl/compare/constraints.py",
        old="        if change is not None:\n",
        new="        if False:\n",
        test=(
            f"{_COMPARED}TestConstraints::"
            "test_a_foreign_key_that_went_with_its_table_since_is_undecided"
        ),
    ),
    Mutation(
        name="files of functions are compared by name only",
        file="hms_bridge/repl/compare/functions.py",
        old="        of_replica = _checksum(places[1], of_source)\n",
        new="        of_replica = of_source\n",
        test=(
            f"{_COMPARED}TestFunctions::test_a_file_with_other_bytes_and_one_that_is_gone_are_named"
        ),
    ),
    Mutation(
        name="a function that the source changed since is a difference",
        file="hms_bridge/repl/compare/functions.py",
        old="        if change is not None:\n",
        new="        if False:\n",
        test=f"{_COMPARED}TestFunctions::test_what_the_source_changed_since_is_undecided",
    ),
    Mutation(
        name="statistics that the source changed since are a difference",
        file="hms_bridge/repl/compare/later_events.py",
        old="        elif event.type in _OF_STATISTICS:\n",
        new="        elif False:\n",
        test=f"{_STATISTICS}statistics_that_the_source_changed_since_are_undecided",
    ),
    Mutation(
        name="nobody who asks hears that statistics differ",
        file="hms_bridge/repl/compare/table_comparison.py",
        old="        if self._request.depth.has_statistics:\n",
        new="        if False:\n",
        test=f"{_STATISTICS}statistics_are_compared_only_if_asked",
    ),
    Mutation(
        name="a replica is dropped unasked",
        file="hms_bridge/repl/load/dropped.py",
        old="    if not request.is_drop_allowed:\n",
        new="    if False:\n",
        test=f"{_DROPPED}a_replica_goes_only_if_somebody_says_so",
        is_simulated=True,
        is_scope=True,
    ),
    Mutation(
        name="a replica is dropped with what others have put there",
        file="hms_bridge/repl/load/dropped.py",
        old="    if database is not None and not is_of_loads_only(database.parameters):\n",
        new="    if False:\n",
        test=f"{_DROPPED}a_replica_that_others_could_change_stays",
    ),
    Mutation(
        name="a replica that was opened since the plan is dropped",
        file="hms_bridge/repl/load/dropped.py",
        old="    if not is_of_loads_only(database.parameters):\n",
        new="    if False:\n",
        test=f"{_DROPPED}one_that_is_opened_between_plan_and_run_stays",
    ),
    Mutation(
        name="a drop takes a later database of the name",
        file="hms_bridge/repl/load/dropped.py",
        old="(stands_at or EventId(0)) > event.id:\n",
        new="False:\n",
        test=f"{_DROPPED}a_later_database_of_the_name_stays",
    ),
    Mutation(
        name="another metastore's drop is taken for the source's",
        file="hms_bridge/repl/dump/dropped.py",
        old="        require_same_log(source, resolve, previous, wanted)\n",
        new="",
        test=f"{_DROPPED}another_metastore_without_the_database_is_no_drop",
    ),
    Mutation(
        name="a drop is told of a database that is there again",
        file="hms_bridge/repl/dump/dropped.py",
        old=" or is_back:\n",
        new=":\n",
        test=f"{_DROPPED}a_database_that_comes_again_before_the_dump_is_written",
    ),
    Mutation(
        name="a transaction that ends beyond a limited dump is taken for one without an end",
        file="hms_bridge/repl/format/replays.py",
        old=" | {*ended_later}\n",
        new="\n",
        test=f"{_LIMIT}a_transaction_that_ends_beyond_a_dump_stays_open",
    ),
    Mutation(
        name="Hive's load aborts what ends beyond a limited dump",
        file="hms_bridge/repl/dump/incremental.py",
        old="sorted({*now, *self._ended_later})",
        new="sorted(now)",
        test=f"{_LIMIT}a_transaction_that_ends_beyond_a_dump_stays_open",
    ),
    Mutation(
        name="the first dump after a bootstrap ends before what that saw",
        file="hms_bridge/repl/dump/event_limit.py",
        old="max(EventId(after + limit), at_least or EventId(0))",
        new="EventId(after + limit)",
        test=f"{_LIMIT}what_a_bootstrap_saw_beside_its_event_comes_with_the_first_dump",
    ),
    Mutation(
        name="after a discarded dump a limit parts what comes together",
        file="hms_bridge/repl/dump/planner.py",
        old="max(metadata.to_event_id, going_on.together_until)",
        new="metadata.to_event_id",
        test=f"{_LIMIT}a_discarded_dump_leaves_what_comes_together_together",
    ),
    Mutation(
        name="an event that a limit left explains later writes",
        file="hms_bridge/repl/dump/repl_dump.py",
        old="        after = plan.files_seen_at or plan.wanted.after\n",
        new="        after = plan.wanted.after\n",
        test=f"{_LIMIT}a_write_unseen_after_a_dump_with_a_limit_is_noticed",
    ),
    Mutation(
        name="what plain tables held is forgotten with a discarded dump",
        file="hms_bridge/repl/dump/going_on.py",
        old="    write_plain(texts, places)\n",
        new="",
        test="tests/repl/test_discard.py::test_a_write_unseen_is_noticed_after_a_dump_was_discarded",
    ),
    Mutation(
        name="a plain table that a discarded dump brought whole counts as there",
        file="hms_bridge/repl/dump/going_on.py",
        old='        name: _NOT_ON_THE_REPLICA if name.partition("/")[0] in anew else place\n',
        new="        name: place\n",
        test="tests/repl/test_discard.py::test_a_write_unseen_is_noticed_after_a_dump_was_discarded",
    ),
    Mutation(
        name="a dump with tables that come whole has a limit",
        file="hms_bridge/repl/dump/planner.py",
        old="        limit = None if is_whole or change.is_modified else request.event_limit\n",
        new="        limit = request.event_limit\n",
        test=f"{_LIMIT}tables_that_come_whole_know_no_limit",
    ),
    Mutation(
        name="a plain table that a later event explains stops a limited dump",
        file="hms_bridge/repl/dump/repl_dump.py",
        old="        seen = EventRange(after=after, until=newest)\n",
        new="        seen = EventRange(after=after, until=plan.until_event_id or newest)\n",
        test=f"{_LIMIT}a_plain_table_that_an_event_beyond_explains_is_no_write_unseen",
    ),
    Mutation(
        name="a cycle leaves behind what a limit left over",
        file="hms_bridge/repl/cycles/cycle.py",
        old="            if dump.left_event_count == 0 or reached >= goal:\n",
        new="            if True:\n",
        test=f"{_LIMIT}a_cycle_goes_on_until_nothing_is_left",
    ),
    Mutation(
        name="a dump that is not loaded expires",
        file="hms_bridge/repl/dump/expiry.py",
        old="    if dump.state is not DumpState.LOADED:\n",
        new="    if False:\n",
        test=f"{_EXPIRY}what_is_not_loaded_stays",
    ),
    Mutation(
        name="the newest chain of dumps expires",
        file="hms_bridge/repl/dump/expiry.py",
        old="    if dump.paths.root in chain:\n",
        new="    if False:\n",
        test=f"{_EXPIRY}a_long_chain_stays_whole",
        is_simulated=True,
        is_scope=True,
    ),
    Mutation(
        name="the loaded chain expires while a bootstrap waits",
        file="hms_bridge/repl/dump/expiry.py",
        old=", *newest_chain(loaded).directories)\n",
        new=",)\n",
        test=f"{_EXPIRY}the_newest_loaded_chain_stays_while_a_newer_bootstrap_waits",
    ),
    Mutation(
        name="what is no dump expires",
        file="hms_bridge/repl/dump/expiry.py",
        old="        if not why and (what := strange(dump)):\n",
        new="        if False and (what := strange(dump)):\n",
        test=f"{_EXPIRY}what_is_no_dump_stays",
    ),
    Mutation(
        name="a plan of expired dumps is not looked at again",
        file="hms_bridge/repl/dump/expiry.py",
        old="            if not now.issuperset(plan.removed):\n",
        new="            if False:\n",
        test=f"{_EXPIRY}dumps_that_came_since_the_plan_are_looked_at_again",
    ),
    Mutation(
        name="a server removes dumps of others",
        file="hms_bridge/repl/dump/expiry.py",
        old="            if metastore.get_database(name).is_replication_source:\n",
        new="            if True:\n",
        test=f"{_EXPIRY}a_server_removes_those_of_its_own_sources_only",
    ),
    Mutation(
        name="a table is made without the constraints that came with it",
        file="hms_bridge/service/tables.py",
        old="            constraints_of.add_with_table(unit, wanted, constraints)\n",
        new="",
        test=f"{_CONSTRAINTS}a_table_that_is_made_with_constraints_brings_them",
    ),
    Mutation(
        name="constraints of another table come with a new one",
        file="hms_bridge/server/table_calls.py",
        old="(of_table.table_name or table.name).lower()) != own:\n",
        new="table.name.lower()) != own:\n",
        test="tests/server/test_calls.py::"
        "test_constraints_of_another_table_and_too_many_are_refused",
    ),
    Mutation(
        name="the jars of a dropped function are not archived",
        file="hms_bridge/service/functions.py",
        old="            self._file_work.archive_copy(uri, context)\n",
        new="            pass\n",
        test=f"{_FUNCTIONS}a_dump_still_brings_a_function_that_was_dropped_with_its_jar",
    ),
    Mutation(
        name="a cycle goes on for as long as others write",
        file="hms_bridge/repl/cycles/cycle.py",
        old="            if dump.left_event_count == 0 or reached >= goal:\n",
        new="            if dump.left_event_count == 0:\n",
        test="tests/repl/test_event_limit.py::"
        "test_a_cycle_ends_though_writers_are_faster_than_the_limit",
    ),
)
