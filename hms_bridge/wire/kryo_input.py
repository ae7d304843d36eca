"""The bytes of Kryo 5: numbers, texts and dates as its ``Input`` and default serializers read them.

What is cut short, too long or no value of its kind raises UnreadableError with its place.
"""

from __future__ import annotations

import struct
from datetime import date
from typing import Any

from hms_bridge.errors import HmsBridgeError

BYTES_MAX = 8 * 1024 * 1024


class UnreadableError(HmsBridgeError):
    """The bytes hold something that this reader does not take."""


class KryoInput:
    """A place in some bytes; each read moves it on."""

    def __init__(self, data: bytes) -> None:
        if len(data) > BYTES_MAX:
            raise UnreadableError(f"{len(data)} bytes; at most {BYTES_MAX} are read")
        self._data = data
        self._place = 0

    @property
    def left(self) -> int:
        """How many bytes are not read yet."""
        return len(self._data) - self._place

    def byte(self) -> int:
        """One byte, 0 to 255."""
        if self._place >= len(self._data):
            raise self.error("the end of the bytes")
        self._place += 1
        return self._data[self._place - 1]

    def take(self, count: int) -> bytes:
        """So many bytes as they are."""
        content = self._data[self._place : self._place + count]
        if len(content) < count:
            raise self.error("the end of the bytes")
        self._place += count
        return content

    def boolean(self) -> bool:
        """One byte, which is 1 for true."""
        return self.byte() == 1

    def number(self, form: str) -> Any:
        """A number of fixed length; ``form`` is one of the module struct."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def varint(self, first_bits: int = 7, first: int | None = None, bits: int = 32) -> int:
        """Seven bits a byte, lowest first; at most ``bits``."""
        byte = self.byte() if first is None else first
        number = byte & ((1 << first_bits) - 1)
        shift, is_more = first_bits, bool(byte >> first_bits & 1)
        while is_more:
            if shift >= bits:
                raise self.error("a number that is too long")
            byte = self.byte()
            if shift == 56:  # the ninth byte of a long is whole
                number |= byte << shift
                break
            number |= (byte & 0x7F) << shift
            shift, is_more = shift + 7, byte >= 0x80
        return number & ((1 << bits) - 1)

    def flag_varint(self) -> tuple[bool, int]:
        """The highest bit of the first byte is a flag."""
        byte = self.byte()
        return byte >= 0x80, self.varint(6, byte & 0x7F)

    def length(self, stored: int) -> int:
        """Lengths are stored plus one; an element takes a byte at least."""
        if stored < 1 or stored - 1 > self.left:
            raise self.error(f"a length of {stored - 1}")
        return stored - 1

    def array_length(self) -> int:
        """The length that stands before an array's elements."""
        return self.length(self.varint())

    def signed(self, bits: int = 32) -> int:
        """A varint whose lowest bit is the sign."""
        number = self.varint(bits=bits)
        return (number >> 1) ^ -(number & 1)

    def string(self) -> str | None:
        """Either ASCII whose last byte has its high bit set, or a length and UTF-16 units."""
        if self._place < len(self._data) and self._data[self._place] < 0x80:
            return self._ascii()
        _, stored = self.flag_varint()
        if stored == 0:
            return None
        units = bytearray()
        for _ in range(self.length(stored)):
            units += struct.pack("<H", self._unit())
        try:
            return units.decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self.error("half a character") from error

    def _ascii(self) -> str:
        start = self._place
        while self.byte() < 0x80:
            pass
        content = self._data[start : self._place]
        return (content[:-1] + bytes([content[-1] & 0x7F])).decode("ascii")

    def _unit(self) -> int:
        first = self.byte()
        if first < 0x80:
            return first
        if first >> 5 == 0b110:
            return (first & 0x1F) << 6 | self.byte() & 0x3F
        if first >> 4 == 0b1110:
            return (first & 0x0F) << 12 | (self.byte() & 0x3F) << 6 | self.byte() & 0x3F
        raise self.error("a byte that begins no character")

    def date(self) -> tuple[int, ...]:
        """Year, month, day. Raises UnreadableError unless it is in a calendar of four digits."""
        parts = (self.varint(), self.byte(), self.byte())
        try:
            date(*parts)
        except (ValueError, OverflowError) as error:
            raise self.error(f"no date: {parts}") from error
        return parts

    def date_and_time(self) -> tuple[int, ...]:
        """Year to second, and nanoseconds. Zeros at the end are left out: the last part that is
        there stands inverted (Kryo's LocalTimeSerializer)."""
        parts = list(self.date())
        for _ in range(3):
            part = self.number("<b")
            parts.append(~part if part < 0 else part)
            if part < 0:
                return (*parts, *(0,) * (7 - len(parts)))
        return (*parts, self.varint())

    def byte_array(self) -> bytes:
        """Its length and its bytes."""
        return self.take(self.array_length())

    def error(self, what: str) -> UnreadableError:
        """To be raised: what stands at this place."""
        return UnreadableError(f"at byte {self._place}: {what}")
