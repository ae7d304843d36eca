"""A table, or a partition of it, in as few columns as show that it is still the same.

The cleaner asks before each few directories that it deletes, so these are fixed statements; tables
of one database are asked about in one, but for MySQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, exists, select

from hms_bridge.backend.dialect import is_mysql
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, MOVE
from hms_bridge.backend.schema.catalog_tables import DATABASE_PARAMS, DBS, PARTITIONS, SDS, TBLS
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.model.target import Target
from hms_bridge.model.target_mark import TargetMark


def _of_table(storage_id: Any, name: Any) -> Select[Any]:
    """``name``: the table's, to be found among moves."""
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
        HMSB_FILE_TASK.c.TBL_NAME == name,
    )
    return (
        select(
            TBLS.c.TBL_NAME,
            TBLS.c.TBL_ID,
            TBLS.c.CREATE_TIME,
            SDS.c.LOCATION,
            DATABASE_PARAMS.c.PARAM_VALUE,
            case((is_moving, 1), else_=0),
        )
        .select_from(tables.outerjoin(SDS, SDS.c.SD_ID == storage_id))
        .where(DBS.c.NAME == bindparam("database"), DBS.c.CTLG_NAME == DEFAULT_CATALOG)
    )


_NAME = bindparam("name", type_=TBLS.c.TBL_NAME.type)
_ONE = FixedSql(_of_table(TBLS.c.SD_ID, _NAME).where(TBLS.c.TBL_NAME == _NAME))
_SEVERAL = TextKeyedSql(
    TBLS.c.TBL_NAME,
    lambda is_named: _of_table(TBLS.c.SD_ID, TBLS.c.TBL_NAME).where(is_named),
)
_PARTITION = FixedSql(
    _of_table(PARTITIONS.c.SD_ID, _NAME).where(
        TBLS.c.TBL_NAME == _NAME, PARTITIONS.c.PART_NAME == bindparam("partition")
    )
)
_Mark = tuple[TargetMark, bool]


def find_marks(connection: Connection, targets: Sequence[Target]) -> list[_Mark | None]:
    """Of each without the moves, and whether there are any; None if the table, the partition or
    its directory is not there."""
    of_database: dict[str, list[str]] = defaultdict(list)
    for target in targets:
        if target.partition is None:
            of_database[target.database.lower()].append(target.table.lower())
    tables = {name: _ask_tables(connection, name, some) for name, some in of_database.items()}
    parts = [_ask_partition(connection, target) for target in targets]
    marks = {
        (database, row[0].lower()): _mark(row)
        for database, answers in tables.items()
        for answer in answers
        for row in answer.rows
    }
    return [
        marks.get((target.database.lower(), target.table.lower()))
        if part is None
        else next(map(_mark, part.rows), None)
        for target, part in zip(targets, parts, strict=True)
    ]


def _ask_tables(connection: Connection, database: str, names: Sequence[str]) -> Sequence[Answer]:
    # On MySQL ours and Hive's tables have names of other collations, which it does not compare.
    if len(names) > 1 and not is_mysql(connection):
        return _SEVERAL.later(connection, names, database=database)
    return [_ONE.read_later(connection, database=database, name=name) for name in names]


def _ask_partition(connection: Connection, target: Target) -> Answer | None:
    if target.partition is None:
        return None
    named = {"database": target.database.lower(), "name": target.table.lower()}
    return _PARTITION.read_later(connection, **named, partition=target.partition)


def _mark(row: Sequence[Any]) -> _Mark | None:
    _, table_id, create_time, location, source_for, is_moving = row
    if not location:
        return None
    mark = TargetMark(
        table_id=table_id,
        create_time=create_time or 0,
        location=location,
        is_replication_source=bool((source_for or "").strip()),
    )
    return mark, bool(is_moving)
