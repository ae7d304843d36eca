"""Values of columns, some of them such as a calendar or a file's format has no place for.

What cannot be kept is refused (I1: rows are what was written); what is kept is kept to the digit.
"""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

ADDED_TYPES = ("int", "string", "bigint", "date", "timestamp")
_EPOCH = datetime(1970, 1, 1)
_EARLIEST_GAP = date(1582, 10, 5)
"""Ten days from here on are on no calendar that changes from Julian to Gregorian."""


def some_value(dice: random.Random, kind: str, number: int) -> object:
    """Of a row's number and a Hive type."""
    match kind:
        case "string":
            return f"w{number}"
        case "date":
            return _some_date(dice, number)
        case "timestamp":
            return _some_timestamp(dice, number)
        case _:
            return number


def _some_date(dice: random.Random, number: int) -> date:
    if dice.random() < 0.2:
        return _EARLIEST_GAP + timedelta(days=dice.randrange(10))
    if dice.random() < 0.3:
        return date(1501, 1, 1) + timedelta(days=number)
    return date(2020, 1, 1) + timedelta(days=number)


def _some_timestamp(dice: random.Random, number: int) -> datetime:
    """The last second before 1970, other times before it, and later ones."""
    if dice.random() < 0.2:
        return _EPOCH - timedelta(microseconds=number)
    if dice.random() < 0.3:
        return _EPOCH - timedelta(days=number, microseconds=number)
    return _EPOCH + timedelta(days=number, microseconds=number)
