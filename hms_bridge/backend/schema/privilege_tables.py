"""Roles, who has them, and who may do what with which object (Hive's privileges).

Rows of an object refer to it by its key: they go when it does, and follow it through a rename.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Index, SmallInteger, String, Table, UniqueConstraint

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
    name: str,
    grant_id: str,
    privilege: str,
    owner: Column[int],
    *,
    index: str,
    of_columns: bool = False,
    is_unique: bool = False,
) -> Table:
    columns = [Column("COLUMN_NAME", String(767))] if of_columns else []
    indexed = (
        "AUTHORIZER", owner.name, *(column.name for column in columns), "PRINCIPAL_NAME",
        "PRINCIPAL_TYPE", privilege, "GRANTOR", "GRANTOR_TYPE",
    )  # fmt: skip
    return table(
        name,
        key(grant_id),
        *columns,
        *grant_columns(),
        Column(privilege, _NAME),
        Column(owner.name, ID, ForeignKey(owner)),
        Column("AUTHORIZER", _NAME),
        Index(f"{name}_N49", owner.name),
        UniqueConstraint(*indexed, name=index) if is_unique else Index(index, *indexed),
    )


TBL_PRIVS = _privileges(
    "TBL_PRIVS", "TBL_GRANT_ID", "TBL_PRIV", TBLS.c.TBL_ID, index="TABLEPRIVILEGEINDEX"
)

TBL_COL_PRIVS = _privileges(
    "TBL_COL_PRIVS", "TBL_COLUMN_GRANT_ID", "TBL_COL_PRIV", TBLS.c.TBL_ID,
    index="TABLECOLUMNPRIVILEGEINDEX", of_columns=True,
)  # fmt: skip

PART_PRIVS = _privileges(
    "PART_PRIVS", "PART_GRANT_ID", "PART_PRIV", PARTITIONS.c.PART_ID, index="PARTPRIVILEGEINDEX"
)

PART_COL_PRIVS = _privileges(
    "PART_COL_PRIVS", "PART_COLUMN_GRANT_ID", "PART_COL_PRIV", PARTITIONS.c.PART_ID,
    index="PARTITIONCOLUMNPRIVILEGEINDEX", of_columns=True,
)  # fmt: skip

DB_PRIVS = _privileges(
    "DB_PRIVS", "DB_GRANT_ID", "DB_PRIV", DBS.c.DB_ID, index="DBPRIVILEGEINDEX", is_unique=True
)

ROLES = table(
    "ROLES",
    key("ROLE_ID"),
    Column("CREATE_TIME", ID, nullable=False),
    Column("OWNER_NAME", _NAME),
    Column("ROLE_NAME", _NAME),
    UniqueConstraint("ROLE_NAME", name="ROLEENTITYINDEX"),
)
ROLE_MAP = table(
    "ROLE_MAP",
    key("ROLE_GRANT_ID"),
    *grant_columns("ADD_TIME"),
    Column("ROLE_ID", ID, ForeignKey(ROLES.c.ROLE_ID)),
    Index("ROLE_MAP_N49", "ROLE_ID"),
    UniqueConstraint(
        "PRINCIPAL_NAME", "ROLE_ID", "GRANTOR", "GRANTOR_TYPE", name="USERROLEMAPINDEX"
    ),
)
GLOBAL_PRIVS = table(
    "GLOBAL_PRIVS",
    key("USER_GRANT_ID"),
    *grant_columns(),
    Column("USER_PRIV", _NAME),
    Column("AUTHORIZER", _NAME),
    UniqueConstraint(
        "AUTHORIZER", "PRINCIPAL_NAME", "PRINCIPAL_TYPE", "USER_PRIV", "GRANTOR", "GRANTOR_TYPE",
        name="GLOBALPRIVILEGEINDEX",
    ),
)  # fmt: skip
