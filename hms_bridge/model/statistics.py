"""Records of column statistics: what is known of the values in a column of a table or partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.ids import WriteId

HIVE = "hive"
"""The engine that statistics belong to unless another is named."""

Bound = int | float | str
"""A lowest or highest value: a number; seconds or days since 1970; a decimal number as text."""


class StatisticsKind(StrEnum):
    """Which values a column has; the text is the name of thrift's field."""

    BOOLEAN = "booleanStats"
    LONG = "longStats"
    DOUBLE = "doubleStats"
    STRING = "stringStats"
    BINARY = "binaryStats"
    DECIMAL = "decimalStats"
    DATE = "dateStats"
    TIMESTAMP = "timestampStats"

    @classmethod
    def of_type(cls, hive_type: str) -> StatisticsKind | None:
        """The kind for a column of a Hive type; None for types without statistics, such as maps
        (StatObjectConverter.fillColumnStatisticsData)."""
        return _KINDS.get(hive_type.lower().partition("(")[0].strip())


_KINDS = {
    "boolean": StatisticsKind.BOOLEAN,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), StatisticsKind.LONG),
    **dict.fromkeys(("float", "double"), StatisticsKind.DOUBLE),
    **dict.fromkeys(("string", "varchar", "char"), StatisticsKind.STRING),
    "binary": StatisticsKind.BINARY,
    "decimal": StatisticsKind.DECIMAL,
    "date": StatisticsKind.DATE,
    **dict.fromkeys(
        ("timestamp", "timestamp with local time zone", "timestamp with time zone"),
        StatisticsKind.TIMESTAMP,
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnStatistics:
    """Statistics of one column. None where nothing is known, or the kind has no such number.

    ``bit_vector`` (distinct values) and ``histogram`` are bytes that only their writers read.
    """

    column: str
    type: str
    kind: StatisticsKind
    low: Bound | None = None
    high: Bound | None = None
    null_count: int = 0
    distinct_count: int | None = None
    average_length: float | None = None
    length_max: int | None = None
    true_count: int | None = None
    false_count: int | None = None
    bit_vector: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectStatistics:
    """Statistics of the columns of a table, or of one of its partitions."""

    columns: tuple[ColumnStatistics, ...]
    partition_name: str | None = None
    analyzed_seconds: int | None = None
    is_compliant: bool | None = None
    """Whether the reader's snapshot may believe them; None if no snapshot was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatisticsUpdate:
    """New statistics of a table (one object without a partition) or of several partitions.

    ``is_merge``: of rows that came to those that were there; else of all rows.
    """

    database_name: str
    table_name: str
    objects: tuple[ObjectStatistics, ...]
    catalog_name: str = DEFAULT_CATALOG
    engine: str = HIVE
    is_merge: bool = False
    write_id: WriteId = field(default=WriteId(-1))
    valid_write_ids: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatisticsQuery:
    """Which statistics to read: of a table, or of partitions of it."""

    database_name: str
    table_name: str
    columns: Sequence[str]
    catalog_name: str = DEFAULT_CATALOG
    partition_names: Sequence[str] | None = None
    engine: str = HIVE
    valid_write_ids: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregatedStatistics:
    """Statistics of several partitions together; ``partition_count`` had all of the columns."""

    columns: tuple[ColumnStatistics, ...] = ()
    partition_count: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedRows:
    """How many rows a statement changed in a table, which materialized views count."""

    table_id: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
