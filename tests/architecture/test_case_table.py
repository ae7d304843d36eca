"""The tables of integration/README.md are what the cases say. Held here and not beside the cases:
whoever adds one sees it before hours of them run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration.systems import SYSTEMS

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.process
def test_every_system_has_a_case() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "integration.case_table"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    readme = (CHECKOUT / "integration" / "README.md").read_text()
    rows = {
        line.split("|")[3].strip(" `"): line
        for line in readme.splitlines()
        if line.startswith("| ")
    }
    without = [
        system.name for system in SYSTEMS if rows[system.fixture].split("|")[5].strip() == "0"
    ]
    assert without == []
