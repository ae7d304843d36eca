"""Mutations of what holds where somebody takes no lock: the parameter that a commit of Iceberg
expects, and writers that outlive their table; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_EXPECTED = "tests/server/test_expected_parameters.py::"
_RULES = "hms_bridge/catalog/table_rules.py"
_ALTER = "hms_bridge/service/alter_tables.py"
_DROPPED = "tests/service/test_writers_of_dropped_tables.py::"
_REPLICA = "tests/repl/test_writers_of_dropped_tables.py::"
_LATE = "hms_bridge/txn/late_writers.py"
_CREATE = "hms_bridge/service/tables.py"

OF_WRITE_RACES = (
    Mutation(
        name="an ALTER TABLE takes any value for the one that its client expects",
        file=_RULES,
        within="check_expected_parameter",
        old="there != value",
        new="False",
        test=_EXPECTED + "test_a_stale_value_is_refused_with_hives_words",
    ),
    Mutation(
        name="an expected parameter is compared before the transaction alone",
        file=_ALTER,
        within="_replace_expected_parameter",
        old="check_expected_parameter(stored.table, wanted, environment)",
        new="",
        test=_EXPECTED + "test_a_parameter_that_the_table_lacks_has_not_the_expected_value",
    ),
    Mutation(
        name="a rename moves the directory of a table that has not the expected parameter",
        file=_ALTER,
        within="AlterTableVerbs._move_for",
        old="check_expected_parameter(old, wanted, alteration.environment)",
        new="",
        test=_EXPECTED + "test_a_rename_that_expects_another_value_moves_nothing",
    ),
    Mutation(
        name="an ALTER TABLE loses the parameter that its client expects",
        file=_RULES,
        within="check_expected_parameter",
        old="name not in new.parameters",
        new="False",
        test=_EXPECTED + "test_an_expected_parameter_needs_a_new_value",
    ),
    Mutation(
        name="a writer commits to a table that was dropped",
        file=_LATE,
        within="_open_writers",
        old="TxnState.OPEN",
        new="TxnState.ABORTED",
        test=_DROPPED + "test_what_it_wrote_elsewhere_is_aborted_with_it",
    ),
    Mutation(
        name="a drop breaks off a replay",
        file=_LATE,
        within="",
        old="(int(TxnType.REPL_CREATED), int(TxnType.SOFT_DELETE))",
        new="(int(TxnType.SOFT_DELETE),)",
        test=_REPLICA + "test_a_drop_ends_no_replay",
    ),
    Mutation(
        name="the writers of a dropped table are not remembered",
        file=_LATE,
        within="note_writers",
        old="TXNS.c.TXN_LAST_HEARTBEAT >= aborts_end_ms(work, now_ms)",
        new="TXNS.c.TXN_LAST_HEARTBEAT < aborts_end_ms(work, now_ms)",
        test=_DROPPED + "test_a_writer_that_was_aborted_before_shows_nothing_either",
    ),
    Mutation(
        name="the writers of a dropped table are remembered for ever",
        file=_LATE,
        within="forget_late_writers",
        old="aborts_end_ms(work, work.now_ms)",
        new="0",
        test=_DROPPED + "test_after_the_retention_nothing_is_remembered",
    ),
    Mutation(
        name="a table shows what writers of a dropped one bring",
        file=_CREATE,
        within="TableVerbs._insert_table",
        old="late_writers.take_over(unit, complete, is_of_load=is_of_load)",
        new="None",
        test=_DROPPED + "test_it_shows_nothing_in_the_next_table",
    ),
    Mutation(
        name="a replica has aborted write ids that its source has not",
        file=_CREATE,
        within="TableVerbs._insert_table",
        old="is_kept_by_loads(stored.database.parameters)",
        new="False",
        test=_REPLICA + "test_a_database_that_is_loaded_anew_has_the_sources_ids",
    ),
    Mutation(
        name="a table gives the write ids that writers of a dropped one have",
        file=_LATE,
        within="_raise_counter",
        old="highest + 1",
        new="1",
        test=_DROPPED + "test_it_shows_nothing_in_the_next_table",
        is_simulated=True,
    ),
    Mutation(
        name="a write id that is asked for before its table is made is a late writer's",
        file="hms_bridge/txn/write_ids.py",
        within="_after_late_writers",
        old="(highest or 0) + 1",
        new="1",
        test=_DROPPED + "test_a_write_id_asked_for_before_the_next_table_is_made_is_a_higher_one",
    ),
    Mutation(
        name="a table is made whose write ids are those of late writers",
        file=_LATE,
        within="_without_aborted",
        old=("if taken:\n    ..."),
        new=("if False:\n    ..."),
        test=_DROPPED + "test_write_ids_of_another_name_that_are_the_late_writers_are_refused",
    ),
    Mutation(
        name="a rename forgets who may still write to the old place",
        file=_ALTER,
        within="AlterTableVerbs._finish_move",
        old="late_writers.note_writers(unit, stored.table)",
        new="pass",
        test=_DROPPED + "test_it_shows_nothing_under_the_old_name_of_a_renamed_table",
    ),
    Mutation(
        name="a replica counts write ids of a next table from one",
        file="hms_bridge/repl/load/events/table.py",
        within="_begin_write_ids",
        old="replica.metastore.seed_write_id(database, name, WriteId(int(last)))",
        new="pass",
        test=_REPLICA + "test_the_next_table_has_the_sources_write_ids",
    ),
)
