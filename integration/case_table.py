"""The tables of the README: systems with their cases, and settings. `--write` renews them.

A case counts for every system whose fixture it names; cases marked as expected failures are counted
apart.
"""

from __future__ import annotations

import collections
import contextlib
import io
import sys
from pathlib import Path

import pytest

from integration.referees.hive42_departures import departures_table
from integration.systems import SYSTEMS

HERE = Path(__file__).parent
README = HERE / "README.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
SETTINGS_BEGIN, SETTINGS_END = "<!-- settings: begin -->\n", "<!-- settings: end -->\n"
OTHER = "the harness itself"


class Counter:
    """A plug-in that counts the collected cases of each system."""

    def __init__(self) -> None:
        self.cases: collections.Counter[str] = collections.Counter()
        self.waiting: collections.Counter[str] = collections.Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            names = [
                system.fixture for system in SYSTEMS if item.get_closest_marker(system.fixture)
            ]
            counted = self.waiting if item.get_closest_marker("xfail") else self.cases
            counted.update(names or [OTHER])


def count() -> Counter:
    """Collect all cases, in this process, without running any."""
    counter = Counter()
    arguments = ["-c", str(HERE / "pytest.ini"), str(HERE / "cases"), "--collect-only", "-q"]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main(arguments, plugins=[counter])
    if status != pytest.ExitCode.OK:
        raise SystemExit("the cases cannot be collected: run pytest on them to see why")
    return counter


def table(counter: Counter) -> str:
    """The table as it stands in the README."""
    lines = [
        "| system | version | marker | what is compared | cases | waiting |",
        "|---|---|---|---|---|---|",
    ]
    for system in SYSTEMS:
        numbers = f"{counter.cases[system.fixture]} | {counter.waiting[system.fixture]}"
        lines.append(
            f"| {system.name} | {system.version} | `{system.fixture}` "
            f"| {system.compared} | {numbers} |"
        )
    numbers = f"{counter.cases[OTHER]} | {counter.waiting[OTHER]}"
    lines.append(f"| {OTHER} | | | installing, starting, stopping, comparing | {numbers} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    text = README.read_text()
    new = _with(text, BEGIN, END, table(count()))
    new = _with(new, SETTINGS_BEGIN, SETTINGS_END, departures_table())
    if "--write" in arguments:
        README.write_text(new)
        return 0
    if text != new:
        print("integration/README.md: a table is not what the cases say; renew them with")
        print("    python -m integration.case_table --write")
    return int(text != new)


def _with(text: str, begin: str, end: str, content: str) -> str:
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    return before + begin + content + end + after


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
