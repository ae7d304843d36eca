"""Functions of databases, and the files that they need."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, String

from hms_bridge.backend.schema.metadata import ID, key, owner, table

FUNCS = table(
    "FUNCS",
    key("FUNC_ID"),
    Column("CLASS_NAME", String(4000)),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID")),
    Column("FUNC_NAME", String(128)),
    Column("FUNC_TYPE", Integer, nullable=False),
    Column("OWNER_NAME", String(128)),
    Column("OWNER_TYPE", String(10)),
    Index("FUNCS_N49", "DB_ID"),
    Index("UNIQUEFUNCTION", "FUNC_NAME", "DB_ID", unique=True),
)

FUNC_RU = table(
    "FUNC_RU",
    owner("FUNC_ID", "FUNCS"),
    Column("RESOURCE_TYPE", Integer, nullable=False),
    Column("RESOURCE_URI", String(4000)),
    Column("INTEGER_IDX", Integer, primary_key=True),
)
