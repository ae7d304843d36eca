"""Lists of thousands of structs as bytes, for those few answers that are that long.

thrift's encoder wants an object for each element, and to make those takes several times as long as
to ask the database for their values. Whoever writes such a list by hand
(:mod:`hms_bridge.wire.lock_bytes`, :mod:`hms_bridge.wire.partition_bytes`) lets thrift encode what
many elements share, once, and puts only what is an element's own in between. Tests compare the
bytes with those that thrift makes of the objects.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    pieces: Sequence[bytes]
    """Put together once, with all of the message: it may be a megabyte."""


def struct_pieces(struct: Struct) -> list[bytes]:
    """A struct that may have such lists."""
    values = vars(struct).values()
    if not any(map(_holds_encoded, values)):
        return [_plain(struct)]
    pieces = [piece for field in _set_fields(struct) for piece in _field_pieces(field)]
    pieces.append(END)
    return pieces


def field_bytes(struct: Struct) -> bytes:
    """The fields of a plain struct without the end, so that others may follow."""
    return _plain(struct)[: -len(END)]


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


def _plain(struct: Struct) -> bytes:
    encoded: bytes = encode_binary(struct, [type(struct), struct.thrift_spec])
    return encoded


def _holds_encoded(value: Any) -> bool:
    if isinstance(value, Struct):
        return any(type(inner) is EncodedStructs for inner in vars(value).values())
    return type(value) is EncodedStructs


def _set_fields(struct: Struct) -> list[tuple[type[Struct], str, Any]]:
    names = [entry[2] for entry in struct.thrift_spec if entry is not None]
    values = [(name, getattr(struct, name)) for name in names]
    return [(type(struct), name, value) for name, value in values if value is not None]


def _field_pieces(field: tuple[type[Struct], str, Any]) -> Sequence[bytes]:
    struct, name, value = field
    if isinstance(value, EncodedStructs):
        start = _LIST_START.pack(TType.STRUCT, value.count)
        return (field_header(struct, name), start, *value.pieces)
    if _holds_encoded(value):
        return (field_header(struct, name), *struct_pieces(value))
    return (field_bytes(struct(**{name: value})),)
