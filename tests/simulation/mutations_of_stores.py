"""Mutations of how databases are spoken to; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

OF_STORES = (
    Mutation(
        name="a commit that a database refuses as it shuts down is tried again",
        file="hms_bridge/backend/failures.py",
        within="translate",
        old=("isinstance(error, OperationalError) and _is_refused(error) and (not is_committing)"),
        new="isinstance(error, OperationalError) and _is_refused(error)",
        test="tests/backend/test_engine.py::test_a_commit_that_fails_is_never_tried_again",
    ),
    Mutation(
        name="a transaction whose connection was cut off earlier is not tried again",
        file="hms_bridge/backend/failures.py",
        within="_is_lost",
        old="isinstance(cause, PendingRollbackError) and cause.code == _CUT_OFF",
        new="False",
        test="tests/backend/test_engine.py::"
        "test_a_statement_after_the_one_that_found_the_connection_gone",
    ),
    Mutation(
        name="a row of MySQL is made at a time in whole seconds",
        file="hms_bridge/backend/dialect.py",
        within="row_time_expression",
        old="text('SYSDATE(3)')",
        new="func.sysdate(text('3'))",
        test="tests/backend/test_dialect.py::test_a_row_of_mysql_is_made_at_a_time_in_milliseconds",
    ),
    Mutation(
        name="how a partition is stored is sent as how one is that is gone",
        file="hms_bridge/wire/partition_bytes.py",
        within="_Encoder._around_location",
        old="self._known_storages.append(storage)",
        new="",
        test="tests/wire/test_partition_bytes.py::"
        "test_what_is_made_on_the_way_is_not_taken_for_what_is_gone",
    ),
    Mutation(
        name="a half answer leaves its connection open",
        file="hms_bridge/server/dispatch.py",
        within="Dispatcher._send",
        old=("raise TTransportException(TTransportException.UNKNOWN, 'a half answer') from error"),
        new="",
        test="tests/server/test_long_answers.py::test_a_half_answer_ends_the_connection",
    ),
)
