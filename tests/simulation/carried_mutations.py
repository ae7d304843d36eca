"""Mutations of how constraints and functions are carried over, and failures marked; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_CONSTRAINTS = "tests/repl/test_constraints.py::test_"
_FUNCTIONS = "tests/repl/test_functions.py::test_"
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
        old="        if wanted[0].refers_to is not None and not _has_key(replica, wanted):\n",
        new="        if False:\n",
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
        old="        if (of_table.database_name, of_table.table_name) != table:\n",
        new="        if False:\n",
        test=f"{_CONSTRAINTS}a_file_of_another_table_is_refused_before_anything_is_loaded",
    ),
    Mutation(
        name="a jar that is gone is left out of a dump",
        file="hms_bridge/repl/dump/functions.py",
        old="        if _is_there(source, function):\n            raise\n",
        new="",
        test=f"{_FUNCTIONS}a_jar_that_is_gone_stops_the_dump_unless_its_function_is_gone_too",
    ),
    Mutation(
        name="jars are not looked for before a load",
        file="hms_bridge/repl/verify.py",
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
        file="hms_bridge/repl/non_recoverable.py",
        old="            _mark(resolve, paths, error, max(",
        new="            (resolve, paths, error, max(",
        test=f"{_MARK}lost_events_are_marked_and_stop_dump_and_load",
    ),
    Mutation(
        name="a dump that another replica has loaded is marked",
        file="hms_bridge/repl/non_recoverable.py",
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
)
