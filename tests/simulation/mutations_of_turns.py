"""Protective lines of verbs that share a transaction; see :mod:`tests.simulation.mutations`.

Not here: how long a batch waits for a row, because on SQLite none does
(`test_a_row_that_is_held_for_long_holds_up_its_own_verb_only` runs on servers); and which commits
are done at once, and asked for in one message, which only PostgreSQL does: there
`test_a_refusal_with_a_trace_leaves_it` and
`test_commits_that_are_no_commits_leave_those_of_others_alone` die with the conditions of
`plain_commits.py` and `ask_commits`, and the tests of `test_pipeline.py` with its lines. That steps
go in the order of what they lock is seen here as the order of their events. That locks which come
together may be in each other's way is looked at for all at once on PostgreSQL only, too:
`test_locks_that_come_together_are_granted_as_those_that_come_one_by_one` dies with that there. So
do `test_as_expected.py`, `test_locks_as_expected.py` and `test_write_ids_as_expected.py` in
`tests/service` there, if what is sent as expected is not held to it.
"""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_QUEUE = "tests/service/test_shared_turns.py::"
_SHARED = "tests/service/test_shared_writes.py::"
_GATHERED = "tests/service/test_gathering.py::"
_CROWD = "tests/server/test_crowd.py::"
_TROUBLES = "tests/server/test_troubles_of_a_crowd.py::"

