"""TAB_COL_STATS and PART_COL_STATS: statistics of the columns of tables and partitions.

One row for a column and an engine. What they name besides stands in
:mod:`hms_bridge.catalog.statistics_names`, whether they are to be believed in
:mod:`hms_bridge.catalog.statistics_state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, insert, or_, select

from hms_bridge.backend.batches import batches
from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.catalog_tables import PART_COL_STATS, PARTITIONS, TAB_COL_STATS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.statistics_names import names_in_rows
from hms_bridge.catalog.statistics_state import PartitionState
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.model.catalog import Column
from hms_bridge.model.statistics import (
    ColumnStatistics,
    ObjectStatistics,
    StatisticsKind,
)

_SEQUENCES = {
    TAB_COL_STATS: "org.apache.hadoop.hive.metastore.model.MTableColumnStatistics",
    PART_COL_STATS: "org.apache.hadoop.hive.metastore.model.MPartitionColumnStatistics",
}
_KEYS = {TAB_COL_STATS: "TBL_ID", PART_COL_STATS: "PART_ID"}
_BOUNDS = {
    StatisticsKind.LONG: "LONG",
    StatisticsKind.DATE: "LONG",
    StatisticsKind.TIMESTAMP: "LONG",
    StatisticsKind.DOUBLE: "DOUBLE",
    StatisticsKind.DECIMAL: "BIG_DECIMAL",
}
"""Where the lowest and the highest value of a kind stand: in PREFIX_LOW_VALUE, PREFIX_HIGH_VALUE.
Other kinds have none."""

_MEASURED = Columns(
    ColumnStatistics,
    column="COLUMN_NAME",
    type="COLUMN_TYPE",
    null_count="NUM_NULLS",
    distinct_count="NUM_DISTINCTS",
    average_length="AVG_COL_LEN",
    length_max="MAX_COL_LEN",
    true_count="NUM_TRUES",
    false_count="NUM_FALSES",
)


def of_table(
    connection: Connection, stored: StoredTable, columns: Sequence[str], engine: str
) -> ObjectStatistics | None:
    """Of those columns that have statistics, in the order asked; None if none has."""
    rows_by_table = _find(connection, TAB_COL_STATS, [stored.id], columns, engine)
    rows = rows_by_table.get(stored.id, {})
    return _object(rows, columns, None) if rows else None


def of_partitions(
    connection: Connection,
    partitions: Mapping[int, str],
    columns: Sequence[str],
    engine: str,
) -> dict[str, ObjectStatistics]:
    """By name, of those partitions (names by key) that have any."""
    rows_by_partition = _find(connection, PART_COL_STATS, list(partitions), columns, engine)
    named = {
        partitions[key]: _object(rows, columns, partitions[key])
        for key, rows in rows_by_partition.items()
    }
    return dict(sorted(named.items()))


def columns_with_statistics(
    connection: Connection, stored: StoredTable, partition: str | None = None
) -> tuple[str, ...]:
    """Names, sorted, of the table's columns with statistics, or of one partition's."""
    if partition is None:
        table, where = TAB_COL_STATS, TAB_COL_STATS.c.TBL_ID == stored.id
    else:
        keys = select(PARTITIONS.c.PART_ID).where(
            PARTITIONS.c.TBL_ID == stored.id, PARTITIONS.c.PART_NAME == partition
        )
        table, where = PART_COL_STATS, PART_COL_STATS.c.PART_ID.in_(keys)
    return tuple(sorted(set(connection.scalars(select(table.c.COLUMN_NAME).where(where)))))


def put_of_table(
    connection: Connection,
    stored: StoredTable,
    columns: Sequence[ColumnStatistics],
    *,
    engine: str,
    now_seconds: int,
) -> None:
    """Replace the statistics of these columns."""
    names = names_in_rows(connection, TAB_COL_STATS, stored.table)
    _put(connection, TAB_COL_STATS, {stored.id: (names, columns)}, engine, now_seconds)


def put_of_partitions(
    connection: Connection,
    stored: StoredTable,
    measured: Sequence[tuple[PartitionState, Sequence[ColumnStatistics]]],
    *,
    engine: str,
    now_seconds: int,
) -> None:
    """Replace the statistics of these columns of each partition."""
    names = names_in_rows(connection, PART_COL_STATS, stored.table)
    given = {
        state.id: (names | ({"PARTITION_NAME": state.name} if names else {}), columns)
        for state, columns in measured
    }
    _put(connection, PART_COL_STATS, given, engine, now_seconds)


def delete_of_table(
    connection: Connection, stored: StoredTable, columns: Sequence[str], engine: str | None
) -> int:
    """Remove the statistics of some columns, or of all for none given; how many there were."""
    return _delete(connection, TAB_COL_STATS, [stored.id], columns, engine)


def delete_of_partitions(
    connection: Connection, keys: Sequence[int], columns: Sequence[str], engine: str | None
) -> int:
    """As :func:`delete_of_table`."""
    return _delete(connection, PART_COL_STATS, keys, columns, engine)


def forget_lost_columns(
    connection: Connection, stored: StoredTable, columns: Sequence[Column]
) -> frozenset[str]:
    """Remove a table's statistics of columns that it has no more, or with another type; their
    names (HiveAlterHandler.deleteTableColumnStats; docs/hive/metastore.md §27)."""
    s = TAB_COL_STATS.c
    rows = connection.execute(
        select(s.CS_ID, s.COLUMN_NAME, s.COLUMN_TYPE).where(s.TBL_ID == stored.id)
    )
    lost = _lost(rows, columns)
    _delete_rows(connection, TAB_COL_STATS, [key for key, _ in lost])
    return frozenset(name for _, name in lost)


def forget_lost_columns_of_partitions(
    connection: Connection, keys: Sequence[int], columns: Sequence[Column]
) -> Mapping[int, frozenset[str]]:
    """As :func:`forget_lost_columns`, by partition; their parameters do not name them any more
    (HiveAlterHandler.updateOrGetPartitionColumnStats; docs/hive/metastore.md §27)."""
    s = PART_COL_STATS.c
    forgotten: dict[int, frozenset[str]] = {}
    for piece in batches(keys):
        rows = connection.execute(
            select(s.CS_ID, s.COLUMN_NAME, s.COLUMN_TYPE, s.PART_ID).where(s.PART_ID.in_(piece))
        ).all()
        owners = {row.CS_ID: row.PART_ID for row in rows}
        lost = _lost(rows, columns)
        _delete_rows(connection, PART_COL_STATS, [key for key, _ in lost])
        for key, name in lost:
            owner = owners[key]
            forgotten[owner] = forgotten.get(owner, frozenset()) | {name}
    return forgotten


def keys_of_partitions(connection: Connection, stored: StoredTable) -> list[int]:
    """The keys of all partitions of a table."""
    query = select(PARTITIONS.c.PART_ID).where(PARTITIONS.c.TBL_ID == stored.id)
    return list(connection.scalars(query))


def _find(
    connection: Connection, table: Table, keys: Sequence[int], columns: Sequence[str], engine: str
) -> dict[int, dict[str, Row[Any]]]:
    owner = table.c[_KEYS[table]]
    rows: dict[int, dict[str, Row[Any]]] = {}
    selected = [c for c in table.c if c.name not in ("BIT_VECTOR", "HISTOGRAM") and _is_kept(c)]
    for names in batches(list(dict.fromkeys(columns))):
        for piece in batches(keys):
            query = select(*selected).where(
                owner.in_(piece), table.c.ENGINE == engine, table.c.COLUMN_NAME.in_(names)
            )
            for row in connection.execute(query):
                rows.setdefault(row._mapping[owner.name], {})[row.COLUMN_NAME] = row
    return rows


def _is_kept(column: Any) -> bool:
    """Not of those columns that only some versions of the schema have."""
    return "until" not in column.info


def _object(
    rows: Mapping[str, Row[Any]], columns: Sequence[str], partition: str | None
) -> ObjectStatistics:
    ordered = [rows[name] for name in dict.fromkeys(columns) if name in rows]
    return ObjectStatistics(
        columns=tuple(record for row in ordered if (record := _record(row)) is not None),
        partition_name=partition,
        analyzed_seconds=min(row.LAST_ANALYZED for row in ordered),
    )


def _record(row: Row[Any]) -> ColumnStatistics | None:
    kind = StatisticsKind.of_type(row.COLUMN_TYPE or "")
    if kind is None:
        return None
    prefix = _BOUNDS.get(kind, "LONG")  # NULL stands there for kinds without bounds
    return _MEASURED.read(
        row,
        kind=kind,
        low=row._mapping[f"{prefix}_LOW_VALUE"],
        high=row._mapping[f"{prefix}_HIGH_VALUE"],
    )


def _row(of: ColumnStatistics) -> dict[str, Any]:
    bounds: dict[str, Any] = {
        f"{prefix}_{end}_VALUE": None for prefix in _BOUNDS.values() for end in ("LOW", "HIGH")
    }
    if prefix := _BOUNDS.get(of.kind):
        bounds |= {f"{prefix}_LOW_VALUE": of.low, f"{prefix}_HIGH_VALUE": of.high}
    sketches = {"BIT_VECTOR": of.bit_vector, "HISTOGRAM": of.histogram}
    return bounds | sketches | _MEASURED.values(of)


_Given = tuple[Mapping[str, str], Sequence[ColumnStatistics]]


def _put(
    connection: Connection,
    table: Table,
    given: Mapping[int, _Given],
    engine: str,
    now_seconds: int,
) -> None:
    owner = _KEYS[table]
    wanted = {(key, column.column) for key, (_, columns) in given.items() for column in columns}
    old: list[int] = []
    for piece in batches(list(given)):
        query = select(table.c.CS_ID, table.c[owner], table.c.COLUMN_NAME)
        result = connection.execute(
            query.where(table.c[owner].in_(piece), table.c.ENGINE == engine)
        )
        old += [key for key, owner_key, column in result if (owner_key, column) in wanted]
    _delete_rows(connection, table, old)
    rows = [
        {**names, owner: key, "ENGINE": engine, "LAST_ANALYZED": now_seconds, **_row(column)}
        for key, (names, columns) in given.items()
        for column in columns
    ]
    if not rows:
        return
    first = next_sequence_values(connection, _SEQUENCES[table], len(rows))
    numbered = [row | {"CS_ID": first + place} for place, row in enumerate(rows)]
    for batch in batches(numbered):
        connection.execute(insert(table), list(batch))


def _delete(
    connection: Connection,
    table: Table,
    keys: Sequence[int],
    columns: Sequence[str],
    engine: str | None,
) -> int:
    count = 0
    for piece in batches(keys):
        where: list[ColumnElement[bool]] = [table.c[_KEYS[table]].in_(piece)]
        if columns:
            where.append(or_(*(table.c.COLUMN_NAME.in_(part) for part in batches(columns))))
        if engine is not None:
            where.append(table.c.ENGINE == engine)
        count += connection.execute(delete(table).where(*where)).rowcount
    return count


def _delete_rows(connection: Connection, table: Table, keys: Sequence[int]) -> None:
    for piece in batches(keys):
        connection.execute(delete(table).where(table.c.CS_ID.in_(piece)))


def _lost(rows: Iterable[Any], columns: Sequence[Column]) -> list[tuple[int, str]]:
    kept = {(column.name.lower(), column.type.lower()) for column in columns}
    return [
        (row.CS_ID, row.COLUMN_NAME)
        for row in rows
        if (row.COLUMN_NAME.lower(), (row.COLUMN_TYPE or "").lower()) not in kept
    ]
