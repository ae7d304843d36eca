"""Markdown pages of the project: fenced blocks, links, command lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.golden import CHECKOUT

_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^(?:\(cd \S+ && |echo .*\| )?(hms-bridge .*?)\)?$")


@dataclass(frozen=True)
class Block:
    """A fenced block; ``info``: what stands behind the fence, as ``sh server``."""

    page: Path
    info: str
    text: str


def pages() -> list[Path]:
    """All pages that people read."""
    return sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])


def blocks(page: Path) -> list[Block]:
    return [
        Block(page, match[2].strip(), re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE))
        for match in _BLOCK.finditer(page.read_text())
    ]


def links(page: Path) -> list[str]:
    """Targets inside the project."""
    text = _BLOCK.sub("", page.read_text())
    return [link for link in _LINK.findall(text) if "://" not in link]


def section(page: Path, title: str) -> str:
    """A part of a page, from its title to the next of the same depth."""
    text = page.read_text()
    start = text.index(f"\n## {title}\n")
    end = text.find("\n## ", start + 4)
    return text[start : end if end > 0 else len(text)]


def command_lines(text: str) -> list[str]:
    """The lines that begin with the program's name; continued ones and quoted SQL in one."""
    joined = re.sub(r"\\\n\s*", " ", text)
    joined = re.sub(r'"[^"]*"', lambda found: found[0].replace("\n", " "), joined)
    lines = [line.strip() for line in joined.splitlines()]
    found = [match[1] for line in lines if (match := _COMMAND.match(line))]
    return [re.sub(r"\s#.*$", "", line) for line in found]
