"""Mutations of how databases are spoken to; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

OF_STORES = (
    Mutation(
        name="a commit that a database refuses as it shuts down is tried again",
        file="hms_bridge/backend/failures.py",
        old=" and _is_refused(error) and not is_committing:\n",
        new=" and _is_refused(error):\n",
        test="tests/backend/test_engine.py::test_a_commit_that_fails_is_never_tried_again",
    ),
    Mutation(
        name="a transaction whose connection was cut off earlier is not tried again",
        file="hms_bridge/backend/failures.py",
        old="    return isinstance(cause, PendingRollbackError) and cause.code == _CUT_OFF\n",
        new="    return False\n",
        test="tests/backend/test_engine.py::"
        "test_a_statement_after_the_one_that_found_the_connection_gone",
    ),
    Mutation(
        name="a row of MySQL is made at a time in whole seconds",
        file="hms_bridge/backend/dialect.py",
        old='text("SYSDATE(3)")',
        new='func.sysdate(text("3"))',
        test="tests/backend/test_dialect.py::test_a_row_of_mysql_is_made_at_a_time_in_milliseconds",
    ),
)
