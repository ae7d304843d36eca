"""Lists of thousands of structs as bytes, for those few answers that are that long.

thrift's encoder wants an object for each element, and to make those takes several times as long as
to ask the database for their values. Whoever writes such a list by hand
(:mod:`hms_bridge.wire.lock_bytes`, :mod:`hms_bridge.wire.partition_bytes`) lets thrift encode what
many elements share, once, and puts only what is an element's own in between. Tests compare the
bytes with those that thrift makes of the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct as BinaryLayout
from typing import Any

from thrift.protocol.fastbinary import encode_binary
from thrift.Thrift import TType

from hms_bridge.wire.structs import Struct

END = bytes([TType.STOP])
"""Stands behind the last field of a struct."""

_HEADER = BinaryLayout("!bh")
_LENGTH = BinaryLayout("!i").pack
_LIST_START = BinaryLayout("!bi")


@dataclass(frozen=True, slots=True)
class EncodedStructs:
    """A list of structs as thrift's binary protocol has it, without its header. It stands for the
    list itself in an answer, or in a field of a struct that is one."""

    count: int
    pieces: Iterable[bytes]
    """Each of some elements, or of a part of one. They are asked for once, in their order, some of
    them when others are sent already: what can fail is to be done before."""


def is_plain(struct: Struct) -> bool:
    """Whether it has no such lists."""
    return not any(map(_holds_encoded, vars(struct).values()))


def plain_bytes(struct: Struct) -> bytes:
    """A struct without such lists."""
    encoded: bytes = encode_binary(struct, [type(struct), struct.thrift_spec])
    return encoded


def struct_pieces(struct: Struct) -> Iterator[bytes]:
    """A struct that has such lists; a plain one is made at once by :func:`plain_bytes`."""
    for name, value in _set_fields(struct):
        yield from _field_pieces(type(struct), name, value)
    yield END


def field_bytes(struct: Struct) -> bytes:
    """The fields of a plain struct without the end, so that others may follow."""
    return plain_bytes(struct)[: -len(END)]


def field_header(struct: type[Struct], name: str) -> bytes:
    """What stands before a field's value."""
    for entry in struct.thrift_spec:
        if entry is not None and entry[2] == name:
            return _HEADER.pack(entry[1], entry[0])
    raise AttributeError(f"{struct.__name__} has no field {name}")


def text_bytes(text: str) -> bytes:
    """A text without its header."""
    encoded = text.encode()
    return _LENGTH(len(encoded)) + encoded


def _holds_encoded(value: Any) -> bool:
    if isinstance(value, Struct):
        return any(type(inner) is EncodedStructs for inner in vars(value).values())
    return type(value) is EncodedStructs


def _set_fields(struct: Struct) -> list[tuple[str, Any]]:
    names = [entry[2] for entry in struct.thrift_spec if entry is not None]
    values = [(name, getattr(struct, name)) for name in names]
    return [(name, value) for name, value in values if value is not None]


def _field_pieces(struct: type[Struct], name: str, value: Any) -> Iterator[bytes]:
    if isinstance(value, EncodedStructs):
        yield field_header(struct, name) + _LIST_START.pack(TType.STRUCT, value.count)
        yield from value.pieces
    elif _holds_encoded(value):
        yield field_header(struct, name)
        yield from struct_pieces(value)
    else:
        yield field_bytes(struct(**{name: value}))
