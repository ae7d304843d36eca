"""Mutations of where a metastore and what belongs to it is looked for; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

OF_PLACES = (
    Mutation(
        name="sql makes an empty metastore wherever somebody is",
        file="hms_bridge/cli/sql.py",
        old="settings, is_created=False)",
        new="settings, is_created=True)",
        test="tests/cli/test_bad_input.py::test_sql_makes_no_metastore",
    ),
)
