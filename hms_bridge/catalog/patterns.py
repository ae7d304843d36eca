"""Hive's name patterns: ``*`` any text, ``|`` or; ``.*`` and ``.`` as in a regular expression.

Patterns become LIKE texts that are bound, never spliced into SQL. In a real metastore ``*``
becomes ``.*`` and the whole is matched like a regular expression, so ``t.`` finds ``t1``
(docs/hive/metastore.md §28; Hive: ObjectStore.appendPatternCondition).
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, false, or_

ESCAPE = "/"
"""Escapes ``%``, ``_`` and itself in LIKE texts (a backslash means something on MySQL)."""

PATTERN_LENGTH_MAX = 4000


def like_texts(pattern: str) -> tuple[str, ...]:
    """One LIKE text for each alternative of a pattern, in lower case.

    An empty pattern has none: it matches nothing, as in Hive.
    """
    alternatives = pattern[:PATTERN_LENGTH_MAX].strip().lower().split("|")
    return tuple(_like_text(alternative) for alternative in alternatives if alternative)


def _like_text(alternative: str) -> str:
    text = alternative.replace(".*", "*")
    return "".join(_LIKE.get(character, character) for character in text)


_LIKE = {
    "*": "%",
    ".": "_",
    "%": f"{ESCAPE}%",
    "_": f"{ESCAPE}_",
    ESCAPE: ESCAPE + ESCAPE,
}


def matches(column: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    """The condition that a column of lower-case names matches a pattern."""
    texts = like_texts(pattern)
    if not texts:
        return false()
    return or_(*(column.like(text, escape=ESCAPE) for text in texts))
