"""Column statistics of one side of a table, as texts. No load brings them
(docs/hive/replication.md §31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hms_bridge.metadata_store import StatisticsStore
from hms_bridge.model.catalog import Table
from hms_bridge.model.statistics import ColumnStatistics, ObjectStatistics, StatisticsQuery
from hms_bridge.repl.compare.definitions import Definition

_PARTITIONS_A_CALL = 1000


def column_statistics(
    store: StatisticsStore, table: Table, partitions: Sequence[str]
) -> Mapping[str, Definition]:
    """Those of the engine hive, by partition name ("": a table without), then by column; nothing
    where there are none. When they were made, and what only their writers read, is left out."""
    definitions: dict[str, Definition] = {}
    for statistics in _objects(store, table, partitions):
        definitions[statistics.partition_name or ""] = {
            f"statistics of {column.column}": _text(column) for column in statistics.columns
        }
    return definitions


def _objects(
    store: StatisticsStore, table: Table, partitions: Sequence[str]
) -> Iterator[ObjectStatistics]:
    columns = [column.name for column in table.storage.columns]
    for names in _calls(table, partitions):
        query = StatisticsQuery(
            database_name=table.database_name,
            table_name=table.name,
            columns=columns,
            partition_names=names,
        )
        yield from store.get_column_statistics(query)


def _calls(table: Table, partitions: Sequence[str]) -> Iterator[list[str] | None]:
    if not table.is_partitioned:
        yield None
        return
    for start in range(0, len(partitions), _PARTITIONS_A_CALL):
        yield list(partitions[start : start + _PARTITIONS_A_CALL])


def _text(column: ColumnStatistics) -> str:
    """``int: from 1 to 3, nulls 0, distinct 3``."""
    bounds = "" if column.low is None else f"from {column.low} to {column.high}"
    numbers = {
        "nulls": column.null_count,
        "distinct": column.distinct_count,
        "average length": column.average_length,
        "longest": column.length_max,
        "true": column.true_count,
        "false": column.false_count,
    }
    known = [f"{name} {number}" for name, number in numbers.items() if number is not None]
    return f"{column.type}: {', '.join(filter(None, [bounds, *known]))}"
