"""The wheel is the product: in an environment with nothing else, the demo runs without a clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from integration.referees.processes import Workplace

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = (
    "hms_bridge", "cleaner", "changemanager", "scripts", "jvm",
    "pyproject.toml", "README.md", "LICENSE",
)  # fmt: skip


def run(folder: Path, *command: str | Path) -> str:
    """Output of a program that knows nothing of the checkout; it must end well."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME"}
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_sources(target: Path) -> Path:
    """What the wheel is made of; a build beside the checkout's own would take up its old files."""
    target.mkdir()
    for name in SOURCES:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return target


def write_constraints(target: Path) -> Path:
    """The locked versions, for what the wheel asks for itself; constraints have no extras."""
    lock = (CHECKOUT / "requirements.lock").read_text()
    pinned = re.findall(r"^(\w[^\[=]*)(?:\[[^\]]*\])?(==[^\\]*)", lock, re.MULTILINE)
    target.write_text("\n".join(name + version for name, version in pinned) + "\n")
    return target


def test_the_demo_runs_from_an_installed_wheel(workplace: Workplace) -> None:
    folder = workplace.folder("wheel")
    sources = copy_sources(folder / "sources")
    run(folder, sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, sources)
    (wheel,) = folder.glob("hms_bridge-*.whl")
    run(folder, sys.executable, "-m", "venv", folder / "environment")
    programs = folder / "environment" / "bin"
    constraints = write_constraints(folder / "constraints.txt")
    run(folder, programs / "pip", "install", "--constraint", constraints, wheel)
    said = run(folder, programs / "hms-bridge", "demo", "--work", folder / "demo")
    assert said.rstrip().endswith("PASS")
    assert "WRONG" not in said
