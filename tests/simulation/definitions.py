"""What a metastore's database says that a table is, read without the product."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

Columns = tuple[tuple[str, str], ...]
"""Names and types, in their order."""

_ITS_OWN = (
    "repl.",
    "hive.repl.",
    "transient_lastDdlTime",
    "last_modified_",
    "numFiles",
    "numRows",
    "totalSize",
    "rawDataSize",
    "COLUMN_STATS_ACCURATE",
    "DO_NOT_UPDATE_STATS",
    "STATS_GENERATED",
)
"""Parameters that a replica has of its own, or that count files and not rows."""


@dataclass(frozen=True)
class Definition:
    """Of a table: what a load must bring. `write_id`: the highest that somebody was given."""

    columns: Columns
    partition_columns: Columns
    partitions: tuple[tuple[str, Columns], ...]
    parameters: tuple[tuple[str, str], ...]
    storage: tuple[object, ...]
    write_id: int


def read_definition(raw: sqlite3.Connection, table_id: int, write_id: int) -> Definition:
    """Of a table that is there."""
    descriptor, *storage = raw.execute(
        "SELECT S.CD_ID, S.INPUT_FORMAT, S.OUTPUT_FORMAT, S.NUM_BUCKETS, D.SLIB, T.TBL_TYPE"
        " FROM TBLS T JOIN SDS S ON S.SD_ID = T.SD_ID JOIN SERDES D ON D.SERDE_ID = S.SERDE_ID"
        " WHERE T.TBL_ID = ?",
        (table_id,),
    ).fetchone()
    parameters = raw.execute(
        "SELECT PARAM_KEY, PARAM_VALUE FROM TABLE_PARAMS WHERE TBL_ID = ? ORDER BY 1", (table_id,)
    )
    partitions = raw.execute(
        "SELECT P.PART_NAME, S.CD_ID FROM PARTITIONS P JOIN SDS S ON S.SD_ID = P.SD_ID"
        " WHERE P.TBL_ID = ? ORDER BY 1",
        (table_id,),
    ).fetchall()
    keys = raw.execute(
        "SELECT PKEY_NAME, PKEY_TYPE FROM PARTITION_KEYS WHERE TBL_ID = ? ORDER BY INTEGER_IDX",
        (table_id,),
    )
    return Definition(
        columns=_columns(raw, descriptor),
        partition_columns=tuple(keys.fetchall()),
        partitions=tuple((name, _columns(raw, one)) for name, one in partitions),
        parameters=tuple(one for one in parameters if not one[0].startswith(_ITS_OWN)),
        storage=tuple(storage),
        write_id=write_id,
    )


def _columns(raw: sqlite3.Connection, descriptor: int) -> Columns:
    return tuple(
        raw.execute(
            "SELECT COLUMN_NAME, TYPE_NAME FROM COLUMNS_V2 WHERE CD_ID = ? ORDER BY INTEGER_IDX",
            (descriptor,),
        ).fetchall()
    )
