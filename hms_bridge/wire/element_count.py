"""Counts the elements of a thrift struct while its bytes arrive, before they become objects.

An empty struct is one byte on the wire and 150 bytes in memory, so the size of a message does not
bound what it costs. What counts is every field, and every entry of a list, set or map.
"""

from __future__ import annotations

from struct import Struct as BinaryLayout

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType

_LENGTH = BinaryLayout("!i")
_LIST_HEAD = BinaryLayout("!bi")
_MAP_HEAD = BinaryLayout("!bbi")
_FIELD_HEAD_BYTES = 3
_SIZES = {
    TType.BOOL: 1, TType.BYTE: 1, TType.I16: 2, TType.I32: 4, TType.I64: 8, TType.DOUBLE: 8,
}  # fmt: skip


class ElementCounter:
    """Follows one struct in thrift's binary protocol, chunk after chunk.

    What is malformed is left to the decoder: nothing is counted from there on.
    """

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = 0
        self._rest = b""
        self._skipped_bytes = 0
        # Of each struct that is open None, of each container the types of its entries, by turns,
        # and how many are to come.
        self._open: list[list[int] | None] = [None]

    @property
    def count(self) -> int:
        """Elements so far."""
        return self._count

    def feed(self, chunk: bytes) -> None:
        """The next bytes. Raises TProtocolException when there are too many elements."""
        if not self._open:
            return
        data = self._rest + chunk
        place = min(self._skipped_bytes, len(data))
        self._skipped_bytes -= place
        while self._open and not self._skipped_bytes:
            after = self._step(data, place)
            if after is None:
                break
            place = min(after, len(data))
            self._skipped_bytes = after - place
        self._rest = data[place:]

    def _step(self, data: bytes, place: int) -> int | None:
        """Go past a value or an end; the place behind it, None if the bytes do not say yet."""
        inside = self._open[-1]
        if inside is not None:
            if inside[2] == 0:
                self._open.pop()
                return place
            after = self._value(data, place, inside[inside[2] % 2])
            if after is not None:
                inside[2] -= 1
            return after
        if place >= len(data):
            return None
        if data[place] == TType.STOP:
            self._open.pop()
            return place + 1
        after = self._value(data, place + _FIELD_HEAD_BYTES, data[place])
        if after is not None:
            self._add(1)
        return after

    def _value(self, data: bytes, place: int, kind: int) -> int | None:
        if place > len(data):
            return None
        if kind in _SIZES:
            return place + _SIZES[kind]
        if kind == TType.STRUCT:
            self._open.append(None)
            return place
        head = _HEADS.get(kind)
        if head is None:
            return self._give_up(data)
        if place + head.size > len(data):
            return None
        *kinds, count = head.unpack_from(data, place)
        if count < 0:
            return self._give_up(data)
        place += head.size
        return place + count if not kinds else self._entries(place, kinds, count)

    def _entries(self, place: int, kinds: list[int], count: int) -> int:
        self._add(count * len(kinds))
        if all(kind in _SIZES for kind in kinds):
            return place + count * sum(_SIZES[kind] for kind in kinds)
        # An even number is to come before a key, so the types stand as [key, value].
        self._open.append([kinds[0], kinds[-1], count * len(kinds)])
        return place

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > self._count_max:
            raise TProtocolException(
                TProtocolException.SIZE_LIMIT,
                f"a message holds more than {self._count_max} elements; send less at a time",
            )

    def _give_up(self, data: bytes) -> int:
        self._open.clear()
        return len(data)


_HEADS = {
    TType.STRING: _LENGTH, TType.LIST: _LIST_HEAD, TType.SET: _LIST_HEAD, TType.MAP: _MAP_HEAD,
}  # fmt: skip
