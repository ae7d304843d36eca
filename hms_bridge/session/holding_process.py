"""Which process holds a lease: written into its lock, so that another process of the same machine
can know at once that it has ended, and need not wait for its silence.

A process id says nothing elsewhere, nor in another container of the machine, and is given again.
So beside it stand which machine it is (of one boot, and one space of process ids) and when the
process began. Where a system does not say that, as outside of Linux, or where ``/proc`` is of
another space of process ids than the process itself, nobody knows, and waits.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

_PROC = Path("/proc")
_MARK = re.compile(r", process (?P<pid>\d+)(?: \[(?P<machine>[0-9a-f]{12}):(?P<began>\d+)\])?")
_AFTER_NAME = re.compile(r".*\) (?P<state>\S)(?: \S+){18} (?P<began>\d+) ", re.DOTALL)
_ENDED_STATES = frozenset("ZX")


def with_own_process(agent: str) -> str:
    """What an agent is called whose lock this process holds."""
    pid, machine, own = os.getpid(), _machine(), _state(os.getpid())
    mark = "" if machine is None or own is None else f" [{machine}:{own[1]}]"
    return f"{agent}, process {pid}{mark}"


def has_ended(agent: str | None) -> bool:
    """Whether the process that an agent names was one of this machine, and is there no more. False
    where nobody can know."""
    match = _MARK.search(agent or "")
    if match is None or match["machine"] is None or match["machine"] != _machine():
        return False
    pid = int(match["pid"])
    try:
        os.kill(pid, 0)  # signal 0 is none: it only looks
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it is there, and another user's
    state = _state(pid)
    return state is not None and (state[0] in _ENDED_STATES or state[1] != match["began"])


def without_mark(agent: str) -> str:
    """An agent's name for people."""
    return _MARK.sub(r", process \g<pid>", agent)


def _machine() -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text()
        space = (_PROC / "self/ns/pid").readlink()
        own_number = (_PROC / "self").readlink()
    except OSError:
        return None
    if str(own_number) != str(os.getpid()):
        return None  # as after 'unshare --pid' alone: there the number is another process's
    return hashlib.sha256(f"{boot.strip()} {space}".encode()).hexdigest()[:12]


def _state(pid: int) -> tuple[str, str] | None:
    """Of a process: its state as one letter, and when it began; None if nobody says."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    match = _AFTER_NAME.match(text)
    return None if match is None else (match["state"], match["began"])
