"""Which methods a Java interface in somebody's jars has, without running them.

The layout of a class file: The Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from integration.referees.errors import RefereeError

_UTF8, _CLASS = 1, 7
_SIZES = {
    3: 4, 4: 4, 5: 8, 6: 8, _CLASS: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4,
    19: 2, 20: 2,
}  # fmt: skip
"""How many bytes a constant of each kind has."""
_OF_TWO_PLACES = (5, 6)


def interface_methods(class_path: Sequence[str], name: str) -> set[str]:
    """Names of the methods of an interface (as `package/Outer$Inner`), with those of the ones that
    it extends. Raises RefereeError if none of the jars has it."""
    for jar in _jars(class_path):
        with zipfile.ZipFile(jar) as archive:
            if f"{name}.class" in archive.namelist():
                parents, methods = _read(archive.read(f"{name}.class"))
                return methods.union(*(interface_methods(class_path, parent) for parent in parents))
    raise RefereeError(f"no jar has {name}: {' '.join(class_path)}")


def _jars(class_path: Sequence[str]) -> Iterator[Path]:
    for entry in class_path:
        path = Path(entry)
        if path.name == "*":
            yield from sorted(path.parent.glob("*.jar"))
        elif path.suffix == ".jar":
            yield path


def _read(content: bytes) -> tuple[list[str], set[str]]:
    """The names of the interfaces that one extends, and of its methods."""
    stream = io.BytesIO(content)
    stream.seek(8)  # what it is, and of which version
    constants = _constants(stream)

    def class_name() -> str:
        (place,) = struct.unpack(">H", constants[_short(stream)])
        return constants[place].decode()

    stream.seek(6, io.SEEK_CUR)  # access, its own name, that of Object
    parents = [class_name() for _ in range(_short(stream))]
    _members(stream, constants)  # its fields
    return parents, _members(stream, constants)


def _constants(stream: io.BytesIO) -> dict[int, bytes]:
    """By their places."""
    constants: dict[int, bytes] = {}
    place, end = 1, _short(stream)
    while place < end:
        (kind,) = stream.read(1)
        constants[place] = stream.read(_short(stream) if kind == _UTF8 else _SIZES[kind])
        place += 2 if kind in _OF_TWO_PLACES else 1
    return constants


def _members(stream: io.BytesIO, constants: dict[int, bytes]) -> set[str]:
    """The names of the fields, or methods, that come next."""
    names = set()
    for _ in range(_short(stream)):
        _access, name, _type, attributes = struct.unpack(">4H", stream.read(8))
        names.add(constants[name].decode())
        for _ in range(attributes):
            _what, length = struct.unpack(">HI", stream.read(6))
            stream.seek(length, io.SEEK_CUR)
    return names


def _short(stream: io.BytesIO) -> int:
    (value,) = struct.unpack(">H", stream.read(2))
    return int(value)
