"""The host of the database is gone without a word: no packet is answered any more. The system would
wait a quarter of an hour for it, or two hours for an answer that it was to send.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hms_bridge.silent_hosts import SILENT_SECONDS
from tests.support.program import process_environment

WAIT_SECONDS = 30
"""For how long a call waits for a database that is known to be gone."""
SLACK_SECONDS = 60
"""A last attempt to connect, and a busy machine; the system's own patience is 900 seconds."""
ROOT = Path(__file__).resolve().parents[2]
ALONE = ["unshare", "--net"]


def _may_have_own_network() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not _may_have_own_network(), reason="no right to a network of its own")
def test_a_call_ends_and_what_comes_after_it_is_answered() -> None:
    run = subprocess.run(
        [*ALONE, sys.executable, "-m", "integration.drivers.cut_network"],
        cwd=ROOT, env=process_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert [one["database"] for one in found] == ["postgresql", "mariadb"]
    for database in found:
        seconds, error = database["asked"]
        assert f"(it was gone for {WAIT_SECONDS} s)" in error, database
        assert seconds < SILENT_SECONDS + WAIT_SECONDS + SLACK_SECONDS, database
        seconds, error = database["asleep"]
        assert error.startswith("DatabaseGoneError: "), database
        assert seconds < 2 * SILENT_SECONDS + SLACK_SECONDS, database
        # What was asked meanwhile did not happen, or as a whole.
        assert database["after"] - database["before"] in (1, 2), database
