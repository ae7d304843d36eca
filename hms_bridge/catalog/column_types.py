"""Which column types a table may have: the check that Hive makes when a table is created
(docs/hive/metastore.md §26; MetaStoreServerUtils.validateColumnType)."""

from __future__ import annotations

import re

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Table

_FIRST_WORD = re.compile(r"[A-Za-z0-9_]+")

KNOWN_TYPES = frozenset(
    {
        "array",
        "bigint",
        "binary",
        "boolean",
        "char",
        "date",
        "decimal",
        "double",
        "float",
        "int",
        "interval_day_time",
        "interval_year_month",
        "map",
        "smallint",
        "string",
        "struct",
        "timestamp",
        "timestamptz",
        "tinyint",
        "uniontype",
        "varchar",
        "variant",
        "void",
    }
)
DERIVED = "<derived from deserializer>"


def check_column_types(table: Table) -> None:
    """Raises InvalidObjectError for a type whose first word Hive does not know.

    As MetaStoreServerUtils.validateColumnType: what is in the brackets is not looked at.
    """
    for column in (*table.storage.columns, *table.partition_columns):
        match = _FIRST_WORD.match(column.type)
        is_known = match is not None and match.group().lower() in KNOWN_TYPES
        if not is_known and column.type != DERIVED:
            raise InvalidObjectError(f"Invalid column type: {column.type}")
