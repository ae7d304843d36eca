"""`make integration` tries what did not pass once more, and that alone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CASES = """
from pathlib import Path
import pytest

def _calls(name):
    with Path("calls").open("a") as file:
        file.write(name + "\\n")

@pytest.mark.parametrize("sign", ["a@b", "a@c"])
@pytest.mark.xdist_group("one")
def test_steady(sign):
    _calls(f"steady {sign}")

@pytest.mark.xdist_group("two")
def test_unsteady():
    _calls("unsteady")
    assert Path("calls").read_text().count("unsteady") > 1

@pytest.mark.xdist_group("two")
def test_fails():
    _calls("fails")
    assert False

@pytest.fixture
def broken():
    yield
    assert False

def test_whose_end_fails(broken):
    _calls("end")
"""


@pytest.mark.parametrize("words", [(), ("-n2", "--dist", "loadgroup")], ids=["one", "two"])
def test_what_did_not_pass_is_tried_once_more(
    pytester: pytest.Pytester, words: tuple[str, ...]
) -> None:
    pytester.makeconftest(
        """
        from pathlib import Path
        from integration.second_try import OPTION, SecondTry, add_option as pytest_addoption

        def pytest_configure(config):
            config.pluginmanager.register(SecondTry(config, Path(config.getoption(OPTION))))
        """
    )
    pytester.makeini(f"[pytest]\npythonpath = {Path(__file__).parents[2]}")
    pytester.makepyfile(test_of_a_second_try=CASES)
    first = pytester.runpytest_subprocess("--outcomes", "outcomes", *words)
    first.assert_outcomes(passed=3, failed=2, errors=1)
    second = pytester.runpytest_subprocess("--outcomes", "outcomes", *words)
    second.assert_outcomes(passed=2, failed=1, errors=1, deselected=0 if words else 2)
    assert sorted((pytester.path / "calls").read_text().splitlines()) == [
        *["end", "end", "fails", "fails", "steady a@b", "steady a@c", "unsteady", "unsteady"]
    ]
    (line,) = (line for line in second.outlines if line.startswith("unsteady: "))
    assert line == "unsteady: test_of_a_second_try.py::test_unsteady passed at its second try"
    assert second.ret == pytest.ExitCode.TESTS_FAILED
