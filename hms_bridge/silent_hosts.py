"""When a host at the other end of a connection counts as gone: one that does not even confirm that
packets came has lost its power, or the way to it is cut. Linux would send them again for a quarter
of an hour, and wait two hours for an answer to what was confirmed. A host that is there is waited
for, however long its answer takes.
"""

from __future__ import annotations

import socket

SILENT_SECONDS = 15
_PROBES = 3


def patience(silent_seconds: int = SILENT_SECONDS) -> tuple[tuple[str, str, int], ...]:
    """What libpq calls it, what a socket does, and how much of it: while something is sent, and
    while an answer is waited for."""
    probe_seconds = max(1, silent_seconds // _PROBES)
    return (
        ("tcp_user_timeout", "TCP_USER_TIMEOUT", silent_seconds * 1000),
        ("keepalives_idle", "TCP_KEEPIDLE", probe_seconds),
        ("keepalives_interval", "TCP_KEEPINTVL", probe_seconds),
        ("keepalives_count", "TCP_KEEPCNT", _PROBES),
    )


def give_up_silent_host(
    connection: socket.socket, silent_seconds: int = SILENT_SECONDS, *, while_sending: bool = True
) -> None:
    """Not ``while_sending`` to who may take its time to read: one that has no room for what is sent
    is given up like one that is silent."""
    if connection.family == getattr(socket, "AF_UNIX", None):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for _, name, value in patience(silent_seconds):
        is_wanted = while_sending or name != "TCP_USER_TIMEOUT"
        if is_wanted and hasattr(socket, name):  # not on every system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
