"""A table, or a partition of it, in as few columns as show that it is still the same.

The cleaner asks before each directory that it deletes, so these are fixed statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, exists, select

from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, MOVE
from hms_bridge.backend.schema.catalog_tables import DATABASE_PARAMS, DBS, PARTITIONS, SDS, TBLS
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.model.target import Target
from hms_bridge.model.target_mark import TargetMark


def _of_table(storage_id: Any) -> Select[Any]:
    source_for = and_(
        DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID, DATABASE_PARAMS.c.PARAM_KEY == SOURCE_FOR
    )
    tables = TBLS.join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).outerjoin(DATABASE_PARAMS, source_for)
    if storage_id is PARTITIONS.c.SD_ID:
        tables = tables.join(PARTITIONS, PARTITIONS.c.TBL_ID == TBLS.c.TBL_ID)
    # In the same statement: a move that begins after it shows in the location.
    is_moving = exists().where(
        HMSB_FILE_TASK.c.KIND == MOVE,
        HMSB_FILE_TASK.c.DB_NAME == bindparam("database"),
        HMSB_FILE_TASK.c.TBL_NAME == bindparam("name"),
    )
    return (
        select(
            TBLS.c.TBL_ID,
            TBLS.c.CREATE_TIME,
            SDS.c.LOCATION,
            DATABASE_PARAMS.c.PARAM_VALUE,
            case((is_moving, 1), else_=0),
        )
        .select_from(tables.outerjoin(SDS, SDS.c.SD_ID == storage_id))
        .where(
            DBS.c.NAME == bindparam("database"),
            DBS.c.CTLG_NAME == DEFAULT_CATALOG,
            TBLS.c.TBL_NAME == bindparam("name"),
        )
    )


_TABLE = FixedSql(_of_table(TBLS.c.SD_ID))
_PARTITION = FixedSql(
    _of_table(PARTITIONS.c.SD_ID).where(PARTITIONS.c.PART_NAME == bindparam("partition"))
)


def find_marks(
    connection: Connection, targets: Sequence[Target]
) -> list[tuple[TargetMark, bool] | None]:
    """Of each without the moves, and whether there are any; None if the table, the partition or
    its directory is not there."""
    answers = [_ask(connection, target) for target in targets]
    return [_mark(answer.rows) for answer in answers]


def _ask(connection: Connection, target: Target) -> Answer:
    key = {"database": target.database.lower(), "name": target.table.lower()}
    if target.partition is None:
        return _TABLE.read_later(connection, **key)
    return _PARTITION.read_later(connection, **key, partition=target.partition)


def _mark(rows: Sequence[tuple[Any, ...]]) -> tuple[TargetMark, bool] | None:
    if not rows or not rows[0][2]:
        return None
    table_id, create_time, location, source_for, is_moving = rows[0]
    mark = TargetMark(
        table_id=table_id,
        create_time=create_time or 0,
        location=location,
        is_replication_source=bool((source_for or "").strip()),
    )
    return mark, bool(is_moving)
