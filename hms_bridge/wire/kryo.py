"""A bounded reader of object graphs in the serialised form of Kryo 5, with references.

It reads only classes whose fields it was told (:class:`Layouts`), builds plain records of them,
and never makes an instance of a class that the bytes name: a name is a key into that table and
nothing else. What it does not know, or what goes past a limit, raises UnreadableError.

The form (Kryo 5's ``Input``, ``Kryo.readClassAndObject``, ``FieldSerializer``,
``CollectionSerializer``): fields stand in the order of their names; a field whose class is final
is written without its class; an object is written once, later as a reference to its number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from hms_bridge.errors import HmsBridgeError

DEPTH_MAX = 120
OBJECTS_MAX = 200_000
BYTES_MAX = 8 * 1024 * 1024

ANY = "any"
"""A field whose class stands in the bytes."""
STRINGS = "strings"
"""A field declared as a list of strings: the class of its elements is left out."""

_NULL, _NEW = 0, 1
_UNFINISHED = object()
_PRIMITIVES = ("int", "string", "float", "boolean", "byte", "char", "short", "long", "double")
"""What Kryo registers by itself, by number."""


class UnreadableError(HmsBridgeError):
    """The bytes hold something that this reader does not take."""


@dataclass(frozen=True, slots=True)
class KryoObject:
    """An object: the name of its class, and its fields."""

    class_name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layouts:
    """What a reader knows: by class name, its fields with their kinds, in the order of names.

    A kind is a primitive of Java's, ``ANY``, ``STRINGS``, or the name of a final class.
    """

    objects: Mapping[str, Sequence[tuple[str, str]]]
    lists: frozenset[str]
    """Classes written as collections."""
    arrays: frozenset[str]
    """Arrays of objects."""
    enums: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of an enum's constants; such a class is final."""


