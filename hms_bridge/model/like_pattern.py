"""Patterns with wildcards, matched in a time that is bounded by text length times pattern length.

A backtracking expression with many wildcards can take for ever on a short text; here each piece
between two ``%`` is looked for once, leftmost, which is as good as any other place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LikePattern:
    """Pieces that follow each other, with any text between them; in a piece ``None`` stands for
    any one character."""

    pieces: tuple[tuple[str | None, ...], ...]
    is_case_ignored: bool = False

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        if self.is_case_ignored:
            text = text.lower()
        first, *others = self.pieces
        if not others:
            return len(text) == len(first) and _fits(text, 0, first)
        *middle, last = others
        place, end = len(first), len(text) - len(last)
        if place > end or not _fits(text, 0, first) or not _fits(text, end, last):
            return False
        for piece in middle:
            begin = _find(text, place, end, piece)
            if begin < 0:
                return False
            place = begin + len(piece)
        return True


def sql_pattern(text: str) -> LikePattern:
    """SQL's: ``%`` any text, ``_`` any character; a backslash before one of them takes its
    meaning away (Hive's ``UDFLike.likePatternToRegExp``)."""
    return _pattern(re.findall(r"\\[%_]|%|_|.", text, re.DOTALL), any_text="%", any_one="_")


def escaped_pattern(text: str) -> LikePattern | None:
    """SQL's with an escape: a backslash before any character takes its meaning away. None for one
    that ends with a backslash before nothing."""
    tokens = re.findall(r"\\.|%|_|.", text, re.DOTALL)
    if tokens and tokens[-1] == "\\":
        return None
    return _pattern(tokens, any_text="%", any_one="_")


def filter_pattern(text: str) -> LikePattern:
    """Of a partition filter: SQL's, and ``.*`` any text, which Hive's clients also send."""
    return _pattern(re.findall(r"\.\*|%|_|.", text, re.DOTALL), any_text=("%", ".*"), any_one="_")


def java_pattern(text: str, *, is_case_ignored: bool = False) -> LikePattern:
    """Of a table filter, a plain subset of Java's expressions: ``.*`` (or SQL's ``%``) any text,
    ``.`` any character, a backslash before a literal one."""
    return _pattern(
        re.findall(r"\.\*|\\.|.", text, re.DOTALL),
        any_text=("%", ".*"),
        any_one=".",
        is_case_ignored=is_case_ignored,
    )


def _pattern(
    tokens: list[str],
    *,
    any_text: str | tuple[str, ...],
    any_one: str,
    is_case_ignored: bool = False,
) -> LikePattern:
    pieces: list[list[str | None]] = [[]]
    for token in tokens:
        if token in any_text:
            if len(pieces) == 1 or pieces[-1]:  # several in a row are one
                pieces.append([])
        elif token == any_one:
            pieces[-1].append(None)
        else:
            literal = token[-1]  # after a backslash, or itself
            pieces[-1].append(literal.lower() if is_case_ignored else literal)
    return LikePattern(tuple(tuple(piece) for piece in pieces), is_case_ignored)


def _fits(text: str, place: int, piece: tuple[str | None, ...]) -> bool:
    return all(
        wanted is None or text[place + offset] == wanted for offset, wanted in enumerate(piece)
    )


def _find(text: str, start: int, end: int, piece: tuple[str | None, ...]) -> int:
    for place in range(start, end - len(piece) + 1):
        if _fits(text, place, piece):
            return place
    return -1
