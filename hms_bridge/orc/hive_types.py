"""Hive's type texts, for example ``struct<a:int,b:decimal(10,2)>``, to and from the type tree."""

from __future__ import annotations

import re
from typing import Final

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.types import CHILD_COUNTS, TYPE_DEPTH_MAX, OrcKind, OrcType, struct_type

_HIVE_NAMES: Final[dict[OrcKind, str]] = {
    OrcKind.BOOLEAN: "boolean",
    OrcKind.BYTE: "tinyint",
    OrcKind.SHORT: "smallint",
    OrcKind.INT: "int",
    OrcKind.LONG: "bigint",
    OrcKind.FLOAT: "float",
    OrcKind.DOUBLE: "double",
    OrcKind.STRING: "string",
    OrcKind.BINARY: "binary",
    OrcKind.TIMESTAMP: "timestamp",
    OrcKind.TIMESTAMP_INSTANT: "timestamp with local time zone",
    OrcKind.DATE: "date",
}
_KINDS: Final[dict[str, OrcKind]] = {
    **{name: kind for kind, name in _HIVE_NAMES.items()},
    "integer": OrcKind.INT,
    "double precision": OrcKind.DOUBLE,
    "timestamplocaltz": OrcKind.TIMESTAMP_INSTANT,
}
DECIMAL_PRECISION_MAX: Final = 38
CHAR_LENGTH_MAX: Final = 255
VARCHAR_LENGTH_MAX: Final = 65535
_COLUMN: Final = re.compile(r"\s*(\w+)(?:\s*:|\s+)")


def hive_type_text(node: OrcType) -> str:
    """The type as Hive writes it, for example ``struct<a:int,b:decimal(10,2)>``."""
    texts = [hive_type_text(child) for child in node.children]
    match node.kind:
        case OrcKind.LIST:
            return f"array<{texts[0]}>"
        case OrcKind.MAP:
            return f"map<{texts[0]},{texts[1]}>"
        case OrcKind.STRUCT:
            fields = (f"{name}:{text}" for name, text in zip(node.names, texts, strict=True))
            return f"struct<{','.join(fields)}>"
        case OrcKind.UNION:
            return f"uniontype<{','.join(texts)}>"
        case OrcKind.DECIMAL:
            return f"decimal({node.precision},{node.scale})"
        case OrcKind.VARCHAR | OrcKind.CHAR:
            return f"{node.kind.name.lower()}({node.maximum_length})"
        case _:
            return _HIVE_NAMES[node.kind]


class _HiveTypeParser:
    """Recursive descent over one type text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parse(self) -> OrcType:
        node = self._type(0)
        self._require_end()
        return node

    def columns(self) -> OrcType:
        names: list[str] = []
        children: list[OrcType] = []
        while not names or self._peek() == ",":
            self._at += bool(names)
            column = _COLUMN.match(self._text, self._at)
            if column is None:
                raise self._error("a column's name and type are missing")
            self._at = column.end()
            names.append(column[1])
            children.append(self._type(1))
        self._require_end()
        return struct_type(names, children)

    def _require_end(self) -> None:
        if self._at != len(self._text):
            raise self._error("text after the type")

    def _error(self, what: str) -> AcidFormatError:
        return AcidFormatError(f"type {self._text!r}: {what} at position {self._at}")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"{character!r} is missing")
        self._at += 1
        while self._peek().isspace():
            self._at += 1

    def _until(self, stops: str) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in stops:
            self._at += 1
        return self._text[start : self._at].strip()

    def _type(self, depth: int) -> OrcType:
        if depth > TYPE_DEPTH_MAX:
            raise self._error(f"more than {TYPE_DEPTH_MAX} levels")
        name = self._until("<>(),:").lower()
        if name == "struct":
            return self._struct(depth)
        nested = {"array": OrcKind.LIST, "map": OrcKind.MAP, "uniontype": OrcKind.UNION}.get(name)
        if nested is not None:
            children = self._children(depth)
            if len(children) != CHILD_COUNTS.get(nested, len(children)):
                raise self._error(f"{name} of {len(children)} types")
            return OrcType(kind=nested, children=children)
        if name in {"decimal", "char", "varchar"}:
            return self._sized(name)
        if name not in _KINDS:
            raise self._error(f"{name!r} is no Hive type that ORC can hold")
        return OrcType(kind=_KINDS[name])

    def _children(self, depth: int) -> tuple[OrcType, ...]:
        self._expect("<")
        children = [self._type(depth + 1)]
        while self._peek() == ",":
            self._at += 1
            children.append(self._type(depth + 1))
        self._expect(">")
        return tuple(children)

    def _struct(self, depth: int) -> OrcType:
        names: list[str] = []
        children: list[OrcType] = []
        self._expect("<")
        while self._peek() != ">":
            if names:
                self._expect(",")
            names.append(self._until(":").strip("`"))
            self._expect(":")
            children.append(self._type(depth + 1))
        self._expect(">")
        return struct_type(names, children)

    def _sized(self, name: str) -> OrcType:
        numbers = [10, 0] if name == "decimal" else []
        if self._peek() == "(":
            self._at += 1
            words = self._until(")").split(",")
            self._expect(")")
            if not all(word.strip().isdecimal() for word in words):
                raise self._error(f"{name} wants numbers in its brackets")
            numbers = [int(word) for word in words]
        if name == "decimal":
            precision, scale = (*numbers, 0)[:2]
            if not (0 < precision <= DECIMAL_PRECISION_MAX and scale <= precision):
                raise self._error(f"decimal({precision},{scale}) is out of bounds")
            return OrcType(kind=OrcKind.DECIMAL, precision=precision, scale=scale)
        limit = CHAR_LENGTH_MAX if name == "char" else VARCHAR_LENGTH_MAX
        if len(numbers) != 1 or not 0 < numbers[0] <= limit:
            raise self._error(f"{name} wants a length from 1 to {limit}")
        return OrcType(kind=OrcKind[name.upper()], maximum_length=numbers[0])


def parse_hive_type(text: str) -> OrcType:
    """The type that Hive's text means. Raises AcidFormatError naming text and position."""
    return _HiveTypeParser(text).parse()


def parse_column_list(text: str) -> OrcType:
    """The struct of columns that a person lists: ``id int,name varchar(10)``, or with colons.

    Raises AcidFormatError naming text and position.
    """
    return _HiveTypeParser(text).columns()
