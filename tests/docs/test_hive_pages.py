"""What is known of Hive stands in docs/hive with its source; every cited section is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.documents import pages
from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for

HIVE = CHECKOUT / "docs" / "hive"
SIGN = "\N{SECTION SIGN}"
_TITLE = re.compile(r"^## (.*)$", re.MULTILINE)
_CITED = re.compile(rf"(?P<page>[\w./-]+\.md)\)? (?P<numbers>{SIGN}\d+(?:(?:,| and) {SIGN}\d+)*)")
_SOURCE = re.compile(r"^Source: (.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
_CLASS = re.compile(r"`[A-Z]\w*[a-z]\w*(?:\.\w+)*`")
_SEEN = re.compile(r"seen on a real Hive 4\.\d")
_ISSUE = re.compile(r"\bHIVE-\d+\b")
_PRODUCT = ("hms_bridge", "cleaner", "changemanager")
_FOLDERS = (*_PRODUCT, "tests", "integration", "benchmarks", "scripts")
_PAGES = sorted(page for page in HIVE.glob("*.md") if page.stem != "index")


@cache
def _sections(page: Path) -> dict[str, str]:
    """Text of each section of a page by its number."""
    _, *parts = _TITLE.split(page.read_text())
    return {title.split()[0]: text for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _one_line(text: str) -> str:
    """Docstrings and comments break where it suits them."""
    return " ".join(re.sub(r"\n\s*(?:#+ )?", " ", text).split())


def _citations(text: str, own: Path | None = None) -> list[tuple[str, str]]:
    """Page and number of each section that a text names; ``own``: the page that it is."""
    line = _one_line(text)
    found = [
        (match["page"], number)
        for match in _CITED.finditer(line)
        for number in re.findall(r"\d+", match["numbers"])
    ]
    rest = _CITED.sub("", line)
    if own is not None:
        found += [(own.name, number) for number in re.findall(rf"{SIGN}(\d+)", rest)]
        rest = re.sub(rf"{SIGN}\d+", "", rest)
    assert SIGN not in rest, f"names no page: …{rest[max(0, rest.find(SIGN) - 60) :][:90]}…"
    return found


def _citing() -> list[Path]:
    code = [path for folder in _FOLDERS for path in (CHECKOUT / folder).rglob("*.py")]
    markdown = {*pages(), *CHECKOUT.glob("integration/*.md"), *CHECKOUT.glob("tests/**/*.md")}
    return sorted(path for path in [*code, *markdown] if SIGN in path.read_text())


def _name(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


@holds_for(_citing())
def test_a_cited_section_is_there(path: Path) -> None:
    is_page = path.suffix == ".md"
    for page, number in _citations(path.read_text(), path if path.parent == HIVE else None):
        root = path.parent if is_page else CHECKOUT
        cited = (root / page).resolve()
        assert cited.is_file(), f"no page {page}; in a page it is relative to that page"
        assert number in _sections(cited), f"{page} has no section {number}"


def test_rules_of_the_product_cite_the_pages() -> None:
    product = [path for path in _citing() if path.relative_to(CHECKOUT).parts[0] in _PRODUCT]
    cited = {pair for path in product for pair in _citations(path.read_text())}
    assert {f"docs/hive/{page.name}" for page in _PAGES} <= {page for page, _ in cited}


@holds_for(_PAGES)
def test_sections_are_numbered_and_tell_their_source(page: Path) -> None:
    sections = _sections(page)
    assert list(sections) == [str(number) for number in range(1, len(sections) + 1)]
    for number, text in sections.items():
        source = _SOURCE.search(text)
        assert source, f"{page.name}, section {number} has no source"
        known = (_CLASS, _SEEN, _ISSUE)
        assert any(pattern.search(_one_line(source[1])) for pattern in known), (number, source[1])


def test_a_citation_without_a_page_or_section_is_found() -> None:
    with pytest.raises(AssertionError, match="names no page"):
        _citations(f"the facts {SIGN}4")
    text = f"docs/hive/acid.md\n    # {SIGN}5, {SIGN}6 and {SIGN}7; [x](acid.md) {SIGN}9"
    assert _citations(text) == [
        *(("docs/hive/acid.md", number) for number in "567"),
        ("acid.md", "9"),
    ]
    assert _citations(f"see {SIGN}2", HIVE / "acid.md") == [("acid.md", "2")]
