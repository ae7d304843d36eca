"""Whether the process of a lease has ended: known on its own machine, and never guessed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.session import holding_process
from hms_bridge.session.holding_process import has_ended, with_own_process, without_mark

TELLS = (
    "from hms_bridge.session.holding_process import with_own_process\n"
    "print(with_own_process('repl run'), flush=True); input()"
)


@pytest.fixture
def holder() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and what it writes into its lock."""
    with subprocess.Popen(
        [sys.executable, "-c", TELLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_one_that_lives_has_not_ended(holder: tuple[subprocess.Popen[str], str]) -> None:
    assert not has_ended(holder[1])
    assert not has_ended(with_own_process("repl run"))


def test_one_that_was_killed_has_ended_before_and_after_its_parent_asked_for_it(
    holder: tuple[subprocess.Popen[str], str],
) -> None:
    process, agent = holder
    process.kill()
    while not has_ended(agent):  # the kernel ends it in its own time, and it stays a zombie
        assert process.returncode is None
    process.wait()
    assert has_ended(agent)


def test_an_id_that_was_given_again_is_another_process() -> None:
    own = with_own_process("repl run")
    assert has_ended(re.sub(r":\d+\]", ":1]", own))


def test_of_another_machine_and_of_what_is_not_marked_nobody_knows(
    holder: tuple[subprocess.Popen[str], str],
) -> None:
    process, agent = holder
    process.kill()
    process.wait()
    assert not has_ended(re.sub(r"\[.{12}:", "[0123456789ab:", agent))
    assert not has_ended(without_mark(agent))
    assert not has_ended(None)
    assert not has_ended("Spark 3.5, driver, process none")


def test_where_processes_have_other_numbers_than_their_system_tells_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a space of process ids of its own with the /proc of another one, whose process of that
    number may end at any time."""
    own, proc = with_own_process("repl run"), Path("/proc")
    (tmp_path / "sys").symlink_to(proc / "sys")
    (tmp_path / str(os.getppid())).symlink_to(proc / "self")
    (tmp_path / "self").symlink_to(str(os.getppid()))
    (tmp_path / str(os.getpid())).mkdir()
    (tmp_path / str(os.getpid()) / "stat").write_text((proc / "1/stat").read_text())
    monkeypatch.setattr(holding_process, "_PROC", tmp_path)

    assert not has_ended(own)
    assert re.fullmatch(r"repl run, process \d+", with_own_process("repl run"))


def test_people_see_the_process_alone() -> None:
    assert re.fullmatch(r"repl run, process \d+", without_mark(with_own_process("repl run")))
