"""The processes of a running `hms-bridge serve --processes`."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hms_bridge.notification.hook_positions import HOLD_MS
from tests.support.program import Program, Server

_THERE = re.compile(r"(the background process|client process \d+) is there, as process (\d+)")


def processes(server: Server) -> dict[str, int]:
    """The number of each, by its name; the newest that the server told of."""
    return {found[1]: int(found[2]) for line in server.lines if (found := _THERE.search(line))}


def clients_of(server: Server) -> list[int]:
    """The numbers of those that answer clients, in the order of their names."""
    found = sorted(processes(server).items())
    return [number for name, number in found if name.startswith("client")]


def background_of(server: Server) -> int:
    return processes(server)["the background process"]


def sockets(process: int) -> int:
    """How many sockets a process has open."""
    links = Path(f"/proc/{process}/fd").iterdir()
    return sum(str(link.readlink()).startswith("socket:") for link in links)


def is_running(process: int) -> bool:
    """A process that ended and was not waited for by its parent does not run."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(is_so: Callable[[], object], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def let_holds_of_hooks_end(program: Program) -> None:
    """As if the time had passed for which a killed process that told hooks is waited for."""
    with closing(sqlite3.connect(program.folder / "metastore.db", timeout=60)) as raw, raw:
        held = raw.execute(
            "UPDATE HMSB_EVENT_HOOK SET HELD_AT_MS = HELD_AT_MS - ? WHERE OWNER IS NOT NULL",
            (HOLD_MS,),
        )
        assert held.rowcount == 1, "nobody was waited for"
