"""A query's result as Python has it."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, Row

from hms_bridge.spark.char_columns import with_filled_chars


def shown(frame: DataFrame) -> Iterator[tuple[object, ...]]:
    """First the column names, then the rows as Hive shows them, one after the other."""
    filled = with_filled_chars(frame)
    yield tuple(filled.columns)
    for row in filled.toLocalIterator():
        yield tuple(_plain(value) for value in row)


def _plain(value: object) -> object:
    """Structs as dicts, wherever they are: PySpark's rows forget their names when copied."""
    if isinstance(value, Row):
        return {name: _plain(field) for name, field in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {_plain_key(key): _plain(member) for key, member in value.items()}
    return value


def _plain_key(value: object) -> object:
    """A struct can be a key in Hive, a dict cannot be one in Python."""
    return tuple(value) if isinstance(value, Row) else value
