"""Hive's tables of functions and materialized views; as :mod:`catalog_tables`."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, String, Table, UniqueConstraint

from hms_bridge.backend.schema.metadata import ID, LONG_TEXT, METADATA, TABLE_OPTIONS

FUNCS = Table(
    "FUNCS",
    METADATA,
    Column("FUNC_ID", ID, primary_key=True, autoincrement=False),
    Column("CLASS_NAME", String(4000)),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), index=True),
    Column("FUNC_NAME", String(128)),
    Column("FUNC_TYPE", Integer, nullable=False),
    Column("OWNER_NAME", String(128)),
    Column("OWNER_TYPE", String(10)),
    UniqueConstraint("FUNC_NAME", "DB_ID", name="UNIQUEFUNCTION"),
    **TABLE_OPTIONS,
)

FUNC_RU = Table(
    "FUNC_RU",
    METADATA,
    Column("FUNC_ID", ID, ForeignKey("FUNCS.FUNC_ID"), primary_key=True),
    Column("RESOURCE_TYPE", Integer, nullable=False),
    Column("RESOURCE_URI", String(4000)),
    Column("INTEGER_IDX", Integer, primary_key=True),
    **TABLE_OPTIONS,
)

MV_CREATION_METADATA = Table(
    "MV_CREATION_METADATA",
    METADATA,
    Column("MV_CREATION_METADATA_ID", ID, primary_key=True, autoincrement=False),
    Column("CAT_NAME", String(256), nullable=False),
    Column("DB_NAME", String(128), nullable=False),
    Column("TBL_NAME", String(256), nullable=False),
    Column("TXN_LIST", LONG_TEXT),
    Column("MATERIALIZATION_TIME", ID, nullable=False),
    **TABLE_OPTIONS,
)

Index("MV_UNIQUE_TABLE", MV_CREATION_METADATA.c.TBL_NAME, MV_CREATION_METADATA.c.DB_NAME)

MV_TABLES_USED = Table(
    "MV_TABLES_USED",
    METADATA,
    Column(
        "MV_CREATION_METADATA_ID",
        ID,
        ForeignKey("MV_CREATION_METADATA.MV_CREATION_METADATA_ID"),
        primary_key=True,
    ),
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID"), primary_key=True),
    Column("INSERTED_COUNT", ID, nullable=False, server_default="0"),
    Column("UPDATED_COUNT", ID, nullable=False, server_default="0"),
    Column("DELETED_COUNT", ID, nullable=False, server_default="0"),
    **TABLE_OPTIONS,
)
