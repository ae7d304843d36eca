"""Enums whose members have a number on the wire and a character in the database."""

from __future__ import annotations

from enum import Enum


class StoredEnum(Enum):
    """Members are ``(number, character)``; the character is empty if it is never stored."""

    @property
    def number(self) -> int:
        """The number on the wire."""
        return int(self.value[0])

    @property
    def stored(self) -> str:
        """The character in the database."""
        return str(self.value[1])