class KryoReader:
    """Reads one graph."""

    def __init__(self, data: bytes, layouts: Layouts) -> None:
        if len(data) > BYTES_MAX:
            raise UnreadableError(f"{len(data)} bytes; at most {BYTES_MAX} are read")
        self._data = data
        self._place = 0
        self._layouts = layouts
        self._class_names: list[str] = []
        self._seen: list[Any] = []
        self._depth = 0
        self._count = 0

    def read(self) -> Any:
        """The root with its class. Raises UnreadableError, also for bytes that are left."""
        found = self._class_and_object()
        if self._place != len(self._data):
            raise UnreadableError(f"{len(self._data) - self._place} bytes are left at the end")
        return found

    # --- objects -------------------------------------------------------------------------------

    def _class_and_object(self) -> Any:
        name = self._class()
        return None if name is None else self._object(name, may_be_null=False)

    def _class(self) -> str | None:
        number = self._varint()
        if number == _NULL:
            return None
        if number == _NEW:
            index = self._varint()
            if index < len(self._class_names):
                return self._class_names[index]
            if index > len(self._class_names):
                raise self._error(f"class number {index} was never named")
            self._class_names.append(self._string() or "")
            return self._class_names[index]
        if number - 2 < len(_PRIMITIVES):
            return _PRIMITIVES[number - 2]
        raise self._error(f"registered class {number - 2}")

    def _object(self, name: str, *, may_be_null: bool) -> Any:
        """An object of a known class; its place among the references is taken before it is read."""
        if name in _VALUES or name in self._layouts.enums:  # these are never referred to
            if may_be_null and self._varint() == _NULL:
                return None
            return self._content(name)
        number = self._varint()
        if number == _NULL and may_be_null:
            return None
        if number == _NEW:
            index = len(self._seen)
            self._seen.append(_UNFINISHED)
            found = self._content(name)
            self._seen[index] = found
            return found
        if not 0 <= number - 2 < len(self._seen):
            raise self._error(f"a reference to object {number - 2}, which was not there before")
        if self._seen[number - 2] is _UNFINISHED:
            raise self._error(f"a reference to object {number - 2} from inside itself")
        return self._seen[number - 2]

    def _content(self, name: str) -> Any:
        self._counted(1)
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._error(f"more than {DEPTH_MAX} objects inside each other")
        try:
            return self._content_of(name)
        finally:
            self._depth -= 1

    def _content_of(self, name: str) -> Any:
        layouts = self._layouts
        if name in layouts.objects:
            fields = {key: self._field(kind) for key, kind in layouts.objects[name]}
            return KryoObject(name, fields)
        if name in layouts.lists:
            return self._collection()
        if name in layouts.arrays:
            return tuple(self._class_and_object() for _ in range(self._length(self._varint())))
        if name in layouts.enums:
            return self._enum(layouts.enums[name])
        read = _VALUES.get(name) or _FINAL.get(name)
        if read is None:
            raise self._error(f"class {name[:200]!r}")
        return read(self)

    def _field(self, kind: str) -> Any:
        if kind == ANY:
            return self._class_and_object()
        if kind == STRINGS:
            name = self._class()
            return None if name is None else self._strings(name)
        if kind in _VALUES:
            return _VALUES[kind](self)
        return self._object(kind, may_be_null=True)

    def _collection(self) -> tuple[Any, ...] | None:
        is_one_class, length = self._flag_varint()
        if length == 0:
            return None
        length = self._length(length)
        if length == 0:
            return ()
        if not is_one_class:
            return tuple(self._class_and_object() for _ in range(length))
        name = self._class()
        if name is None:
            self._counted(length)  # they take no bytes at all
            return (None,) * length
        has_null = self._boolean()
        return tuple(self._object(name, may_be_null=has_null) for _ in range(length))

    def _strings(self, name: str) -> tuple[Any, ...]:
        if name not in self._layouts.lists:
            raise self._error(f"{name[:200]!r} where a list is due")
        if self._varint() != _NEW:
            raise self._error("a list of strings that is shared")
        index = len(self._seen)
        self._seen.append(_UNFINISHED)
        has_null, length = self._flag_varint()
        found = tuple(
            self._object("string", may_be_null=has_null) for _ in range(self._length(length))
        )
        self._seen[index] = found
        return found

    def _counted(self, count: int) -> None:
        self._count += count
        if self._count > OBJECTS_MAX:
            raise self._error(f"more than {OBJECTS_MAX} objects")

    def _length(self, stored: int) -> int:
        """Lengths are stored plus one; an element takes a byte at least."""
        if stored < 1 or stored - 1 > len(self._data) - self._place:
            raise self._error(f"a length of {stored - 1}")
        return stored - 1

    def _enum(self, names: Sequence[str]) -> str | None:
        number = self._varint()
        if number > len(names):
            raise self._error(f"constant {number - 1} of an enum")
        return names[number - 1] if number else None

    # --- bytes ---------------------------------------------------------------------------------

    def _byte(self) -> int:
        if self._place >= len(self._data):
            raise self._error("the end of the bytes")
        self._place += 1
        return self._data[self._place - 1]

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._place : self._place + count]
        if len(found) < count:
            raise self._error("the end of the bytes")
        self._place += count
        return found

    def _boolean(self) -> bool:
        return self._byte() == 1

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _varint(self, first_bits: int = 7, first: int | None = None, bits: int = 32) -> int:
        """Seven bits a byte, lowest first; at most ``bits``."""
        byte = self._byte() if first is None else first
        found = byte & ((1 << first_bits) - 1)
        shift, is_more = first_bits, bool(byte >> first_bits & 1)
        while is_more:
            if shift >= bits:
                raise self._error("a number that is too long")
            byte = self._byte()
            if shift == 56:  # the ninth byte of a long is whole
                found |= byte << shift
                break
            found |= (byte & 0x7F) << shift
            shift, is_more = shift + 7, byte >= 0x80
        return found & ((1 << bits) - 1)

    def _flag_varint(self) -> tuple[bool, int]:
        """The highest bit of the first byte is a flag."""
        byte = self._byte()
        return byte >= 0x80, self._varint(6, byte & 0x7F)

    def _signed(self, bits: int = 32) -> int:
        found = self._varint(bits=bits)
        return (found >> 1) ^ -(found & 1)

    def _string(self) -> str | None:
        """Either ASCII whose last byte has its high bit set, or a length and UTF-16 units."""
        if self._place < len(self._data) and self._data[self._place] < 0x80:
            return self._ascii()
        _, stored = self._flag_varint()
        if stored == 0:
            return None
        units = bytearray()
        for _ in range(self._length(stored)):
            units += struct.pack("<H", self._unit())
        try:
            return units.decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self._error("half a character") from error

    def _ascii(self) -> str:
        start = self._place
        while self._byte() < 0x80:
            pass
        found = self._data[start : self._place]
        return (found[:-1] + bytes([found[-1] & 0x7F])).decode("ascii")

    def _unit(self) -> int:
        first = self._byte()
        if first < 0x80:
            return first
        if first >> 5 == 0b110:
            return (first & 0x1F) << 6 | self._byte() & 0x3F
        if first >> 4 == 0b1110:
            return (first & 0x0F) << 12 | (self._byte() & 0x3F) << 6 | self._byte() & 0x3F
        raise self._error("a byte that begins no character")

    def _date(self) -> tuple[int, ...]:
        """Year, month, day. Raises UnreadableError unless it is in a calendar of four digits."""
        parts = (self._varint(), self._byte(), self._byte())
        try:
            date(*parts)
        except (ValueError, OverflowError) as error:
            raise self._error(f"no date: {parts}") from error
        return parts

    def _date_and_time(self) -> tuple[int, ...]:
        """Year to second, and nanoseconds. Zeros at the end are left out: the last part that is
        there stands inverted (Kryo's LocalTimeSerializer)."""
        parts = list(self._date())
        for _ in range(3):
            part = self._number("<b")
            parts.append(~part if part < 0 else part)
            if part < 0:
                return (*parts, *(0,) * (7 - len(parts)))
        return (*parts, self._varint())

    def _byte_array(self) -> bytes:
        return self._bytes(self._length(self._varint()))

    def _error(self, what: str) -> UnreadableError:
        return UnreadableError(f"at byte {self._place}: {what}")


def _fixed(form: str) -> Callable[[KryoReader], Any]:
    return lambda reader: reader._number(form)


_VALUES: Mapping[str, Callable[[KryoReader], Any]] = {
    "int": lambda reader: reader._signed(),
    "long": lambda reader: reader._signed(64),
    "boolean": lambda reader: reader._boolean(),
    "float": _fixed("<f"),
    "double": _fixed("<d"),
    "short": _fixed("<h"),
    "byte": _fixed("<b"),
    "char": _fixed("<H"),
}
"""Boxed values: Kryo keeps no references to them."""
_FINAL: Mapping[str, Callable[[KryoReader], Any]] = {
    "string": lambda reader: reader._string(),
    "[B": lambda reader: reader._byte_array(),
    "java.time.LocalDate": lambda reader: reader._date(),
    "java.time.LocalDateTime": lambda reader: reader._date_and_time(),
}
