"""The owners of the cleaners' leases: which process on which host, so that its death is seen."""

from __future__ import annotations

import os
import socket
from uuid import uuid4

from hms_bridge.compaction.dead_workers import is_other_process_alive

_LENGTH_MAX = 64


def new_owner() -> str:
    """A text that nobody else has: `<random>:<process>:<host>`, the host's name cut if need be."""
    return f"{uuid4().hex}:{os.getpid()}:{socket.gethostname()}"[:_LENGTH_MAX]


def is_dead(owner: str) -> bool:
    """Whether it was a process of this host that is not there any more.

    Where two hosts have one name this may be wrong, which is harmless: who lost its lease stops.
    """
    _, process, host = [*owner.split(":", 2), "", ""][:3]
    if not process.isdecimal() or not host or not socket.gethostname().startswith(host):
        return False
    return int(process) != os.getpid() and not is_other_process_alive(int(process))
