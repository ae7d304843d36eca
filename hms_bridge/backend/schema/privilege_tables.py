"""Who may do what with tables, partitions, columns and databases (Hive's privileges).

Nothing here grants or reads them; rows that Hive wrote go when their object does.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, SmallInteger, String, Table

from hms_bridge.backend.schema.catalog_tables import DBS, PARTITIONS, TBLS
from hms_bridge.backend.schema.metadata import ID, key, table

_NAME = String(128)


def grant_columns(time: str = "CREATE_TIME") -> tuple[Column[Any], ...]:
    """Who granted what to whom, and when."""
    return (
        Column(time, ID, nullable=False),
        Column("GRANT_OPTION", SmallInteger, nullable=False),
        Column("GRANTOR", _NAME),
        Column("GRANTOR_TYPE", _NAME),
        Column("PRINCIPAL_NAME", _NAME),
        Column("PRINCIPAL_TYPE", _NAME),
    )


def _privileges(
    name: str, grant_id: str, privilege: str, owner: Column[int], *, of_columns: bool
) -> Table:
    columns = [Column("COLUMN_NAME", String(767))] if of_columns else []
    return table(
        name,
        key(grant_id),
        *columns,
        *grant_columns(),
        Column(privilege, _NAME),
        Column(owner.name, ID, ForeignKey(owner), index=True),
        Column("AUTHORIZER", _NAME),
    )


TBL_PRIVS = _privileges("TBL_PRIVS", "TBL_GRANT_ID", "TBL_PRIV", TBLS.c.TBL_ID, of_columns=False)

TBL_COL_PRIVS = _privileges(
    "TBL_COL_PRIVS", "TBL_COLUMN_GRANT_ID", "TBL_COL_PRIV", TBLS.c.TBL_ID, of_columns=True
)

PART_PRIVS = _privileges(
    "PART_PRIVS", "PART_GRANT_ID", "PART_PRIV", PARTITIONS.c.PART_ID, of_columns=False
)

PART_COL_PRIVS = _privileges(
    "PART_COL_PRIVS", "PART_COLUMN_GRANT_ID", "PART_COL_PRIV", PARTITIONS.c.PART_ID, of_columns=True
)

DB_PRIVS = _privileges("DB_PRIVS", "DB_GRANT_ID", "DB_PRIV", DBS.c.DB_ID, of_columns=False)
