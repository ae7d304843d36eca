"""A server whose Spark ends: what is queued is compacted all the same."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.busy_metastore import copy_golden
from tests.support.program import Program, serving

pytestmark = [pytest.mark.process, pytest.mark.golden]

MINUTES = 300
STAGE = "g02_iud/01-before-minor"
ON_SPARK = "hms.bridge.compactor.local.bytes=0"


def _children(pid: int) -> Iterator[tuple[int, str]]:
    """Processes below one, with the names of their programs."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            match = re.fullmatch(r"(\d+) \((.*)\) \S (\d+) .*", stat.read_text().strip())
        except OSError:
            continue
        if match and int(match[3]) == pid:
            yield int(match[1]), match[2]


@pytest.mark.timeout(2 * MINUTES)
def test_a_server_whose_java_was_killed_starts_another(program: Program) -> None:
    """Else it failed all that is queued, until somebody started it again."""
    with serving(program, "--port", "0", "--worker", "--set", ON_SPARK) as server:
        remote = ("--metastore", server.wait_until_ready(MINUTES))
        for name in ("before", "after"):
            directory = copy_golden(STAGE, program.warehouse / "sales.db" / name)
            program.ok("table", "adopt", str(directory), "--name", f"sales.{name}", *remote)
            done = program.start(
                "compact", f"sales.{name}", "major", "--wait", *remote, "--format", "json",
                seconds=MINUTES,
            )  # fmt: skip
            assert done.exit_code == 0, (done.err, server.lines)
            assert done.json["state"] == "ready for cleaning"
            (java,) = [pid for pid, what in _children(server.process.pid) if what == "java"]
            if name == "before":
                os.kill(java, signal.SIGKILL)
        assert server.stop(signal.SIGTERM) == 0
    assert list(directory.glob("base_*"))
