"""Commands that pages show, in blocks and in running text, can be typed; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hms_bridge.cli.main import cli
from tests.support.documents import blocks, commands, outside_blocks, pages, section, spans
from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for

PROGRAM = "hms-bridge"
PAGES = [page for page in pages() if page.name != "CHANGELOG.md"]
"""The changelog names verbs as they were."""
_VERBS = frozenset(cli.list_commands(click.Context(cli)))
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*|<[^>]*>|…")
_ANY_VALUE = "1"
"""A placeholder's value: a number, where click asks for one, and a text."""


def _name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def _typed(page: Path) -> list[list[str]]:
    return [words for block in blocks(page) for words in commands(block.text)]


def _mentioned(page: Path) -> list[list[str]]:
    """Commands in running text and tables, most without the program's name: ``repl lag --all``."""
    found = [text for text in spans(page) if text.startswith(f"{PROGRAM} ")]
    verbs = [text for text in spans(page) if text.partition(" ")[0] in _VERBS and "→" not in text]
    return [shlex.split(text) for text in [*found, *(f"{PROGRAM} {text}" for text in verbs)]]


def test_there_are_commands() -> None:
    assert len([words for page in PAGES for words in _typed(page)]) > 200
    assert len([words for page in PAGES for words in _mentioned(page)]) > 300


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("changes.sql", "policies.toml"):
            (folder / name).touch()
        yield


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_of_a_page_can_be_typed(page: Path) -> None:
    """Verbs, options and choices exist. A mention may lack arguments, and the value of its end."""
    shown = [(words, True) for words in _typed(page)]
    shown += [(words, False) for words in _mentioned(page)]
    faults = []
    for words, is_whole in shown:
        try:
            _parse(words, is_whole=is_whole and "--help" not in words)
        except click.UsageError as error:
            faults.append(f"{shlex.join(words)}: {error.format_message()}")
    assert not faults, "\n".join([f"{_name(page)} shows what cannot be typed:", *faults])


@holds_for(PAGES)
def test_commands_stand_in_fenced_blocks(page: Path) -> None:
    """Blocks that are merely indented are read by nobody here."""
    assert re.findall(rf"^ {{4,}}{PROGRAM} .*", outside_blocks(page), re.MULTILINE) == []


def test_the_readme_names_every_verb_and_no_other() -> None:
    rows = section(CHECKOUT / "README.md", "Use it").partition("| verb |")[2].splitlines()
    cells = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows if row.startswith("| `")]
    named = {verb for cell in cells for verb in _whole_names(cell)}
    verbs = {re.sub("^repl policy .*", "repl policy", verb) for verb in _leaves(cli)}
    assert named ^ verbs == set()


def _whole_names(cell: list[str]) -> Iterator[str]:
    """``cm ls``, ``pins`` are cm ls and cm pins."""
    group = ""
    for text in cell:
        first, *more = [word for word in text.split() if not word.isupper()]
        group = f"{first} " if more else group
        yield " ".join([first, *more]) if more or first in _VERBS else f"{group}{first}"


def _leaves(command: click.Command, path: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _leaves(inner, f"{path} {name}".strip())


def _parse(words: list[str], *, is_whole: bool) -> None:
    """Raises UsageError, as the program would, unless a page may leave the fault to its reader."""
    try:
        _parse_as_typed(_filled(words))
    except click.MissingParameter:
        if is_whole:
            raise
    except click.BadOptionUsage:  # "repl dump --limit" lacks a value
        if is_whole or not words[-1].startswith("-"):
            raise
    except click.BadParameter as error:  # "--format FORMAT" names no choice
        if words == _filled(words) or not isinstance(
            error.param and error.param.type, click.Choice
        ):
            raise


def _filled(words: list[str]) -> list[str]:
    """With values for placeholders; a last … behind a value stands for more of the same."""
    if words[-1] == "…" and not words[-2].startswith("-"):
        words = words[:-1]
    words = [word for word in words if word != "--help"]
    return [_ANY_VALUE if _PLACEHOLDER.fullmatch(word) else word for word in words]


def _parse_as_typed(words: list[str]) -> None:
    command: click.Command = cli
    context: click.Context | None = None
    name, *words = words
    while isinstance(command, click.Group) and words:
        context = command.make_context(name, words, parent=context)
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        found, inner, words = command.resolve_command(context, rest)
        assert inner is not None
        name, command = found or name, inner
    if not isinstance(command, click.Group):
        command.make_context(name, words, parent=context).close()
