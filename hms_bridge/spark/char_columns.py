"""Columns of type CHAR in statements: compared by their value, shown filled up with blanks.

Files hold a CHAR filled up to its length, and Hive compares, joins and measures it without those
blanks (HiveChar.getStrippedValue). Spark has text alone here: so a statement works on the value,
and what still is the column in its result is filled up again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, functions

from hms_bridge.model.catalog import Column

_CHAR = re.compile(r"char\((\d+)\)", re.IGNORECASE)
_LENGTH = "hms_bridge.char.length"
"""Spark hands metadata of a column on while an expression is that column, renamed or not."""


def with_char_values(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The frame with the values of its CHAR columns."""
    values = {}
    for column in columns:
        if char := _CHAR.fullmatch(column.type.strip()):
            text = functions.col(f"`{column.name}`")
            length = {_LENGTH: int(char[1])}
            values[column.name] = functions.rtrim(text).alias(column.name, metadata=length)
    return frame.withColumns(values)


def with_filled_chars(frame: DataFrame) -> DataFrame:
    """A result as Hive shows it. Names of its columns may come twice."""
    lengths = [field.metadata.get(_LENGTH) for field in frame.schema.fields]
    if not any(lengths):
        return frame
    places = frame.toDF(*(f"_{at}" for at in range(len(lengths))))
    shown = [
        functions.rpad(f"_{at}", length, " ") if length else functions.col(f"_{at}")
        for at, length in enumerate(lengths)
    ]
    return places.select(*shown).toDF(*frame.columns)
