"""Parameters of databases, tables, partitions, storage: those of new ones, and single ones that
transactions set (replication's progress, a commit's key and value)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, Table, select, update

from hms_bridge.backend.batches import batches
from hms_bridge.backend.dialect import insert_or_update
from hms_bridge.backend.fixed_sql import put_rows
from hms_bridge.backend.schema.catalog_tables import (
    DATABASE_PARAMS,
    DBS,
    PARTITION_PARAMS,
    PARTITIONS,
    TABLE_PARAMS,
    TBLS,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.properties import INCOMPATIBLE, LAST_EVENT
from hms_bridge.model.txn import CommitKeyValue, ReplLastId

COMMIT_KEY_PREFIX = "_meta"


def insert_parameters(
    connection: Connection, table: Table, given: Iterable[tuple[int | None, Mapping[str, str]]]
) -> None:
    """The parameters of rows, given by their key, which is the first column of such a table."""
    owner = table.columns[0].name
    rows = [
        {owner: key, "PARAM_KEY": name, "PARAM_VALUE": value}
        for key, parameters in given
        for name, value in parameters.items()
    ]
    put_rows(connection, table, rows)


def set_repl_last_id(connection: Connection, last: ReplLastId) -> None:
    """Move ``repl.last.id`` of a database, and of the table and partitions named, forward.

    What is not there (any more) is left out, as in Hive: the load goes by the database.
    """
    catalog = last.catalog_name or DEFAULT_CATALOG
    database = last.database_name.lower()
    value = str(last.last_repl_id)
    databases = connection.scalars(
        select(DBS.c.DB_ID).where(DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog)
    ).all()
    _put(connection, DATABASE_PARAMS, "DB_ID", databases, LAST_EVENT, value)
    if last.table_name is None or not databases:
        return
    tables = connection.scalars(
        select(TBLS.c.TBL_ID).where(
            TBLS.c.TBL_NAME == last.table_name.lower(), TBLS.c.DB_ID.in_(databases)
        )
    ).all()
    _put(connection, TABLE_PARAMS, "TBL_ID", tables, LAST_EVENT, value)
    for piece in batches(last.partitions):
        partitions = connection.scalars(
            select(PARTITIONS.c.PART_ID).where(
                PARTITIONS.c.TBL_ID.in_(tables), PARTITIONS.c.PART_NAME.in_(piece)
            )
        ).all()
        _put(connection, PARTITION_PARAMS, "PART_ID", partitions, LAST_EVENT, value)


def mark_incompatible(connection: Connection, databases: Sequence[str]) -> None:
    """Databases lost a replayed transaction: their replication must be begun anew."""
    database_ids = connection.scalars(
        select(DBS.c.DB_ID).where(DBS.c.NAME.in_(databases), DBS.c.CTLG_NAME == DEFAULT_CATALOG)
    ).all()
    _put(connection, DATABASE_PARAMS, "DB_ID", database_ids, INCOMPATIBLE, "true")


def set_commit_key(connection: Connection, given: CommitKeyValue) -> None:
    """Set an existing table parameter. Raises MetaError for another key or a missing row."""
    if not given.key.startswith(COMMIT_KEY_PREFIX):
        raise MetaError(
            f"a commit can only set keys that start with '{COMMIT_KEY_PREFIX}', not '{given.key}'"
        )
    changed = connection.execute(
        update(TABLE_PARAMS)
        .where(TABLE_PARAMS.c.TBL_ID == given.table_id, TABLE_PARAMS.c.PARAM_KEY == given.key)
        .values(PARAM_VALUE=given.value)
    )
    if changed.rowcount != 1:
        raise MetaError(
            f"table {given.table_id} has no parameter '{given.key}' to be set by a commit; "
            "add it with ALTER TABLE first"
        )


def replace_parameter(
    connection: Connection, table_id: int, name: str, *, expected: str, new: str
) -> bool:
    """Give a table's parameter another value if it has the expected one; whether it had.

    A Hive beside us does the same, and holds no other row of the table
    (MetaStoreDirectSql.updateTableParam): whoever comes second waits, and finds the other value.
    """
    here = (
        TABLE_PARAMS.c.TBL_ID == table_id,
        TABLE_PARAMS.c.PARAM_KEY == name,
        TABLE_PARAMS.c.PARAM_VALUE == expected,
    )
    changed = connection.execute(update(TABLE_PARAMS).where(*here).values(PARAM_VALUE=new))
    return changed.rowcount == 1


def _put(
    connection: Connection, table: Table, key: str, ids: Sequence[int], name: str, value: str
) -> None:
    rows = [{key: owner_id, "PARAM_KEY": name, "PARAM_VALUE": value} for owner_id in ids]
    insert_or_update(connection, table, [table.c[key], table.c.PARAM_KEY], rows)
