"""Fields that a request must have. Java refuses a message without them; we say which is missing."""

from __future__ import annotations

from typing import TypeVar

from hms_bridge.errors import MetaError

T = TypeVar("T")


def given(value: T | None, field: str) -> T:
    """The value. Raises MetaError if the field was not set."""
    if value is None:
        raise MetaError(f"{field} was not sent; set that field")
    return value


def given_name(value: str | None, field: str) -> str:
    """A name in lower case. Raises MetaError if the field was not set or is empty."""
    if not value:
        raise MetaError(f"{field} was not sent or is empty; set that field")
    return value.lower()
