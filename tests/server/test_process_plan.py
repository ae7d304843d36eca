"""What each of several processes gets, and when one is started again."""

from __future__ import annotations

from hms_bridge.config.settings import ServerSettings
from hms_bridge.server.process_plan import part_of_limits, part_of_pool, restart_after


def test_limits_of_all_are_those_of_one() -> None:
    whole = ServerSettings(connections_max=1000, messages_memory_bytes_max=2**31)
    for processes in (1, 2, 3, 7, 64):
        part = part_of_limits(whole, processes)
        assert 1000 <= part.connections_max * processes < 1000 + processes
        assert 2**31 - processes < part.messages_memory_bytes_max * processes <= 2**31
        assert part.message_size_bytes_max == whole.message_size_bytes_max
    assert part_of_limits(whole, 1) == whole


def test_each_keeps_some_connections_to_the_database() -> None:
    assert [part_of_pool(16, processes) for processes in (1, 2, 3, 4, 64)] == [16, 8, 6, 4, 4]


def test_who_keeps_ending_is_started_less_and_less_often() -> None:
    failures, waits = 0, []
    for _ in range(9):
        restart = restart_after(failures, lived_seconds=1)
        failures = restart.failures
        waits.append(restart.wait_seconds)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert restart_after(failures, lived_seconds=3600).wait_seconds == 0.5
    assert restart_after(10**6, lived_seconds=0).wait_seconds == 30
