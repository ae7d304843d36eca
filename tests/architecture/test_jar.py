"""The jar is of the sources that are there, and small enough to be read."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.sources import ROOT

LINES_MAX = 300


def test_it_is_of_these_sources() -> None:
    check = "import build_jar, sys; sys.exit(not build_jar.is_current())"
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT / "scripts", check=False)
    assert done.returncode == 0, "make setup compiles it"


def test_files_stay_short() -> None:
    sources = sorted((ROOT / "jvm").rglob("*.java"))
    assert sources
    assert [path.name for path in sources if len(path.read_text().splitlines()) > LINES_MAX] == []
