"""Enums whose members have a number on the wire and a character in the database."""

from __future__ import annotations

from enum import Enum


class StoredEnum(Enum):
    """Members are ``(number, character)``; the character is empty if it is never stored."""

    number: int
    """The number on the wire."""
    stored: str
    """The character in the database."""

    def __init__(self, number: int, stored: str) -> None:
        self.number, self.stored = number, stored

    # A member equals itself alone. Enum's own is Python, and members are keys at each lock.
    __hash__ = object.__hash__
