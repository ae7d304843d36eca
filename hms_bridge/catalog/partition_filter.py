"""Hive's partition filter text: ``ds = "2024-01-02" and (n > 3 or ds like "2024%")``.

A text becomes a small tree; :mod:`hms_bridge.catalog.partition_predicate` gives it meaning.
Nothing of the text reaches SQL but bound values.

The grammar is that of Hive's ``PartitionFilter`` (docs/hive/metastore.md §11): comparisons,
``like``, ``between``; it also takes ``in``, ``not`` and ``is [not] null`` with simple lists, which
Hive 4.0.1 answers with an error. A literal may stand on either side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from hms_bridge.errors import MetaError
from hms_bridge.model.partition_name import unescape

FILTER_LENGTH_MAX = 1_000_000
DEPTH_MAX = 200
"""Far below where Python's own stack would end, which takes the whole call with it."""

Value: TypeAlias = str | Decimal | date | datetime


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: text in quotes, a number, a date or a timestamp."""

    value: Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column operator literals``: two literals for between, one or more for in."""

    column: str
    operator: str
    literals: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Junction:
    """All (``and``) or any (``or``) of several conditions."""

    is_and: bool
    operands: tuple[Node, ...]


Node: TypeAlias = Comparison | Not | Junction

# The order counts: 2024-01-02 is a date before it is a number and what is left of it.
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<date>\d{4}-\d{2}-\d{2}(?:\ \d{2}:\d{2}:\d{2}(?:\.\d+)?)?)
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<operator><>|!=|<=|>=|=|<|>|\(|\)|,)
      | `(?P<quoted>[^`]+)`
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    )""",
    re.VERBOSE,
)
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
"""Each comparison as it reads from its other side."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


def parse_filter(text: str) -> Node | None:
    """The tree of a filter; None for an empty one, which selects all. Raises MetaError."""
    if len(text) > FILTER_LENGTH_MAX:
        raise MetaError(
            f"Error parsing partition filter: {len(text)} characters; "
            f"at most {FILTER_LENGTH_MAX} are read"
        )
    tokens = _tokens(text)
    if not tokens:
        return None
    return _Parser(text, tokens).parse()


def with_texts_unescaped(node: Node) -> Node:
    """The tree with its texts as values: MSCK writes them as they stand in partition names."""
    if isinstance(node, Not):
        return Not(with_texts_unescaped(node.operand))
    if isinstance(node, Junction):
        return Junction(
            node.is_and, tuple(with_texts_unescaped(operand) for operand in node.operands)
        )
    literals = (literal.value for literal in node.literals)
    return replace(
        node, literals=tuple(Literal(unescape(v) if isinstance(v, str) else v) for v in literals)
    )


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise MetaError(
                f"Error parsing partition filter: lexer error at character {position}: "
                f"'{text[position : position + 20]}'"
            )
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match.group(kind), match.start(kind)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent; ``or`` binds weaker than ``and``, that weaker than ``not``."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._junction("or")
        if self._peek() is not None:
            raise self._error("'and', 'or' or the end")
        return node

    def _junction(self, word: str) -> Node:
        read = self._negation if word == "and" else lambda: self._junction("and")
        operands = [read()]
        while (token := self._peek()) is not None and token.word == word:
            self._next += 1
            operands.append(read())
        return operands[0] if len(operands) == 1 else Junction(word == "and", tuple(operands))

    def _negation(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise MetaError(f"Error parsing partition filter: more than {DEPTH_MAX} levels deep")
        try:
            if self._take_word("not"):
                return Not(self._negation())
            if self._take_operator("("):
                node = self._junction("or")
                self._expect(")")
                return node
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Node:
        token = self._take("a partition column or a constant")
        if token.kind in ("word", "quoted") and not self._is_typed_literal(token):
            return self._right_side(token.text.lower())
        literal = self._literal(token)
        operator = self._take("a comparison")
        mirrored = MIRRORED.get("!=" if operator.text == "<>" else operator.text)
        if mirrored is None:
            self._next -= 1  # so that the error names this token, not the one after it
            raise self._error("a comparison")
        column = self._take("a partition column")
        if column.kind not in ("word", "quoted"):
            self._next -= 1
            raise self._error("a partition column")
        return Comparison(column.text.lower(), mirrored, (literal,))

    def _right_side(self, column: str) -> Node:
        if self._take_word("is"):
            is_negated = self._take_word("not")
            if not self._take_word("null"):
                raise self._error("'null'")
            return _negate(Comparison(column, "is null"), is_negated)
        is_negated = self._take_word("not")
        if self._take_word("like"):
            return _negate(Comparison(column, "like", (self._next_literal(),)), is_negated)
        if self._take_word("between"):
            low = self._next_literal()
            if not self._take_word("and"):
                raise self._error("'and'")
            return _negate(Comparison(column, "between", (low, self._next_literal())), is_negated)
        if self._take_word("in"):
            return _negate(Comparison(column, "in", self._list()), is_negated)
        operator = self._take("a comparison")
        text = "!=" if operator.text == "<>" else operator.text
        if is_negated or text not in MIRRORED:
            self._next -= 1
            raise self._error("a comparison")
        return Comparison(column, text, (self._next_literal(),))

    def _list(self) -> tuple[Literal, ...]:
        self._expect("(")
        literals = [self._next_literal()]
        while self._take_operator(","):
            literals.append(self._next_literal())
        self._expect(")")
        return tuple(literals)

    def _next_literal(self) -> Literal:
        return self._literal(self._take("a constant"))

    def _is_typed_literal(self, token: _Token) -> bool:
        # A column may be called date: only the constant after it makes it a keyword.
        following = self._peek()
        return (
            token.word in ("date", "timestamp")
            and following is not None
            and following.kind in ("text", "date")
        )

    def _literal(self, token: _Token) -> Literal:
        if token.kind == "text":
            return Literal(_unquote(token.text))
        if token.kind == "number":
            return Literal(Decimal(token.text))
        if token.kind == "date":
            return Literal(self._moment(token.text, token))
        if self._is_typed_literal(token):
            following = self._take("a date")
            text = _unquote(following.text) if following.kind == "text" else following.text
            return Literal(self._moment(text, following))
        self._next -= 1
        raise self._error("a constant")

    def _moment(self, text: str, token: _Token) -> date | datetime:
        try:
            return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
        except ValueError as error:
            raise MetaError(
                f"Error parsing partition filter: '{token.text}' is no date or timestamp"
            ) from error

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, expected: str) -> _Token:
        token = self._peek()
        if token is None:
            raise self._error(expected)
        self._next += 1
        return token

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        if token is None or token.word != word:
            return False
        self._next += 1
        return True

    def _take_operator(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.kind != "operator" or token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take_operator(text):
            raise self._error(f"'{text}'")

    def _error(self, expected: str) -> MetaError:
        token = self._peek()
        token_text = "the end" if token is None else f"'{token.text}' at character {token.position}"
        return MetaError(
            f"Error parsing partition filter: found {token_text}, expected {expected}: {self._text}"
        )


def _negate(node: Node, is_negated: bool) -> Node:
    return Not(node) if is_negated else node


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
