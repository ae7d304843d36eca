"""The order in which partition names are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_bridge.catalog.partition_values import UndeterminedError, kind_of, reader_of
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column
from hms_bridge.model.partition_name import parse_partition_name

_BY_VALUE = frozenset(
    {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp"}
)


def in_order(
    names: Sequence[str], columns: Sequence[Column], order: str, default_value: str
) -> list[str]:
    """Names in an order like ``1,0:-+``: places of columns, then a direction for each.

    Columns that are not named follow in no order of their own; without an order the names are as
    given. Raises MetaError for a text that is none.
    """
    if not order:
        return list(names)
    ordered = list(names)
    # Sorting is stable, so the last column goes first: an earlier one then decides, and only what
    # is equal there keeps its order.
    for place, is_descending in reversed(_parsed(order, len(columns))):
        key = _key(columns[place], place, default_value)
        ordered.sort(key=key, reverse=is_descending)
    return ordered


def _parsed(order: str, count: int) -> list[tuple[int, bool]]:
    places, _, directions = order.partition(":")
    try:
        numbers = [int(place) for place in places.split(",")]
    except ValueError:
        numbers = []
    if (
        not numbers
        or any(not 0 <= number < count for number in numbers)
        or len(directions) != len(numbers)
        or set(directions) - {"+", "-"}
    ):
        raise MetaError(f"order '{order[:100]}' of partitions; write it like 0,1:+- by place")
    return [
        (number, direction == "-") for number, direction in zip(numbers, directions, strict=True)
    ]


def _key(column: Column, place: int, default_value: str) -> Any:
    """NULL, and what is no value of its type, is above all."""
    read = reader_of(column.type) if kind_of(column.type) in _BY_VALUE else None

    def key(name: str) -> tuple[bool, Any]:
        text = parse_partition_name(name)[place][1]
        try:
            value = None if text == default_value else read(text) if read else text
        except UndeterminedError:
            value = None
        # NaN is equal to nothing, itself too: among other values it would undo their order.
        return (True, 0) if value is None or value != value else (False, value)  # noqa: PLR0124

    return key
