"""What else Hive keeps about tables and databases: constraints, what materialized views read,
registered schemas, procedures and packages.

Nothing here makes such rows; those that Hive made are followed when a table or database is
dropped, renamed or given other columns.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
)

from hms_bridge.backend.schema.catalog_tables import Flag
from hms_bridge.backend.schema.metadata import ID, LONG_TEXT, METADATA, TABLE_OPTIONS

KEY_CONSTRAINTS = Table(
    "KEY_CONSTRAINTS",
    METADATA,
    Column("CHILD_CD_ID", ID),
    Column("CHILD_INTEGER_IDX", ID),
    Column("CHILD_TBL_ID", ID),
    Column("PARENT_CD_ID", ID),
    Column("PARENT_INTEGER_IDX", ID, nullable=False),
    Column("PARENT_TBL_ID", ID, primary_key=True, autoincrement=False),
    Column("CONSTRAINT_NAME", String(400), primary_key=True),
    Column("POSITION", ID, primary_key=True, autoincrement=False),
    Column("CONSTRAINT_TYPE", SmallInteger, nullable=False, index=True),
    Column("UPDATE_RULE", SmallInteger),
    Column("DELETE_RULE", SmallInteger),
    Column("ENABLE_VALIDATE_RELY", SmallInteger, nullable=False),
    Column("DEFAULT_VALUE", String(400)),
    Index("CONSTRAINTS_PARENT_TBLID_INDEX", "PARENT_TBL_ID"),
    **TABLE_OPTIONS,
)
"""The parent is the table that has the constraint; of a foreign key, the one it refers to."""

MV_CREATION_METADATA = Table(
    "MV_CREATION_METADATA",
    METADATA,
    Column("MV_CREATION_METADATA_ID", ID, primary_key=True, autoincrement=False),
    Column("CAT_NAME", String(256), nullable=False),
    Column("DB_NAME", String(128), nullable=False),
    Column("TBL_NAME", String(256), nullable=False),
    Column("TXN_LIST", LONG_TEXT),
    Column("MATERIALIZATION_TIME", ID, nullable=False),
    Index("MV_UNIQUE_TABLE", "TBL_NAME", "DB_NAME"),
    **TABLE_OPTIONS,
)

MV_TABLES_USED = Table(
    "MV_TABLES_USED",
    METADATA,
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID"), primary_key=True),
    Column(
        "MV_CREATION_METADATA_ID",
        ID,
        ForeignKey("MV_CREATION_METADATA.MV_CREATION_METADATA_ID"),
        primary_key=True,
    ),
    Column("INSERTED_COUNT", ID, nullable=False, server_default="0"),
    Column("UPDATED_COUNT", ID, nullable=False, server_default="0"),
    Column("DELETED_COUNT", ID, nullable=False, server_default="0"),
    **TABLE_OPTIONS,
)

I_SCHEMA = Table(
    "I_SCHEMA",
    METADATA,
    Column("SCHEMA_ID", ID, primary_key=True, autoincrement=False),
    Column("SCHEMA_TYPE", Integer, nullable=False),
    Column("NAME", String(256), unique=True),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID")),
    Column("COMPATIBILITY", Integer, nullable=False),
    Column("VALIDATION_LEVEL", Integer, nullable=False),
    Column("CAN_EVOLVE", Flag, nullable=False),
    Column("SCHEMA_GROUP", String(256)),
    Column("DESCRIPTION", String(4000)),
    **TABLE_OPTIONS,
)

SCHEMA_VERSION = Table(
    "SCHEMA_VERSION",
    METADATA,
    Column("SCHEMA_VERSION_ID", ID, primary_key=True, autoincrement=False),
    Column("SCHEMA_ID", ID, ForeignKey("I_SCHEMA.SCHEMA_ID")),
    Column("VERSION", Integer, nullable=False),
    Column("CREATED_AT", ID, nullable=False),
    Column("CD_ID", ID, ForeignKey("CDS.CD_ID")),
    Column("STATE", Integer, nullable=False),
    Column("DESCRIPTION", String(4000)),
    Column("SCHEMA_TEXT", LONG_TEXT),
    Column("FINGERPRINT", String(256)),
    Column("SCHEMA_VERSION_NAME", String(256)),
    Column("SERDE_ID", ID, ForeignKey("SERDES.SERDE_ID")),
    UniqueConstraint("SCHEMA_ID", "VERSION"),
    **TABLE_OPTIONS,
)

STORED_PROCS = Table(
    "STORED_PROCS",
    METADATA,
    Column("SP_ID", ID, primary_key=True, autoincrement=False),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), nullable=False),
    Column("NAME", String(256), nullable=False),
    Column("OWNER_NAME", String(128), nullable=False),
    Column("SOURCE", LONG_TEXT, nullable=False),
    Index("UNIQUESTOREDPROC", "NAME", "DB_ID", unique=True),
    **TABLE_OPTIONS,
)

PACKAGES = Table(
    "PACKAGES",
    METADATA,
    Column("PKG_ID", ID, primary_key=True, autoincrement=False),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), nullable=False),
    Column("NAME", String(256), nullable=False),
    Column("OWNER_NAME", String(128), nullable=False),
    Column("HEADER", LONG_TEXT, nullable=False),
    Column("BODY", LONG_TEXT, nullable=False),
    Index("UNIQUEPKG", "NAME", "DB_ID", unique=True),
    **TABLE_OPTIONS,
)
