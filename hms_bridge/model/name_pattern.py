"""Regular expressions for names of tables, matched in a time that is bounded by name length times
pattern length.

Hive takes what Java's ``Pattern`` takes, which goes back and tries again: ``(a+)+b`` needs longer
than anybody waits on a name of forty characters. Here all ways through a pattern are walked side by
side, so that none is ever walked twice. What cannot be walked so (references back, looking ahead)
or means another thing in Java than elsewhere is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from hms_bridge.errors import ConfigError

PATTERN_LENGTH_MAX = 1000
"""In characters."""

_STEPS_MAX = 4000
"""Of a pattern with its counted repeats written out."""

_DEPTH_MAX = 50
"""Of groups within groups."""

_LAST = 0x10FFFF
_Ranges = tuple[tuple[int, int], ...]
_DIGITS: _Ranges = ((48, 57),)
_WORD: _Ranges = (*_DIGITS, (65, 90), (95, 95), (97, 122))
_SPACE: _Ranges = ((9, 13), (32, 32))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_QUANTIFIERS = "*+?{"


@dataclass(frozen=True, slots=True)
class _One:
    """One character of some ranges."""

    ranges: _Ranges


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    """``most`` None: any number."""

    part: _Node
    least: int
    most: int | None


_Node = _One | _Sequence | _Choice | _Repeat


@dataclass(frozen=True, slots=True)
class _Step:
    """Takes a character of ``ranges`` to go on to ``ways``; None: takes none."""

    ranges: _Ranges | None
    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A compiled pattern; the case of letters counts for nothing, as in Hive (``ReplScope``)."""

    text: str
    steps: tuple[_Step, ...]
    begin: int

    def matches(self, name: str) -> bool:
        """Whether the whole name fits."""
        at = self._reached((self.begin,))
        for char in name:
            codes = {ord(char)} | ({ord(char.swapcase())} if char.isascii() else set())
            at = self._reached(
                way
                for place in at
                for way in self.steps[place].ways
                if _is_in(codes, self.steps[place].ranges)
            )
            if not at:
                return False
        return any(self.steps[place].ranges is None for place in at)

    def _reached(self, begin: Iterable[int]) -> set[int]:
        """The steps that take a character, and the end, as far as they are reached without one."""
        found, seen, open_steps = set[int](), set[int](), list(begin)
        while open_steps:
            place = open_steps.pop()
            if place in seen:
                continue
            seen.add(place)
            step = self.steps[place]
            if step.ranges is None and step.ways:
                open_steps += step.ways
            else:
                found.add(place)
        return found


@lru_cache(maxsize=256)
def name_pattern(text: str) -> NamePattern:
    """Compile a pattern. Raises ConfigError for one that is none, or that is not understood here:
    in words that name it and the place."""
    if not text:
        raise ConfigError("an empty pattern fits no table; write '.*' for all of them")
    if len(text) > PATTERN_LENGTH_MAX:
        raise ConfigError(
            f"the pattern {text[:40]}… has {len(text)} characters, of {PATTERN_LENGTH_MAX} at most"
        )
    if not text.isprintable():
        raise ConfigError(f"the pattern {text!r} has characters that no name of a table has")
    tree = _Parser(text).whole()
    steps: list[_Step] = [_Step(None, ())]
    begin = _Compiler(text, steps).add(tree, 0)
    return NamePattern(text=text, steps=tuple(steps), begin=begin)


class _Compiler:
    def __init__(self, text: str, steps: list[_Step]) -> None:
        self._text = text
        self._steps = steps
        self._added = 0

    def add(self, node: _Node, after: int) -> int:
        """Add the steps of a node that go on at another one; where they begin."""
        # Counted here and not by steps: repeats of nothing make none.
        self._added += 1
        if self._added > _STEPS_MAX:
            raise ConfigError(
                f"the pattern {self._text} repeats too much: written out it has more than "
                f"{_STEPS_MAX} steps; take * or + for large numbers"
            )
        if isinstance(node, _One):
            return self._step(_Step(node.ranges, (after,)))
        if isinstance(node, _Sequence):
            for part in reversed(node.parts):
                after = self.add(part, after)
            return after
        if isinstance(node, _Choice):
            ways = tuple(self.add(option, after) for option in node.options)
            return self._step(_Step(None, ways))
        return self._repeat(node, after)

    def _repeat(self, node: _Repeat, after: int) -> int:
        if node.most is None:
            loop = self._step(_Step(None, (after,)))
            self._steps[loop] = _Step(None, (self.add(node.part, loop), after))
            begin = loop
        else:
            begin = after
            for _ in range(node.most - node.least):
                begin = self._step(_Step(None, (self.add(node.part, begin), after)))
        for _ in range(node.least):
            begin = self.add(node.part, begin)
        return begin

    def _step(self, step: _Step) -> int:
        self._steps.append(step)
        return len(self._steps) - 1


