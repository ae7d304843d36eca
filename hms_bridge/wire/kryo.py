"""A bounded reader of object graphs in the serialised form of Kryo 5, with references.

It reads only classes whose fields it was given (:class:`Layouts`), builds plain records of them,
and never makes an instance of a class that the bytes name: a name is a key into that table and
nothing else. What it does not know, or what goes past a limit, raises UnreadableError.

The form (``Kryo.readClassAndObject``, ``FieldSerializer``,
``CollectionSerializer``): fields stand in the order of their names; a field whose class is final
is written without its class; an object is written once, later as a reference to its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_bridge.wire.kryo_input import KryoInput, UnreadableError

DEPTH_MAX = 120
OBJECTS_MAX = 200_000

ANY = "any"
"""A field whose class stands in the bytes."""
STRINGS = "strings"
"""A field declared as a list of strings: the class of its elements is left out."""

_NULL, _NEW = 0, 1
_UNFINISHED = object()
_PRIMITIVES = ("int", "string", "float", "boolean", "byte", "char", "short", "long", "double")
"""What Kryo registers by itself, by number."""


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
        self._input = KryoInput(data)
        self._layouts = layouts
        self._class_names: list[str] = []
        self._seen: list[Any] = []
        self._depth = 0
        self._count = 0

    def read(self) -> Any:
        """The root with its class. Raises UnreadableError, also for bytes that are left."""
        value = self._class_and_object()
        if self._input.left:
            raise UnreadableError(f"{self._input.left} bytes are left at the end")
        return value

    def _class_and_object(self) -> Any:
        name = self._class()
        return None if name is None else self._object(name, may_be_null=False)

    def _class(self) -> str | None:
        number = self._input.varint()
        if number == _NULL:
            return None
        if number == _NEW:
            index = self._input.varint()
            if index < len(self._class_names):
                return self._class_names[index]
            if index > len(self._class_names):
                raise self._input.error(f"class number {index} was never named")
            self._class_names.append(self._input.string() or "")
            return self._class_names[index]
        if number - 2 < len(_PRIMITIVES):
            return _PRIMITIVES[number - 2]
        raise self._input.error(f"registered class {number - 2}")

    def _object(self, name: str, *, may_be_null: bool) -> Any:
        """An object of a known class; its place among the references is taken before it is read."""
        if name in _VALUES or name in self._layouts.enums:  # these are never referred to
            if may_be_null and self._input.varint() == _NULL:
                return None
            return self._content(name)
        number = self._input.varint()
        if number == _NULL and may_be_null:
            return None
        if number == _NEW:
            index = len(self._seen)
            self._seen.append(_UNFINISHED)
            value = self._content(name)
            self._seen[index] = value
            return value
        if not 0 <= number - 2 < len(self._seen):
            raise self._input.error(
                f"a reference to object {number - 2}, which was not there before"
            )
        if self._seen[number - 2] is _UNFINISHED:
            raise self._input.error(f"a reference to object {number - 2} from inside itself")
        return self._seen[number - 2]

    def _content(self, name: str) -> Any:
        self._counted(1)
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._input.error(f"more than {DEPTH_MAX} objects inside each other")
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
            return tuple(
                self._class_and_object() for _ in range(self._input.length(self._input.varint()))
            )
        if name in layouts.enums:
            return self._enum(layouts.enums[name])
        read = _VALUES.get(name) or _FINAL.get(name)
        if read is None:
            raise self._input.error(f"class {name[:200]!r}")
        return read(self._input)

    def _field(self, kind: str) -> Any:
        if kind == ANY:
            return self._class_and_object()
        if kind == STRINGS:
            name = self._class()
            return None if name is None else self._strings(name)
        if kind in _VALUES:
            return _VALUES[kind](self._input)
        return self._object(kind, may_be_null=True)

    def _collection(self) -> tuple[Any, ...] | None:
        is_one_class, length = self._input.flag_varint()
        if length == 0:
            return None
        length = self._input.length(length)
        if length == 0:
            return ()
        if not is_one_class:
            return tuple(self._class_and_object() for _ in range(length))
        name = self._class()
        if name is None:
            self._counted(length)  # they take no bytes at all
            return (None,) * length
        has_null = self._input.boolean()
        return tuple(self._object(name, may_be_null=has_null) for _ in range(length))

    def _strings(self, name: str) -> tuple[Any, ...]:
        if name not in self._layouts.lists:
            raise self._input.error(f"{name[:200]!r} where a list is due")
        if self._input.varint() != _NEW:
            raise self._input.error("a list of strings that is shared")
        index = len(self._seen)
        self._seen.append(_UNFINISHED)
        has_null, length = self._input.flag_varint()
        texts = tuple(
            self._object("string", may_be_null=has_null) for _ in range(self._input.length(length))
        )
        self._seen[index] = texts
        return texts

    def _counted(self, count: int) -> None:
        self._count += count
        if self._count > OBJECTS_MAX:
            raise self._input.error(f"more than {OBJECTS_MAX} objects")

    def _enum(self, names: Sequence[str]) -> str | None:
        number = self._input.varint()
        if number > len(names):
            raise self._input.error(f"constant {number - 1} of an enum")
        return names[number - 1] if number else None


def _fixed(form: str) -> Callable[[KryoInput], Any]:
    return lambda given: given.number(form)


_VALUES: Mapping[str, Callable[[KryoInput], Any]] = {
    "int": KryoInput.signed,
    "long": lambda given: given.signed(64),
    "boolean": KryoInput.boolean,
    "float": _fixed("<f"),
    "double": _fixed("<d"),
    "short": _fixed("<h"),
    "byte": _fixed("<b"),
    "char": _fixed("<H"),
}
"""Boxed values: Kryo keeps no references to them."""
_FINAL: Mapping[str, Callable[[KryoInput], Any]] = {
    "string": KryoInput.string,
    "[B": KryoInput.byte_array,
    "java.time.LocalDate": KryoInput.date,
    "java.time.LocalDateTime": KryoInput.date_and_time,
}
