"""Ends all that a program has started, also in sessions of their own, where it has gone already."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_PASSES_MAX = 10
"""What is looked for again may start others all the time."""


def kill_marked(mark: str) -> None:
    """Those whose environment has ``mark`` (``NAME=VALUE``), which they have from who started
    them, as far as this process may look at them; on Linux only."""
    killed: set[str] = set()
    for _ in range(_PASSES_MAX):
        marked = {number for number in _numbers() - killed if _is_killed(number, mark.encode())}
        if not marked:
            return
        killed |= marked


def _numbers() -> set[str]:
    with suppress(OSError):
        return {entry.name for entry in _PROCESSES.iterdir() if entry.name.isdigit()}
    return set()


def _is_killed(number: str, mark: bytes) -> bool:
    if sys.platform != "linux":
        return False
    with suppress(OSError):  # it has ended, is another user's, or the kernel is older than 5.3
        process = os.pidfd_open(int(number))
        try:
            # After it was opened: else its number may be another process's by the time of the kill.
            if mark in (_PROCESSES / number / "environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                return True
        finally:
            os.close(process)
    return False
