"""Mutations of what writers without a lock rely on: the parameter that a commit of Iceberg expects;
read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_EXPECTED = "tests/server/test_expected_parameters.py::"
_RULES = "hms_bridge/catalog/table_rules.py"
_ALTER = "hms_bridge/service/alter_tables.py"

OF_WRITE_RACES = (
    Mutation(
        name="an ALTER TABLE takes any value for the one that its client expects",
        file=_RULES,
        old="    if there != value:\n",
        new="    if False:\n",
        test=_EXPECTED + "test_a_stale_value_is_refused_with_hives_words",
    ),
    Mutation(
        name="an expected parameter is compared before the transaction alone",
        file=_ALTER,
        old="    check_expected_parameter(stored.table, wanted, environment)\n",
        new="",
        test=_EXPECTED + "test_a_parameter_that_the_table_lacks_has_not_the_expected_value",
    ),
    Mutation(
        name="a rename moves the directory of a table that has not the expected parameter",
        file=_ALTER,
        old="        check_expected_parameter(old, wanted, alteration.environment)\n",
        new="",
        test=_EXPECTED + "test_a_rename_that_expects_another_value_moves_nothing",
    ),
    Mutation(
        name="an ALTER TABLE loses the parameter that its client expects",
        file=_RULES,
        old="    if name not in new.parameters:\n",
        new="    if False:\n",
        test=_EXPECTED + "test_an_expected_parameter_needs_a_new_value",
    ),
)
