"""What did not pass beside the real systems is tried once more, in new processes: a system that was
too slow under others once, or a crash of pytest itself, ends no run of an hour. A case that passes
only then is listed as unsteady: somebody has to find out why."""

from __future__ import annotations

from pathlib import Path

import pytest

OPTION = "--outcomes"
PASSED, FAILED = "passed ", "failed "


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        metavar="FILE",
        help="add to FILE which cases passed and which failed; leave out those that passed before",
    )


class SecondTry:
    """A plugin of pytest, in the processes that run cases and in the one that hears of all of
    them. A case's name is its path and what pytest calls it there, without xdist's group."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._file = file
        self._hears_of_all = not hasattr(config, "workerinput")
        self._before = set(file.read_text().splitlines()) if file.exists() else set()
        self._failed: set[str] = set()
        self._unsteady: list[str] = []

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        passed = [item for item in items if PASSED + _name(item.location) in self._before]
        config.hook.pytest_deselected(items=passed)
        items[:] = [item for item in items if item not in passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, case and teardown of each, in this order."""
        name = _name(report.location)
        if report.failed:
            self._failed.add(name)
        if self._hears_of_all and report.when == "teardown":
            self._note(name)

    def _note(self, name: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{FAILED if name in self._failed else PASSED}{name}\n")
        if name not in self._failed and FAILED + name in self._before:
            self._unsteady.append(name)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self._unsteady:
            terminalreporter.write_line(f"unsteady: {name} passed at its second try")


def _name(location: tuple[str, int | None, str]) -> str:
    return f"{location[0]}::{location[2]}"
