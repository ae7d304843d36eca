"""Pages lead where they say."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from pathlib import Path

from tests.support.documents import links, pages
from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for

PAGES = pages()
INDEX = CHECKOUT / "docs" / "index.md"


def _name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


@holds_for(PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{_name(page)} links to {link}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in [_anchor(title) for title in titles], link


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_every_page_can_be_found_from_the_index() -> None:
    found, pending = {INDEX}, [INDEX]
    while pending:
        page = pending.pop()
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target not in found:
                found.add(target)
                pending.append(target)
    assert {page for page in PAGES if page.is_relative_to(INDEX.parent)} <= found


def test_the_changelog_tells_of_this_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    heading = rf"^## \[{re.escape(project['version'])}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(heading, (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)


_RUN_OF_TESTS = re.compile(r"-m pytest ([^`\n]+)`")
RUNS = [(page, run) for page in PAGES for run in _RUN_OF_TESTS.findall(page.read_text())]


def test_there_are_runs_of_tests() -> None:
    assert len(RUNS) >= 3


@holds_for(RUNS)
def test_a_shown_run_of_tests_finds_some(page: Path, run: str) -> None:
    words = shlex.split(run)
    (place,) = [CHECKOUT / word for word in words if word.startswith("tests/")]
    assert place.exists(), f"{_name(page)} runs {place}, which is not there"
    if "-k" in words:
        part = words[words.index("-k") + 1]
        named = re.findall(r"^def (test_\w+)", place.read_text(), re.MULTILINE)
        assert [name for name in named if part in name], f"{_name(page)}: no test is named {part}"


_PATH = re.compile(
    r"`((?:tests|integration|hms_bridge|cleaner|changemanager|benchmarks|conf|docs)/[\w./*-]+)`"
)


@holds_for(PAGES)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = set(_PATH.findall(page.read_text()))
    assert [path for path in sorted(named) if not any(CHECKOUT.glob(path.rstrip("/")))] == []


def _refusals() -> list[str]:
    """The left column of the runbooks' table: parts of messages, as the page has them."""
    rows = (CHECKOUT / "docs/runbooks.md").read_text().partition("## When a command refuses")[2]
    cells = re.findall(r"^\| (`.*?) \|", rows, re.MULTILINE)
    return [text.rstrip("… ") for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


def _messages() -> str:
    """All text constants of the product, those of f-strings with their values left out."""
    texts = []
    for path in (CHECKOUT / "hms_bridge").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                values = node.values
                texts.append("".join(str(v.value) for v in values if isinstance(v, ast.Constant)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def test_what_the_runbooks_say_that_commands_say_is_said() -> None:
    refusals, messages = _refusals(), _messages()
    assert len(refusals) > 20
    assert [text for text in refusals if text not in messages] == []
