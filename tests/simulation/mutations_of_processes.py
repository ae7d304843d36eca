"""Protective lines of servers of several processes; see :mod:`tests.simulation.mutations`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_SERVE = "tests/cli/test_serve_processes.py::"
_SUPERVISOR = "hms_bridge/server/supervisor.py"

OF_PROCESSES = (
    Mutation(
        name="what a process counted is gone with it",
        file="hms_bridge/shared_numbers.py",
        within="shared_numbers",
        old="mmap.mmap(-1, max(1, count) * _BYTES)",
        new="bytearray(max(1, count) * _BYTES)",
        test="tests/metrics/test_call_times.py::test_counts_of_killed_processes_stay_and_go_on",
    ),
    Mutation(
        name="processes live on when the first is gone",
        file=_SUPERVISOR,
        within="Supervisor._be",
        old="os.close(self._life)",
        new="",
        test=f"{_SERVE}test_none_lives_on_without_the_first_process",
    ),
    Mutation(
        name="a stop that is sent to all processes cuts calls off",
        file=_SUPERVISOR,
        within="Life.__init__",
        old="lambda: None",
        new="lambda: os._exit(1)",
        test=f"{_SERVE}test_a_stop_lets_what_began_come_to_its_end",
    ),
    Mutation(
        name="a process that ended is not started again",
        file=_SUPERVISOR,
        within="Supervisor._look_after_all",
        old="now >= kept.due_at",
        new="now < kept.started_at",
        test=f"{_SERVE}test_connections_are_spread_evenly_and_to_who_has_fewest",
    ),
    Mutation(
        name="each process has a database in memory of its own",
        file="hms_bridge/connect.py",
        within="require_shareable",
        old="is_in_memory(url)",
        new="is_in_memory(url) and False",
        test=f"{_SERVE}test_a_database_in_memory_has_one_process",
    ),
    Mutation(
        name="who closes a shared port closes it for all",
        file="hms_bridge/server/door.py",
        within="Door.release",
        old="self._listener.close()",
        new=("self._listener.shutdown(socket.SHUT_RDWR)\nself._listener.close()"),
        test="tests/server/test_door.py::test_a_door_that_closes_leaves_the_port_to_the_others",
    ),
    Mutation(
        name="whoever comes is let in by whoever is quickest",
        file="hms_bridge/server/door.py",
        within="Door._give_way",
        old="entrance.peers.is_another_emptier(entrance.number)",
        new="entrance.peers is None",
        test="tests/server/test_door.py::test_who_has_more_lets_the_other_go_first",
    ),
    Mutation(
        name="each process takes what the limits allow to all",
        file="hms_bridge/server/process_plan.py",
        within="part_of_limits",
        old="whole.messages_memory_bytes_max // processes",
        new="whole.messages_memory_bytes_max",
        test="tests/server/test_process_plan.py::test_limits_of_all_are_those_of_one",
    ),
    Mutation(
        name="client processes write no points for hooks that another process calls",
        file="hms_bridge/service/unit_of_work.py",
        within="Transactions.look_for_hooks",
        old="self._is_heard or self.read(hook_points.has_hooks)",
        new="self._is_heard and self.read(hook_points.has_hooks)",
        test=f"{_SERVE}test_the_background_process_is_followed_by_another",
    ),
    Mutation(
        name="clients wait at a port that a process holds which answers nobody",
        file="hms_bridge/cli/serve_processes.py",
        within="_work_in_background",
        old="entrance.listener.close()",
        new="pass",
        test=f"{_SERVE}test_nobody_waits_at_a_port_behind_which_nobody_answers",
    ),
    Mutation(
        name="tries to fork take the last descriptors of the first process",
        file=_SUPERVISOR,
        within="_no_pipe_left_open",
        old=("with suppress(OSError):\n    os.close(number)"),
        new="pass",
        test="tests/server/test_supervisor.py::"
        "test_a_night_without_room_for_a_process_takes_no_descriptors",
    ),
    Mutation(
        name="a second signal kills whoever has the number of a process that ended",
        file=_SUPERVISOR,
        within="_signal",
        old=("kept.process is not None and kept.process.pid is not None and kept.is_alive"),
        new="kept.process is not None and kept.process.pid is not None",
        test="tests/server/test_supervisor.py::"
        "test_no_signal_goes_to_a_number_that_may_be_another_ones_by_now",
    ),
    Mutation(
        name="a stop is slept over that another thread was interrupted with",
        file="hms_bridge/server/stop_requests.py",
        within="StopRequests.listen",
        old="signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)",
        new="",
        test="tests/server/test_stop_requests.py::"
        "test_a_request_that_another_thread_was_interrupted_with_wakes_the_one_that_waits",
    ),
)
