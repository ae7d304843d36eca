"""Rows of partition values, as get_partition_values has them (docs/hive/metastore.md §24)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.model.partition_name import parse_partition_name

Row = tuple[str, ...]


def rows_of_keys(
    names: Iterable[str], table: Table, keys: Sequence[str], *, is_distinct: bool
) -> list[Row]:
    """The values of some keys as they are written in names, that is, escaped; with
    ``is_distinct`` each row once, where it came first.

    Raises MetaError for a key that is no partition column, or for more keys than there are.
    """
    columns = [column.name.lower() for column in table.partition_columns]
    unknown = next((key for key in keys if key.lower() not in columns), None)
    if unknown is not None:
        raise MetaError(
            f"{unknown[:100]}: no partition column of {table.full_name}; ask for some of its "
            f"partition columns: {', '.join(columns) or 'it has none'}"
        )
    if len(keys) > len(columns):  # rows must not grow as long as a client likes
        raise MetaError(
            f"{len(keys)} keys of the {len(columns)} partition columns of {table.full_name}; ask "
            "for each once"
        )
    places = [columns.index(key.lower()) for key in keys]
    rows = []
    for name in names:
        texts = [part.partition("=")[2] for part in name.split("/")]
        rows.append(tuple(texts[place] for place in places))
    return list(dict.fromkeys(rows)) if is_distinct else rows


def rows_of_names(names: Iterable[str]) -> list[Row]:
    """The values of all partition columns."""
    return [tuple(value for _, value in parse_partition_name(name)) for name in names]