class _Parser:
    """Reads the plain part of Java's syntax (``java.util.regex.Pattern``)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> _Node:
        found = self._choice(0)
        if self._at < len(self._text):
            raise self._wrong("there is a ) without its (")
        return found

    def _choice(self, depth: int) -> _Node:
        options = [self._sequence(depth)]
        while self._take("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self, depth: int) -> _Node:
        """A name is matched as a whole, so ^ and $ say nothing at the edges, and nothing fits
        elsewhere."""
        parts: list[_Node] = []
        if depth == 0:
            self._take("^")
        while (char := self._peek()) not in ("", "|", ")"):
            if char == "$" and depth == 0 and self._text[self._at + 1 : self._at + 2] in ("", "|"):
                self._at += 1
                continue
            parts.append(self._repeated(depth))
        return _Sequence(tuple(parts))

    def _repeated(self, depth: int) -> _Node:
        part = self._atom(depth)
        char = self._peek()
        if char == "" or char not in _QUANTIFIERS:
            return part
        least, most = self._quantifier()
        self._take("?")  # it takes as little as it can, which is the same for a whole name
        if self._peek() == "+":
            raise self._wrong("a repeat that gives nothing back (possessive) is not understood")
        if self._peek() and self._peek() in _QUANTIFIERS:
            raise self._wrong("a repeat of a repeat needs a group: (…)")
        return _Repeat(part, least, most)

    def _quantifier(self) -> tuple[int, int | None]:
        for char, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(char):
                return counts
        end = self._text.find("}", self._at)
        inside = self._text[self._at + 1 : end] if end >= 0 else ""
        first, comma, second = inside.partition(",")
        numbers = (first, second or first)
        if not all(re.fullmatch("[0-9]{1,4}", number) for number in numbers):
            raise self._wrong("a repeat is {2}, {2,} or {2,5}")
        least, most = int(first), None if comma and not second else int(second or first)
        if most is not None and most < least:
            raise self._wrong("the second number of a repeat is the larger one")
        self._at = end + 1
        return least, most

    def _atom(self, depth: int) -> _Node:
        char = self._text[self._at]
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return _One(self._escaped())
        if char in "^$":
            raise self._wrong(f"{char} stands at an edge of the pattern only")
        if char in _QUANTIFIERS:
            raise self._wrong(f"there is nothing before {char} that it could repeat")
        self._at += 1
        return _One(((0, _LAST),) if char == "." else ((ord(char), ord(char)),))

    def _group(self, depth: int) -> _Node:
        begin = self._at
        if depth >= _DEPTH_MAX:
            raise self._wrong(f"more than {_DEPTH_MAX} groups stand within each other")
        self._at += 1
        if self._take("?") and not self._take(":"):
            raise self._wrong("of groups that begin with (? only (?:…) is understood")
        found = self._choice(depth + 1)
        if not self._take(")"):
            self._at = begin
            raise self._wrong("the ) of this ( is missing")
        return found

    def _class(self) -> _Node:
        begin = self._at
        self._at += 1
        is_negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            if self._peek() == "":
                self._at = begin
                raise self._wrong("the ] of this [ is missing")
            ranges += self._class_part()
        if not ranges:
            self._at = begin
            raise self._wrong("[] holds nothing")
        if is_negated:
            # Before it is turned round: what fits in either case is not in it.
            return _One(_others((*ranges, *_in_other_case(ranges))))
        return _One(tuple(ranges))

    def _class_part(self) -> _Ranges:
        char = self._peek()
        if char == "[" or self._text.startswith("&&", self._at):
            raise self._wrong("a class within a class is not understood; write its characters")
        if char == "\\":
            first = self._escaped()
        else:
            first = ((ord(char), ord(char)),)
            self._at += 1
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("", "]"):
            return first
        self._at += 1
        if self._peek() == "[":
            raise self._wrong("a class within a class is not understood; write its characters")
        last = self._escaped() if self._peek() == "\\" else None
        if last is None:
            last = ((ord(self._peek()), ord(self._peek())),)
            self._at += 1
        if not _is_single(first) or not _is_single(last) or last[0][0] < first[0][0]:
            raise self._wrong("a range goes from one character to a later one")
        return ((first[0][0], last[0][0]),)

    def _escaped(self) -> _Ranges:
        char = self._text[self._at + 1 : self._at + 2]
        if char == "":
            raise self._wrong("nothing follows the last backslash")
        if char.lower() in _CLASSES:
            ranges = _CLASSES[char.lower()]
            self._at += 2
            return _others(ranges) if char.isupper() else ranges
        if char.isalnum():
            raise self._wrong(f"\\{char} is not understood; there are \\d, \\w, \\s, \\D, \\W, \\S")
        self._at += 2
        return ((ord(char), ord(char)),)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        if self._peek() != char:
            return False
        self._at += 1
        return True

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(
            f"the pattern {self._text} is none that is understood: {why} (at character "
            f"{self._at + 1}). A pattern is a regular expression for the whole name of a table, "
            "with . * + ? {} [] () | and backslashes"
        )


def _is_in(codes: set[int], ranges: _Ranges | None) -> bool:
    return any(first <= code <= last for first, last in ranges or () for code in codes)


def _is_single(ranges: _Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _in_other_case(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    letters = (*range(65, 91), *range(97, 123))
    return [
        (code ^ 32, code ^ 32)
        for code in letters
        if any(first <= code <= last for first, last in ranges)
    ]


def _others(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    found, next_code = [], 0
    for first, last in sorted(ranges):
        if first > next_code:
            found.append((next_code, first - 1))
        next_code = max(next_code, last + 1)
    if next_code <= _LAST:
        found.append((next_code, _LAST))
    return tuple(found)
