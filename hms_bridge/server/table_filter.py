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

Condition = Callable[[Table], bool]

_PARAMETER = "hive_filter_field_params__"
_FIELDS: dict[str, Callable[[Table], Any]] = {
    "hive_filter_field_owner__": lambda table: table.owner,
    "hive_filter_field_last_access__": lambda table: table.last_access_time,
    "hive_filter_field_tableName__": lambda table: table.name,
    "hive_filter_field_tableType__": lambda table: table.type,
}


def _is_like(value: str, pattern: str) -> bool:
    """Whether the value has the pattern's parts in order; ``.*`` and ``%`` are any text.

    Other expressions count as text: a client's regular expression could take for ever.
    """
    first, *others = pattern.replace("%", ".*").split(".*")
    if not others:
        return value == first
    if not value.startswith(first) or len(value) < len(first) + len(others[-1]):
        return False
    position, last = len(first), others.pop()
    end = len(value) - len(last)
    for part in others:
        position = value.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return value.endswith(last)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "like": _is_like,
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<number>-?\d+)|(?P<operator><=|>=|<>|!=|=|<|>)|(?P<paren>[()])"""
    r"""|(?P<word>[^\s()<>=!"']+))""",
    re.DOTALL,
)
_DEPTH_MAX = 50


def parse_table_filter(text: str) -> Condition:
    """A condition over tables. Raises MetaError for a text that cannot be parsed."""
    parser = _Parser(text)
    condition = parser.disjunction(0)
    parser.expect_end()
    return condition


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)

    def disjunction(self, depth: int) -> Condition:
        parts = [self._conjunction(depth)]
        while self._takes_word("or"):
            parts.append(self._conjunction(depth))
        return lambda table: any(part(table) for part in parts)

    def expect_end(self) -> None:
        if self._tokens:
            raise self._error(f"nothing more was expected at {self._tokens[0][1]!r}")

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
        _, name = self._next()
        compare = _OPERATORS.get(name.lower())
        kind, literal = self._next()
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
        if self._tokens and self._tokens[0][0] == "word" and self._tokens[0][1].lower() == word:
            self._tokens.pop(0)
            return True
        return False

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._error("it ends early")
        return self._tokens.pop(0)

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
        return MetaError(f"table filter {self._text!r} cannot be parsed: {what}")


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


def _unquoted(literal: str) -> str:
    return re.sub(r"\\(.)", r"\1", literal[1:-1])
