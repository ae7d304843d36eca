"""A server that starts before its database."""

from __future__ import annotations

import logging
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_bridge.backend import engine
from hms_bridge.connect import await_database
from hms_bridge.errors import BackendError, DatabaseAbsentError
from tests.support.databases import ON_A_SERVER, SERVER_URL
from tests.support.mysql_greeting import refusal
from tests.support.program import Program, command, process_environment
from tests.support.simulated_clock import SimulatedClock

WAIT_MS = 300_000
SCHEMES = pytest.mark.parametrize("scheme", ["postgresql", "mysql"])


class Watched(SimulatedClock):
    """Which counts the naps of whoever waits, and does something at the third."""

    def __init__(self, at_third: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.naps = 0
        self._at_third = at_third

    def sleep_seconds(self, seconds: float) -> None:
        super().sleep_seconds(seconds)
        self.naps += 1
        if self.naps == 3:
            self._at_third()


def refuse_as_mysql(port: int, *codes: int) -> None:
    """From now on: whoever connects hears that he may not, as a server begins it."""
    listener = socket.create_server(("127.0.0.1", port))

    def refuse() -> None:
        with listener:
            for code in codes:
                with listener.accept()[0] as client:
                    client.sendall(refusal(code))

    threading.Thread(target=refuse, daemon=True).start()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@SCHEMES
def test_it_gives_up_after_a_time_and_says_before_for_what_it_waits(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Watched()
    with caplog.at_level(logging.WARNING), pytest.raises(DatabaseAbsentError, match="waited for"):
        await_database(f"{scheme}://u:secret@127.0.0.1:{free_port()}/d", WAIT_MS, clock)
    assert clock.naps == WAIT_MS / 2_000
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == WAIT_MS / 30_000
    assert all("127.0.0.1" in line and "secret" not in line for line in said)


def test_files_and_other_metastores_are_not_waited_for() -> None:
    clock = Watched()
    for url in ("sqlite:////no/such/folder/m.db", f"thrift://127.0.0.1:{free_port()}"):
        await_database(url, WAIT_MS, clock)
    assert clock.naps == 0


def test_it_goes_on_once_somebody_answers() -> None:
    """With what is answered: a refusal is no matter of time."""
    port = free_port()
    clock = Watched(lambda: refuse_as_mysql(port, 1045))
    with pytest.raises(BackendError, match="no entry"):
        await_database(f"mysql://u:p@127.0.0.1:{port}/d", WAIT_MS, clock)
    assert clock.naps == 3


def test_one_that_gives_no_connection_is_asked_again_as_by_every_verb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The programs that have the others may end, as the server before this one does."""
    monkeypatch.setattr(engine, "REFUSED_SECONDS", 0.0)
    port, clock = free_port(), Watched()
    refuse_as_mysql(port, 1040, 1040, 1045)
    with pytest.raises(BackendError, match="1045"):
        await_database(f"mysql://u:p@127.0.0.1:{port}/d", WAIT_MS, clock)
    assert clock.naps == 2


@pytest.mark.parametrize(
    "words", [("serve", "--port", "0"), ("repl", "run", "--all", "--every", "10m")]
)
def test_what_lasts_waits_for_its_database(words: tuple[str, ...], tmp_path: Path) -> None:
    url = f"mysql://u:p@127.0.0.1:{free_port()}/d"
    wait = ("--set", "hms.bridge.database.start.wait=1s")
    refused = Program(tmp_path).run(*words, "--metastore", url, *wait)
    assert refused.exit_code == 1
    assert "(waited for 1 s)" in refused.err


@pytest.mark.process
def test_it_is_stopped_as_by_ctrl_c(tmp_path: Path) -> None:
    """The system spares a container's first process any signal that it does not listen to."""
    url = f"mysql://u:p@127.0.0.1:{free_port()}/d"
    process = subprocess.Popen(
        [*command(), "serve", "--port", "0", "--metastore", url],
        cwd=tmp_path,
        env=process_environment(Program(tmp_path).environment),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert "not there yet" in process.stderr.readline()
        process.terminate()
        said = process.stderr.read()
        assert (process.wait(60), said.splitlines()[-1]) == (1, "stopped")


@ON_A_SERVER
def test_one_that_answers_is_not_waited_for() -> None:
    assert SERVER_URL is not None
    clock = Watched()
    await_database(SERVER_URL, WAIT_MS, clock)
    assert clock.naps == 0


@ON_A_SERVER
def test_what_a_server_refuses_is_no_matter_of_time() -> None:
    assert SERVER_URL is not None
    clock = Watched()
    with pytest.raises(BackendError, match="no_such_database"):
        await_database(SERVER_URL.rpartition("/")[0] + "/no_such_database", WAIT_MS, clock)
    assert clock.naps == 0
