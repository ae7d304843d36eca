"""Mutations of waits: each has an end, and nobody is kept out by what nobody uses; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_KEPT = "tests/backend/test_kept_connections.py::"
_SILENT = "tests/client/test_silent_hosts.py::"
_CALLER = "hms_bridge/client/caller.py"
_CROWDS = "tests/server/test_idle_crowds.py::"
_PLACES = "hms_bridge/server/places.py"
_KEPT_FILE = "hms_bridge/backend/kept_connections.py"

OF_WAITS = (
    Mutation(
        name="an idle connection of another level makes no room",
        file=_KEPT_FILE,
        within="KeptConnections._reserve",
        old=("if self._idle_count:\n    ..."),
        new=("if False:\n    ..."),
        test=_KEPT + "test_an_idle_one_of_another_level_makes_room",
    ),
    Mutation(
        name="who waits for a connection is not woken by one that is given back",
        file=_KEPT_FILE,
        within="KeptConnections.give",
        old="self._changed.notify()",
        new="",
        test=_KEPT + "test_who_finds_all_in_use_gets_the_first_that_is_given_back",
    ),
    Mutation(
        name="a connection that the database refused is asked for again at once",
        file=_KEPT_FILE,
        within="KeptConnections._most",
        old="self._granted is not None and time.monotonic() >= self._granted[1]",
        new="self._granted is not None",
        test=_KEPT + "test_a_refusal_holds_for_a_while_and_one_that_is_there_will_do",
    ),
    Mutation(
        name="a connection that nobody uses stays open",
        file=_KEPT_FILE,
        within="KeptConnections._close_unused",
        old="until",
        new="0",
        test=_KEPT + "test_one_that_nobody_uses_is_closed",
    ),
    Mutation(
        name="a metastore whose host is gone without a word is waited for",
        file=_CALLER,
        within="Caller._introduce",
        old="give_up_silent_host(opened, self._settings.silent_seconds)",
        new="",
        test=_SILENT + "test_a_host_that_is_gone_without_a_word_ends_its_calls",
    ),
    Mutation(
        name="a call that was sent is said not to be, as nobody is there any more",
        file=_CALLER,
        within="Caller.call",
        old="is_last and sent is None",
        new="is_last",
        test=_SILENT + "test_a_call_that_was_sent_once_is_never_said_not_to_be",
    ),
    Mutation(
        name="a metastore that stands still is waited for once more at each attempt",
        file=_CALLER,
        within="Caller.call",
        old="is_last or sent.is_slow or (not is_repeatable)",
        new="is_last or not is_repeatable",
        test=_SILENT + "test_a_metastore_that_stands_still_on_a_living_host_is_named",
    ),
    Mutation(
        name="a lock is waited for without an end",
        file="hms_bridge/backend/retry.py",
        within="_again.is_enough",
        old="isinstance(error, LockWaitError) and lock_waits.are_over(error)",
        new="False",
        test="tests/backend/test_engine.py::TestRetry::test_a_lock_is_not_waited_for_longer",
    ),
    Mutation(
        name="connections that never sent a call keep their places",
        file=_PLACES,
        within="Places._end_silent",
        old="place.turns.end_if_silent()",
        new="False",
        test=_CROWDS + "test_the_oldest_without_a_call_goes_and_nobody_who_made_one",
    ),
    Mutation(
        name="a client that made a call goes like one that never did",
        file="hms_bridge/server/turns.py",
        within="Turns.work",
        old="self._is_silent = False",
        new="",
        test=_CROWDS + "test_the_oldest_without_a_call_goes_and_nobody_who_made_one",
    ),
    Mutation(
        name="a host may have all connections though others want some",
        file=_PLACES,
        within="Places._end_of_large_host",
        old="largest == host or count <= max(of_host, self._of_one_host_max)",
        new="True",
        test=_CROWDS + "test_a_host_with_more_than_its_part_makes_room_for_others",
    ),
    Mutation(
        name="a host that has no more than its part makes room for others",
        file=_PLACES,
        within="Places._end_of_large_host",
        old="max(of_host, self._of_one_host_max)",
        new="of_host",
        test=_CROWDS + "test_a_host_with_more_than_its_part_makes_room_for_others",
    ),
    Mutation(
        name="a refused client does not hear why",
        file="hms_bridge/server/serve.py",
        within="MetastoreServer._refuse",
        old="client.send(refusal_of_connection(why), socket.MSG_DONTWAIT)",
        new="pass",
        test=_CROWDS + "test_a_refused_client_says_why",
    ),
)
