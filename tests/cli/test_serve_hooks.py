"""Event hooks of ``hms-bridge serve``: killed and started again, they hear of every event."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.catalog import Database
from tests.support.program import Program, serving
from tests.support.server_processes import let_holds_of_hooks_end

pytestmark = pytest.mark.process

HOOK = '''
import os, time
class Remember:
    """As a hook that sends to another machine, which is not there while a file is."""
    def on_event(self, event):
        if os.path.exists("away"):
            raise ConnectionError("nobody answers")
        with open("heard", "a") as heard:
            heard.write(f"{event.id}\\n")
        time.sleep(0.1)
'''
WORDS = ("--port", "0", "--set", "hms.bridge.event.hooks=remember:Remember")


def heard(folder: Path) -> list[int]:
    path = folder / "heard"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for(folder: Path, last: int) -> None:
    deadline = time.monotonic() + 90
    while last not in heard(folder):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_hook_hears_of_every_event_though_the_server_is_killed(program: Program) -> None:
    (program.folder / "remember.py").write_text(HOOK)
    (program.folder / "away").touch()
    with serving(program, *WORDS) as server:
        with ThriftMetastoreClient(server.wait_until_ready()) as client:
            for number in range(1, 41):
                client.create_database(Database(name=f"d{number}"))
        server.process.kill()
    let_holds_of_hooks_end(program)
    assert heard(program.folder) == []
    (program.folder / "away").unlink()
    with serving(program, *WORDS) as server:
        server.wait_until_ready()
        wait_for(program.folder, 25)
        server.process.kill()
    before = heard(program.folder)
    assert before == list(range(1, len(before) + 1))
    assert len(before) < 40
    let_holds_of_hooks_end(program)
    with serving(program, *WORDS) as server:
        server.wait_until_ready()
        wait_for(program.folder, 40)
    again = heard(program.folder)[len(before) :]
    assert again == list(range(again[0], 41))
    assert 1 < again[0] <= len(before) + 1, "what was stored as heard is not told again"
