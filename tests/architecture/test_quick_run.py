"""What `make quick` leaves out is there, and what takes long is seen."""

import ast

import pytest

from tests.support import quick_run
from tests.support.quick_run import LONG, SHARE_MAX, TESTS, files_that_take_long

pytest_plugins = ["pytester"]


def test_what_a_quick_run_leaves_out_is_there() -> None:
    assert [name for name in LONG if not (TESTS / name.partition("::")[0]).exists()] == []
    for name in LONG:
        file, _, test = name.partition("::")
        if test:
            body = ast.parse((TESTS / file).read_text()).body
            named = {node.name for node in body if isinstance(node, ast.FunctionDef)}
            assert test in named, name


def test_nothing_is_left_out_twice() -> None:
    parts = [name.replace("::", "/").split("/") for name in LONG]
    assert [
        name
        for name in parts
        if any("/".join(name).startswith("/".join(other) + "/") for other in parts)
    ] == []


def test_a_file_with_more_than_its_share_takes_long() -> None:
    seconds = {f"tests/short_{number}.py": 1.0 for number in range(96)}
    share = SHARE_MAX * 100
    assert files_that_take_long(seconds | {"tests/it.py": share}) == []
    assert files_that_take_long(seconds | {"tests/it.py": share + 1}) == ["tests/it.py"]
    assert files_that_take_long({}) == []


def test_a_quick_run_leaves_out_what_it_names_and_fails_over_what_takes_long(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files are too few for either to have its share only. Their names are of no test of ours:
    a module of that name would be the one that this process has imported already."""
    file, test = "test_of_a_quick_run.py", "test_long"
    monkeypatch.setattr(quick_run, "LONG", frozenset({f"{file}::{test}"}))
    pytester.makeini("[pytest]\ntestpaths = tests\naddopts = --import-mode=importlib")
    pytester.makeconftest(
        """
        from tests.support.quick_run import QuickRun

        def pytest_configure(config):
            config.pluginmanager.register(QuickRun(config))
        """
    )
    cases = {file: f"def {test}(): assert False\n", "test_of_another_quick_run.py": ""}
    for path, text in cases.items():
        above = (pytester.path / "tests" / path).parent
        above.mkdir(parents=True, exist_ok=True)
        short = "def test_short(): sum(range(100_000))\n"
        (above / path.rpartition("/")[2]).write_text(text + short)
    whole = pytester.runpytest_inprocess()
    whole.assert_outcomes(passed=2, deselected=1)
    assert whole.ret == pytest.ExitCode.TESTS_FAILED
    whole.stdout.fnmatch_lines([f"tests/{file} takes * make it shorter*"])
    named = pytester.runpytest_inprocess("tests")
    named.assert_outcomes(passed=2, deselected=1)
    assert named.ret == pytest.ExitCode.OK
