"""Conditions of get_table_names_by_filter.

``hive_filter_field_owner__ = "bob" and hive_filter_field_params__transactional = "true"``: the
keys are an owner, a last access time, or a parameter; the operators ``= != <> < <= > >= like``;
parts are joined by ``and``, ``or`` and parentheses. Texts are parsed, never put into SQL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.model.like_pattern import LikePattern, java_pattern
from hms_bridge.model.shortened import shortened

Condition = Callable[[Table], bool]

_PARAMETER = "hive_filter_field_params__"
_FIELDS: dict[str, Callable[[Table], Any]] = {
    "hive_filter_field_owner__": lambda table: table.owner,
    "hive_filter_field_last_access__": lambda table: table.last_access_time,
    "hive_filter_field_tableName__": lambda table: table.name,
    "hive_filter_field_tableType__": lambda table: table.type,
}


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<number>-?\d+)|(?P<operator><=|>=|<>|!=|=|<|>)|(?P<paren>[()])"""
    r"""|(?P<word>[^\s()<>=!"']+))""",
    re.DOTALL,
)
_DEPTH_MAX = 50
_SHOWN_MAX = 500
LENGTH_MAX = 100_000
"""Characters of a filter; one is evaluated for every table of a database."""


def parse_table_filter(text: str) -> Condition:
    """A condition over tables; all fulfil an empty one. Raises MetaError for a text that cannot be
    parsed."""
    if len(text) > LENGTH_MAX:
        raise MetaError(f"a table filter of {len(text)} characters; at most {LENGTH_MAX} are read")
    if not text:
        return lambda _: True
    parser = _Parser(text)
    condition = parser.disjunction(0)
    parser.expect_end()
    return condition


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._place = 0

    def disjunction(self, depth: int) -> Condition:
        parts = [self._conjunction(depth)]
        while self._takes_word("or"):
            parts.append(self._conjunction(depth))
        return lambda table: any(part(table) for part in parts)

    def expect_end(self) -> None:
        if self._place < len(self._tokens):
            raise self._error(f"nothing more was expected at {self._next()[1]!r}")

    def _conjunction(self, depth: int) -> Condition:
        parts = [self._term(depth)]
        while self._takes_word("and"):
            parts.append(self._term(depth))
        return lambda table: all(part(table) for part in parts)

    def _term(self, depth: int) -> Condition:
        if depth > _DEPTH_MAX:
            raise self._error("too many parentheses inside each other")
        kind, value = self._next()
        if (kind, value) == ("paren", "("):
            inside = self.disjunction(depth + 1)
            if self._next() != ("paren", ")"):
                raise self._error("a closing parenthesis is missing")
            return inside
        if kind != "word":
            raise self._error(f"a key was expected at {value!r}")
        return self._comparison(value)

    def _comparison(self, key: str) -> Condition:
        name = self._next()[1].lower()
        kind, literal = self._next()
        if kind == "text" and name == "like":
            return _like(self._reader(key), _unquoted(literal))
        compare = _OPERATORS.get(name)
        if compare is None or kind not in ("text", "number"):
            raise self._error(f'a comparison like {key} = "text" was expected')
        wanted: Any = _unquoted(literal) if kind == "text" else int(literal)
        return _condition(self._reader(key), compare, wanted)

    def _reader(self, key: str) -> Callable[[Table], Any]:
        if key.startswith(_PARAMETER):
            parameter = key.removeprefix(_PARAMETER)
            return lambda table: table.parameters.get(parameter)
        if key not in _FIELDS:
            raise self._error(
                f"{key} is no key; use {', '.join(sorted(_FIELDS))} or {_PARAMETER}NAME"
            )
        return _FIELDS[key]

    def _takes_word(self, word: str) -> bool:
        if self._place == len(self._tokens):
            return False
        kind, text = self._tokens[self._place]
        is_word = kind == "word" and text.lower() == word
        self._place += is_word
        return is_word

    def _next(self) -> tuple[str, str]:
        if self._place == len(self._tokens):
            raise self._error("it ends early")
        self._place += 1
        return self._tokens[self._place - 1]

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, position, end = [], 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"{text[position : position + 20]!r} is not understood")
            kind = str(match.lastgroup)
            tokens.append((kind, match.group(kind)))
            position = match.end()
        return tokens

    def _error(self, what: str) -> MetaError:
        shown = shortened(self._text, _SHOWN_MAX)
        return MetaError(f"table filter {shown!r} cannot be parsed: {what}")


def _condition(
    read: Callable[[Table], Any], compare: Callable[[Any, Any], bool], wanted: Any
) -> Condition:
    def holds(table: Table) -> bool:
        value = read(table)
        if value is None:
            return False
        if isinstance(value, int) and not isinstance(wanted, int):
            return False
        return compare(value if isinstance(value, int) else str(value),
                       wanted if isinstance(value, int) else str(wanted))  # fmt: skip

    return holds


def _like(read: Callable[[Table], Any], text: str) -> Condition:
    patterns = like_patterns(text)

    def holds(table: Table) -> bool:
        value = read(table)
        return value is not None and any(pattern.matches(str(value)) for pattern in patterns)

    return holds


def like_patterns(text: str) -> tuple[LikePattern, ...]:
    """What ``like`` compares with: of Java's regular expressions ``.*``, ``.``, ``|`` and a
    leading ``(?i)``, and SQL's ``%``. The rest is plain text, since a client's own expression
    could take for ever."""
    plain = text.removeprefix("(?i)")
    return tuple(
        java_pattern(part, is_case_ignored=plain != text) for part in re.split(r"(?<!\\)\|", plain)
    )


def _unquoted(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1])
