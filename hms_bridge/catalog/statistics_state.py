"""What is stored about trust in column statistics: COLUMN_STATS_ACCURATE and the write id.

They stand with the table or partition itself (TABLE_PARAMS, PARTITION_PARAMS); what they mean is
in :mod:`hms_bridge.model.statistics_state` (docs/hive/metastore.md §9).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, insert, select, update

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.schema.catalog_tables import (
    PARTITION_PARAMS,
    PARTITIONS,
    TABLE_PARAMS,
    TBLS,
)
from hms_bridge.catalog.row_locks import RowLock, hold
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics_state import ACCURATE, without_columns


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionState:
    """A partition, and what is stored about trust in its statistics."""

    id: int
    name: str
    write_id: int
    parameters: Mapping[str, str]
    """COLUMN_STATS_ACCURATE alone, if it is there."""


def distrust_columns(connection: Connection, forgotten: Mapping[int, frozenset[str]]) -> None:
    """Take columns out of the parameters of partitions that say whose statistics are right."""
    states = _states(connection, list(forgotten))
    put_partition_states(
        connection,
        [(state, without_columns(state.parameters, forgotten[state.id]), None) for state in states],
    )


def partition_states(
    connection: Connection, stored: StoredTable, names: Collection[str], lock: RowLock
) -> dict[str, PartitionState]:
    """Those that exist, by name, sorted."""
    states: dict[str, PartitionState] = {}
    names = frozenset(names)
    for piece in batches(sorted(names)):
        where = and_(PARTITIONS.c.TBL_ID == stored.id, PARTITIONS.c.PART_NAME.in_(piece))
        held = hold(connection, PARTITIONS.c.PART_ID, where, lock)
        if held is None:
            held = connection.scalars(select(PARTITIONS.c.PART_ID).where(where)).all()
        there = _states(connection, sorted(held))
        # MySQL takes names for the same that differ in blanks at their ends.
        states |= {state.name: state for state in there if state.name in names}
    return dict(sorted(states.items()))


def put_partition_states(
    connection: Connection,
    changes: Sequence[tuple[PartitionState, Mapping[str, str], WriteId | None]],
) -> None:
    """Store COLUMN_STATS_ACCURATE of partitions, and the write id of those that get one."""
    changed = [
        (state, new.get(ACCURATE))
        for state, new, _ in changes
        if dict(state.parameters) != dict(new)
    ]
    p = PARTITION_PARAMS.c
    for piece in batches([state.id for state, _ in changed]):
        gone = and_(p.PART_ID.in_(piece), p.PARAM_KEY == ACCURATE)
        connection.execute(delete(PARTITION_PARAMS).where(gone))
    rows = [
        {"PART_ID": state.id, "PARAM_KEY": ACCURATE, "PARAM_VALUE": text}
        for state, text in changed
        if text is not None
    ]
    insert_rows(connection, PARTITION_PARAMS, rows)
    by_write_id: dict[WriteId, list[int]] = {}
    for state, _, write_id in changes:
        if write_id is not None:
            by_write_id.setdefault(write_id, []).append(state.id)
    for write_id, keys in by_write_id.items():
        for piece in batches(keys):
            here = PARTITIONS.c.PART_ID.in_(piece)
            connection.execute(update(PARTITIONS).where(here).values(WRITE_ID=write_id))


def put_table_state(
    connection: Connection, stored: StoredTable, new: Mapping[str, str], write_id: WriteId | None
) -> None:
    """Store COLUMN_STATS_ACCURATE of a table, and its write id if one is given."""
    p = TABLE_PARAMS.c
    here = and_(p.TBL_ID == stored.id, p.PARAM_KEY == ACCURATE)
    if stored.table.parameters.get(ACCURATE) != new.get(ACCURATE):
        connection.execute(delete(TABLE_PARAMS).where(here))
        if ACCURATE in new:
            row = {"TBL_ID": stored.id, "PARAM_KEY": ACCURATE, "PARAM_VALUE": new[ACCURATE]}
            connection.execute(insert(TABLE_PARAMS).values(row))
    if write_id is not None:
        connection.execute(update(TBLS).where(TBLS.c.TBL_ID == stored.id).values(WRITE_ID=write_id))


def _states(connection: Connection, keys: Sequence[int]) -> list[PartitionState]:
    states = []
    of_key = PARTITION_PARAMS.c.PART_ID == PARTITIONS.c.PART_ID
    for piece in batches(keys):
        rows = connection.execute(
            select(
                PARTITIONS.c.PART_ID,
                PARTITIONS.c.PART_NAME,
                PARTITIONS.c.WRITE_ID,
                PARTITION_PARAMS.c.PARAM_VALUE,
            )
            .outerjoin(PARTITION_PARAMS, and_(of_key, PARTITION_PARAMS.c.PARAM_KEY == ACCURATE))
            .where(PARTITIONS.c.PART_ID.in_(piece))
        )
        states += [
            PartitionState(
                id=row.PART_ID,
                name=row.PART_NAME,
                write_id=row.WRITE_ID or 0,
                parameters={} if row.PARAM_VALUE is None else {ACCURATE: row.PARAM_VALUE},
            )
            for row in rows
        ]
    return states
