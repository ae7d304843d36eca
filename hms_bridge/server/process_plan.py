"""What each of a server's processes gets, and when one that ended is started again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hms_bridge.config.settings import ServerSettings

_POOL_SIZE_MIN = 4
_FIRST_WAIT_SECONDS = 0.5
_WAIT_SECONDS_MAX = 30.0
_PROVEN_SECONDS = 60.0
"""Who lived for so long ended for a new reason."""


def part_of_limits(whole: ServerSettings, processes: int) -> ServerSettings:
    """The limits of one process of several: what a server may take, all of them take together.

    Not exactly: connections are divided upwards, so that a thousand of three are 334 each.
    """
    of_host = whole.host_connections_max
    return replace(
        whole,
        connections_max=-(-whole.connections_max // processes),
        host_connections_max=of_host and -(-of_host // processes),
        messages_memory_bytes_max=whole.messages_memory_bytes_max // processes,
    )


def part_of_pool(whole: int, processes: int) -> int:
    """How many of the connections to the database that one process would keep each of several
    does: together about as many, as databases count them, but some for each."""
    return max(_POOL_SIZE_MIN, -(-whole // processes))


@dataclass(frozen=True, slots=True)
class Restart:
    """How a process that has ended is started again: ``failures`` times in a row it ended young."""

    failures: int
    wait_seconds: float


def restart_after(failures_before: int, lived_seconds: float) -> Restart:
    """Waits double while a process keeps ending: for a database that is gone, hundreds of starts a
    minute help nobody. There is no last attempt: a database may be gone for a night."""
    failures = 1 if lived_seconds >= _PROVEN_SECONDS else failures_before + 1
    wait_seconds = min(_FIRST_WAIT_SECONDS * 2.0 ** min(failures - 1, 30), _WAIT_SECONDS_MAX)
    return Restart(failures, wait_seconds)
