"""Regular expressions for names of tables, matched in a time that no pattern can stretch.

Hive takes what Java's ``Pattern`` takes, which goes back and tries again: ``(a+)+b`` needs longer
than anybody waits on a name of forty characters. RE2 walks all ways through a pattern side by side.
What RE2 does not know (references back, looking ahead), and what may mean another thing there than
in Java, is refused by name: a pattern decides which tables a replica drops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from hms_bridge.errors import ConfigError

PATTERN_LENGTH_MAX = 1000
"""In characters."""

_MEMORY_MAX_BYTES = 1 << 22
"""Of a compiled pattern; a larger one is refused."""

_ESCAPED = r"\\(?:[dDwWsS]|[^0-9A-Za-z])"
_SAME_IN_JAVA = re.compile(
    rf"{_ESCAPED}"
    rf"|\[\^?(?:[^\\\[\]&]|&(?!&)|{_ESCAPED})+\]"  # classes within classes are Java's alone
    r"|\(\?:|\((?!\?)"
    r"|\{[0-9]+(?:,[0-9]*)?\}"  # to RE2 any other brace is a character
    r"|[^\\\[({]"
)


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A compiled pattern; the case of letters counts for nothing, as in Hive (``ReplScope``)."""

    text: str
    compiled: Any
    """RE2's; it has no types."""

    def matches(self, name: str) -> bool:
        """Whether the whole name fits."""
        return self.compiled.fullmatch(name) is not None


@lru_cache(maxsize=256)
def name_pattern(text: str) -> NamePattern:
    """Compile a pattern. Raises ConfigError for one that is none, or that is not understood here:
    in words that name it and what is wrong."""
    if not text:
        raise ConfigError("an empty pattern fits no table; write '.*' for all of them")
    if len(text) > PATTERN_LENGTH_MAX:
        raise ConfigError(
            f"the pattern {text[:40]}… has {len(text)} characters, of {PATTERN_LENGTH_MAX} at most"
        )
    if not text.isprintable():
        raise ConfigError(f"the pattern {text!r} has characters that no name of a table has")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MEMORY_MAX_BYTES
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        raise _refusal(text, error.args[0].decode("utf-8", "replace")) from error
    at = 0
    while at < len(text):
        piece = _SAME_IN_JAVA.match(text, at)
        if piece is None:
            raise _refusal(text, f"{text[at : at + 8]} may mean another thing to a Hive")
        at = piece.end()
    return NamePattern(text=text, compiled=compiled)


def _refusal(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"the pattern {text} is none that is understood: {why}. A pattern is a regular expression "
        "for the whole name of a table, with . * + ? {} [] () (?:) | ^ $, \\d \\w \\s \\D \\W \\S, "
        "and a backslash before what stands for itself"
    )
