"""Markdown pages of the project: fenced blocks, spans of code, links, commands of the program."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tests.support.golden import CHECKOUT

_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)*)`")
_COMMAND = re.compile(r"(?:^|[;&|(] *|\bexec |\b\w+=\S* )(?=hms-bridge )")
_SHELL = frozenset(";&|()<>")


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


def outside_blocks(page: Path) -> str:
    return _BLOCK.sub("", page.read_text())


def links(page: Path) -> list[str]:
    """Targets inside the project."""
    return [link for link in _LINK.findall(outside_blocks(page)) if "://" not in link]


def section(page: Path, title: str) -> str:
    """A part of a page, from its title to the next of the same depth."""
    text = page.read_text()
    start = text.index(f"\n## {title}\n")
    end = text.find("\n## ", start + 4)
    return text[start : end if end > 0 else len(text)]


def spans(page: Path) -> list[str]:
    """Texts in backticks outside of blocks, each in one line."""
    return [" ".join(text.split()) for text in _SPAN.findall(outside_blocks(page))]


def commands(text: str) -> list[list[str]]:
    """Words of each command of the program in a block, its name included; cron lines, units of
    systemd and continued lines, too."""
    joined = re.sub(r"\\\n\s*", " ", text)
    joined = re.sub(r'"[^"]*"', lambda found: found[0].replace("\n", " "), joined)
    lines = [re.sub(r"(^|\s)#.*$", "", line.strip()) for line in joined.splitlines()]
    return [_words(part) for line in lines for part in _COMMAND.split(line)[1:]]


def _words(command: str) -> list[str]:
    """Up to the first sign that is the shell's: ``a b > c`` has the words a and b."""
    if command.count("'") % 2:  # the end of sh -c '…; exec hms-bridge …'
        command = command.rpartition("'")[0]
    lexer = shlex.shlex(command, posix=True, punctuation_chars="".join(_SHELL))
    lexer.whitespace_split, lexer.commenters = True, ""
    return [*takewhile(lambda word: not set(word) <= _SHELL, lexer)]
