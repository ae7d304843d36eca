"""What people can set or type is documented: settings, verbs, wire methods."""

import re
from pathlib import Path

import click

from hms_bridge.cli.main import cli
from hms_bridge.cli.reference import pages
from hms_bridge.config.settings import KEYS
from tests.support.rules import holds_for

ROOT = Path(__file__).parents[2]


def _commands(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=path)
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            found += _commands(inner, f"{path} {name}")
    return found


COMMANDS = _commands(cli, "hms-bridge")


@holds_for(sorted(pages()))
def test_generated_pages_are_up_to_date(name: str) -> None:
    page = ROOT / name
    assert page.is_file(), f"{name} is missing; run make docs"
    assert page.read_text() == pages()[name], f"{name} is stale; run make docs"


@holds_for(KEYS)
def test_every_setting_is_documented(key: object) -> None:
    assert f"`{key.name}`" in (ROOT / "docs/reference/settings.md").read_text()  # type: ignore[attr-defined]


@holds_for(COMMANDS)
def test_every_verb_has_help_with_an_example(path: str, command: click.Command) -> None:
    text = command.get_help(click.Context(command, info_name=path))
    assert re.search(r"Examples?:\n\s+hms-bridge ", text), f"{path} --help shows no example"
    assert f"## {path}\n" in (ROOT / "docs/reference/cli.md").read_text()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.name in ("help", "version"), (path, parameter.name)


@holds_for(range(1, 14))
def test_every_invariant_is_stated_and_named_by_a_test(number: int) -> None:
    name = re.compile(rf"\bI{number}\b")
    assert name.search((ROOT / "ARCHITECTURE.md").read_text())
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if name.search(path.read_text())]
    assert tests, f"no test says that it checks I{number}"


ROOMS = sorted(path.parent.name for path in (ROOT / "hms_bridge").glob("*/__init__.py"))


@holds_for(ROOMS)
def test_every_room_stands_on_the_plan_and_on_the_map(room: str) -> None:
    name = re.compile(rf"\b{room}/")
    assert name.search((ROOT / "ARCHITECTURE.md").read_text()), room
    assert name.search((ROOT / "CONTRIBUTING.md").read_text()), room
