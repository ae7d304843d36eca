"""Which Python `make setup` takes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.golden import CHECKOUT

SCRIPT = CHECKOUT / "scripts" / "setup.sh"


def _fake(folder: Path, name: str, microseconds: int) -> Path:
    """A Python that says how long it took for a program."""
    program = folder / name
    program.write_text(f'#!/bin/sh\n[ "$1" != - ] || echo {microseconds}\n')
    program.chmod(0o755)
    return program


def test_a_python_that_is_not_there_is_told_and_nothing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/setup.sh", "requirements.lock", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    installed = tmp_path / ".venv" / "installed.sha256"
    installed.parent.mkdir()
    installed.write_text("of an earlier version")
    run = subprocess.run(
        ["bash", "scripts/setup.sh"], cwd=tmp_path, env=os.environ | {"PYTHON": "/not/there"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert "none here: /not/there" in run.stderr
    assert "set PYTHON=" in run.stderr
    assert installed.read_text() == "of an earlier version"


@pytest.mark.parametrize(
    ("first", "own", "taken"), [(150, 100, "own"), (100, 81, "first"), (100, 150, "first")]
)
def test_the_systems_own_python_is_taken_where_it_is_faster_by_a_fifth(
    tmp_path: Path, first: int, own: int, taken: str
) -> None:
    _fake(tmp_path, "python3", first)
    systems_own = _fake(tmp_path, "own", own)
    functions = SCRIPT.read_text().partition("\nstamp=")[0]
    assert "own=/usr/bin/python3" in functions
    functions = functions.replace("own=/usr/bin/python3", f"own={systems_own}")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    run = subprocess.run(
        ["bash", "-c", f"{functions.replace('cd ', ': ', 1)}\nfind_python"],
        env=environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == {"own": str(systems_own), "first": "python3"}[taken]