OF_TURNS = (
    Mutation(
        name="write ids that are given together are logged in another order than they have",
        file="hms_bridge/service/transactions.py",
        within="_ask_for_all.look",
        old="pair.write_id",
        new="-pair.write_id",
        test=f"{_SHARED}test_write_ids_of_one_table_are_given_at_once",
    ),
    Mutation(
        name="who waits for his turn is answered before it is over",
        file="hms_bridge/service/shared_turns.py",
        within="SharedTurns._take",
        old=("if not place.leads and (not self._is_called(place)):\n    return False"),
        new=("if not place.leads:\n    return True"),
        test=f"{_QUEUE}test_nobody_returns_before_the_work_is_over",
    ),
    Mutation(
        name="where the one who does the work of all fails, nobody does any more",
        file="hms_bridge/service/shared_turns.py",
        within="SharedTurns._lead",
        old=(
            "try:\n"
            "    self._do(works)\n"
            "finally:\n"
            "    self._call_next()\n"
            "    _call_one_by_one(others)"
        ),
        new=(
            "try:\n"
            "    self._do(works)\n"
            "except Exception:\n"
            "    raise\n"
            "else:\n"
            "    self._call_next()\n"
            "    _call_one_by_one(others)"
        ),
        test=f"{_QUEUE}test_what_is_raised_is_heard_by_the_one_who_did_it_and_the_others_go_on",
    ),
    Mutation(
        name="what a refused verb did is committed with the others",
        file="hms_bridge/service/shared_writes.py",
        within="_Batch._run_each",
        old="parts.undo()",
        new="pass",
        test=f"{_SHARED}test_one_that_is_refused_undoes_itself_and_nothing_else",
    ),
    Mutation(
        name="what a verb with a fault did is committed with the others",
        file="hms_bridge/service/shared_writes.py",
        within="_Batch.run",
        old=(
            "try:\n"
            "    ...\n"
            "except (BackendError, DatabaseFailure, _UnsafeError):\n"
            "    raise\n"
            "except Exception as error:\n"
            "    raise _UnsafeError(Way.CAREFULLY) from error"
        ),
        new=(
            "try:\n"
            "    ...\n"
            "except (BackendError, DatabaseFailure, _UnsafeError):\n"
            "    raise\n"
            "except KeyError:\n"
            "    self.kept += self._steps[:1]\n"
            "except Exception as error:\n"
            "    raise _UnsafeError(Way.CAREFULLY) from error"
        ),
        test=f"{_SHARED}test_a_fault_of_one_is_its_own",
    ),
    Mutation(
        name="a refusal is told although what it rests on did not happen",
        file="hms_bridge/service/shared_writes.py",
        within="_Batch._run_each",
        old="self.refused.append((step, error))",
        new="step.refusal = error",
        test=f"{_SHARED}test_a_refusal_that_rests_on_what_did_not_happen_is_not_told",
    ),
    Mutation(
        name="verbs whose common commit may have happened are tried again",
        file="hms_bridge/service/shared_writes.py",
        within="SharedWrites._commit",
        old=("for step in batch.kept:\n    ..."),
        new="",
        test=f"{_SHARED}test_a_commit_whose_answer_is_lost_is_told_to_all_and_never_tried_again",
    ),
    Mutation(
        name="what was not as expected is expected again",
        file="hms_bridge/txn/foresight.py",
        within="Foresight.fail",
        old="self._open.clear()",
        new="pass",
        test="tests/txn/test_foresight.py::test_after_a_failure_nothing_is_known_of_what_is_open",
    ),
    Mutation(
        name="verbs of a batch lock what all need in any order",
        file="hms_bridge/service/shared_writes.py",
        within="SharedWrites._do",
        old="sorted(steps, key=_order)",
        new="steps",
        test=f"{_SHARED}test_what_comes_at_the_same_time_shares_one_commit",
    ),
    Mutation(
        name="hooks inside of transactions hold up and undo the verbs of others",
        file="hms_bridge/service/unit_of_work.py",
        within="Transactions.__init__",
        old="shares_turns and (not has_inner_hooks)",
        new="shares_turns",
        test=f"{_SHARED}test_where_hooks_stand_inside_every_verb_has_a_transaction_of_its_own",
    ),
    Mutation(
        name="Ctrl-C leaves others to wait for a turn that never comes",
        file="hms_bridge/service/shared_writes.py",
        within="SharedWrites.takes_this_thread",
        old="threading.current_thread() is not threading.main_thread()",
        new="True",
        test=f"{_SHARED}test_the_main_thread_shares_nothing",
    ),
    Mutation(
        name="a call that has committed something is made again from its start",
        file="hms_bridge/service/shared_writes.py",
        within="SharedWrites.run",
        old=("if step.is_done:\n    ..."),
        new="",
        test=f"{_GATHERED}test_who_is_done_goes_on_here_with_what_shares_nothing",
    ),
    Mutation(
        name="a call whose commit may have happened is made again from its start",
        file="hms_bridge/service/shared_writes.py",
        within="SharedWrites.run",
        old=("stay_in_gathering()\nraise"),
        new="raise",
        test=f"{_GATHERED}test_a_commit_whose_answer_is_lost_is_answered_and_never_made_again",
    ),
    Mutation(
        name="a seat keeps the client of its last call",
        file="hms_bridge/gathering.py",
        within="_Seat._make_each",
        old="del call",
        new="",
        test=f"{_GATHERED}test_no_client_is_kept_beyond_its_call",
    ),
    Mutation(
        name="what waits for the database alone holds up the calls of a whole crowd",
        file="hms_bridge/backend/retry.py",
        within="run_in_transaction",
        old="leave_gathering()",
        new="",
        test=f"{_GATHERED}test_what_shares_nothing_leaves_before_it_has_done_anything",
    ),
    Mutation(
        name="who joins the crowd forgets what its own thread has read already",
        file="hms_bridge/server/dispatch.py",
        within="Dispatcher.serve",
        old=("crowd is not None and guest.calls_to_join <= 0 and (not stream.has_rest)"),
        new="crowd is not None and guest.calls_to_join <= 0",
        test=f"{_CROWD}test_several_messages_of_one_segment_are_answered_in_their_order",
    ),
    Mutation(
        name="a message of a crowd that was answered is answered again",
        file="hms_bridge/server/crowd.py",
        within="Crowd._serve",
        old="stream.settle()",
        new="",
        test=f"{_CROWD}test_several_messages_of_one_segment_are_answered_in_their_order",
    ),
    Mutation(
        name="half a message that the crowd has read is lost to its own thread",
        file="hms_bridge/server/crowd.py",
        within="Crowd._release",
        old="guest.stream.rewind()",
        new="",
        test=f"{_CROWD}test_half_a_message_holds_nobody_up",
    ),
    Mutation(
        name="a client that takes no answers holds up a whole crowd",
        file="hms_bridge/wire/messages.py",
        within="MessageStream.arrive",
        old="self._limit_wait()",
        new="",
        test=f"{_CROWD}test_who_takes_no_answers_holds_nobody_up",
    ),
    Mutation(
        name="a crowd whose thread is held up holds up who waits for nothing",
        file="hms_bridge/server/crowd.py",
        within="Crowd._watch",
        old=("if self._is_stuck:\n    ..."),
        new="",
        test=f"{_TROUBLES}test_a_crowd_that_is_held_up_lets_go_who_waits_for_nothing",
    ),
)
