"""Mutations of what a load does for many events together; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_WINDOWS = "tests/repl/test_load_windows.py::"

OF_LOADS = (
    Mutation(
        name="files of a commit come before the drop of their partition",
        file="hms_bridge/repl/load/incremental.py",
        within="_is_together",
        old="_replay_of(event, rules) is None",
        new="True",
        test=f"{_WINDOWS}test_a_partition_that_goes_between_two_commits_takes_no_file_of_the_later",
    ),
    Mutation(
        name="transactions count as open where a call found one of them open",
        file="hms_bridge/repl/load/replica.py",
        within="Replica.open_ahead",
        old="len(self._open(txn_ids)) == len(txn_ids)",
        new="self._open(txn_ids)",
        test=f"{_WINDOWS}test_a_load_that_was_killed_while_it_opened_opens_the_others",
    ),
    Mutation(
        name="write ids are given ahead that do not follow on the replica's",
        file="hms_bridge/repl/load/events/txn.py",
        within="allocate_ahead",
        old=(
            "new and [pair.write_id for pair in new] == list(range(known + 1, "
            "known + 1 + len(new)))"
        ),
        new="new",
        test=f"{_WINDOWS}test_write_ids_that_do_not_follow_on_the_replicas_are_refused",
    ),
    Mutation(
        name="what cannot be done ahead stops the load before its turn",
        file="hms_bridge/repl/load/ahead.py",
        within="go_ahead",
        old="suppress(HmsBridgeError)",
        new="suppress()",
        test=f"{_WINDOWS}test_what_cannot_be_done_stops_the_load_at_its_turn",
    ),
    Mutation(
        name="files count as brought that are not",
        file="hms_bridge/repl/load/events/commit.py",
        within="commit_request",
        old="event.id not in ahead.copied",
        new="False",
        test=f"{_WINDOWS}test_what_cannot_be_done_stops_the_load_at_its_turn",
    ),
    Mutation(
        name="what a killed load opened stays open where its table comes whole",
        file="hms_bridge/repl/load/incremental.py",
        within="replay",
        old="replica.end_replays(plan.unrelated)",
        new="",
        test=f"{_WINDOWS}test_what_a_killed_load_opened_is_ended_though_its_table_comes_whole",
    ),
    Mutation(
        name="commits that wait are not sent where a later one is refused",
        file="hms_bridge/repl/load/incremental.py",
        within="_replay_window",
        old=("commits.send()\nraise"),
        new="raise",
        test=f"{_WINDOWS}test_commits_that_wait_are_loaded_where_a_later_one_is_refused",
    ),
    Mutation(
        name="an event overtakes the commits before it",
        file="hms_bridge/repl/load/incremental.py",
        within="_replay_window",
        old=(
            "if not is_done and _replay_of(event, context.reader.rules) is not "
            "None:\n"
            "    commits.send()"
        ),
        new=("if not is_done and _replay_of(event, context.reader.rules) is not None:\n    pass"),
        test=f"{_WINDOWS}test_an_abort_waits_for_the_commits_before_it",
    ),
    Mutation(
        name="commits of a load are undone with a later one that is refused",
        file="hms_bridge/service/transactions.py",
        within="TransactionVerbs.commit_replays",
        old=("for request in requests:\n    self.commit_txn(request)"),
        new="raise",
        test="tests/txn/test_replication.py::test_those_before_a_refused_commit_stay",
    ),
    Mutation(
        name="what a replayed transaction wrote to one place has two rows",
        file="hms_bridge/notification/write_log.py",
        within="add_replayed",
        old="known.add(key_of)",
        new="",
        test="tests/txn/test_replication.py::test_commits_together_leave_what_each_alone_leaves",
    ),
    Mutation(
        name="the position of a load is that of a commit before its last",
        file="hms_bridge/service/transactions.py",
        within="_commit_replays",
        old="positions.pop(objects, None)",
        new="",
        test="tests/txn/test_replication.py::test_commits_together_leave_what_each_alone_leaves",
    ),
)
