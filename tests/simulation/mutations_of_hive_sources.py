"""Mutations of what a source on a Hive's metastore needs: it stays as it is, and what it forgets
is no difference; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

OF_HIVE_SOURCES = (
    Mutation(
        name="a promotion tries the fence of a Hive's metastore, which gives a write id",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion.run",
        old="self._require_heeding(plan)",
        new="",
        test="tests/repl/test_promote.py::"
        "test_a_lost_source_with_a_hive_that_is_back_brings_no_table_whole",
    ),
    Mutation(
        name="an aborted write that a Hive has forgotten counts as a difference",
        file="hms_bridge/repl/compare/table_comparison.py",
        within="_forgotten",
        old=(
            "hidden.is_aborted(write_id) or has_no_owner(side.metastore, "
            "side.table.full_name, write_id)"
        ),
        new="has_no_owner(side.metastore, side.table.full_name, write_id)",
        test="tests/repl/test_compare_kinds.py::"
        "test_an_aborted_write_that_one_side_forgot_before_its_id",
    ),
)
