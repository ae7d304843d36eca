"""Mutations of what keeps a source on a Hive's metastore as it is; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

OF_HIVE_SOURCES = (
    Mutation(
        name="a promotion tries the fence of a Hive's metastore, which gives a write id",
        file="hms_bridge/repl/handover/promote.py",
        old="            self._require_heeding(plan)\n            try:\n",
        new="            try:\n",
        test="tests/repl/test_promote.py::"
        "test_a_lost_source_with_a_hive_that_is_back_brings_no_table_whole",
    ),
)
