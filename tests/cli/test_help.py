"""``--help`` of everything: there, and quick, because it loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.program import Program, process_environment, run_here

pytestmark = pytest.mark.process

LOOK = """
import contextlib, io, json, sys
import click
from hms_bridge.cli.main import cli

def commands(command, words):
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), [*words, name])

def ask(words):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main([*words, "--help"], prog_name="hms-bridge")
    return printed.getvalue()

texts = {" ".join(words): ask(words) for words in commands(cli, [])}
print(json.dumps({"texts": texts, "modules": sorted(sys.modules)}))
"""
HEAVY = {
    "pyspark", "sqlalchemy", "pyarrow", "thrift", "hive_metastore", "numpy", "pandas", "fsspec",
    "sqlglot",
}  # fmt: skip
VERBS = {
    "serve", "schema", "schema init", "schema info", "sql", "table", "table adopt", "compact",
    "compactions", "txns", "txns abort", "locks", "cleaner", "cleaner run", "cleaner plan", "cm",
    "cm ls", "cm purge", "repl", "repl dump", "repl verify", "repl load", "repl open",
    "repl end", "demo",
}  # fmt: skip


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """In a folder with the file of a metastore."""
    folder = tmp_path_factory.mktemp("help")
    (folder / "metastore.db").touch()
    run = subprocess.run(
        [sys.executable, "-c", LOOK], env=process_environment(), cwd=folder, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return json.loads(run.stdout)


def test_help_loads_nothing_heavy(looked: dict[str, object]) -> None:
    assert HEAVY & set(looked["modules"]) == set()  # type: ignore[call-overload]


def test_every_verb_has_help(looked: dict[str, object]) -> None:
    texts: dict[str, str] = looked["texts"]  # type: ignore[assignment]
    assert set(texts) >= VERBS
    for words, text in texts.items():
        assert text.startswith(f"Usage: hms-bridge {words}".rstrip()), words
        assert "Example" in text, words


def test_the_first_page_tells_each_verb_in_a_line() -> None:
    lines = run_here("--help").out.splitlines()
    for verb in VERBS:
        if " " not in verb:
            (line,) = [line for line in lines if line.split()[:1] == [verb]]
            assert line.endswith("."), line


def test_version() -> None:
    assert run_here("--version").out.startswith("hms-bridge, version ")


def test_a_group_without_a_verb_shows_its_help() -> None:
    for group in ("cm", "repl", "schema", "table", "cleaner"):
        answer = run_here(group)
        assert answer.exit_code == 2
        assert f"Usage: hms-bridge {group}" in answer.err + answer.out


def test_the_program_as_a_process(program: Program) -> None:
    """Exit codes reach the shell, results go to standard output, all else to standard error."""
    listed = program.start("txns", "--format", "json")
    assert (listed.exit_code, listed.out, listed.err) == (0, "[]\n", "")
    failed = program.start("txns", "--database", "sqlite:///typo.db")
    assert (failed.exit_code, failed.out) == (1, "")
    assert failed.err.startswith("error: there is no database typo.db in /")
    assert "by --metastore or HMS_BRIDGE_METASTORE" in failed.err
    assert "Traceback" not in failed.err
    told = program.start("txns", "--database", "sqlite:///typo.db", "--verbose")
    assert told.exit_code == 1
    assert "Traceback" in told.err
    assert program.start("txns", "--frmat").exit_code == 2
