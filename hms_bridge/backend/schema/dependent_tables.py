"""What else Hive keeps about tables and databases: constraints, what materialized views read,
registered schemas, procedures and packages.

They follow when a table or database is dropped, renamed or given other columns. Registered schemas
are made by Hive alone.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)

from hms_bridge.backend.schema.catalog_tables import Flag
from hms_bridge.backend.schema.metadata import ID, LONG_TEXT, key, owner, table

KEY_CONSTRAINTS = table(
    "KEY_CONSTRAINTS",
    Column("CHILD_CD_ID", ID),
    Column("CHILD_INTEGER_IDX", ID),
    Column("CHILD_TBL_ID", ID),
    Column("PARENT_CD_ID", ID),
    Column("PARENT_INTEGER_IDX", ID, nullable=False),
    key("PARENT_TBL_ID"),
    Column("CONSTRAINT_NAME", String(400), primary_key=True),
    key("POSITION"),
    Column("CONSTRAINT_TYPE", SmallInteger, nullable=False),
    Column("UPDATE_RULE", SmallInteger),
    Column("DELETE_RULE", SmallInteger),
    Column("ENABLE_VALIDATE_RELY", SmallInteger, nullable=False),
    Column("DEFAULT_VALUE", String(400)),
    Index("CONSTRAINTS_CONSTRAINT_TYPE_INDEX", "CONSTRAINT_TYPE"),
    Index("CONSTRAINTS_PARENT_TBLID_INDEX", "PARENT_TBL_ID"),
)
"""The parent is the table that has the constraint; of a foreign key, the one it refers to."""

MV_CREATION_METADATA = table(
    "MV_CREATION_METADATA",
    key("MV_CREATION_METADATA_ID"),
    Column("CAT_NAME", String(256), nullable=False),
    Column("DB_NAME", String(128), nullable=False),
    Column("TBL_NAME", String(256), nullable=False),
    Column("TXN_LIST", Text),
    Column("MATERIALIZATION_TIME", ID, nullable=False),
    Index("MV_UNIQUE_TABLE", "TBL_NAME", "DB_NAME"),
)

MV_TABLES_USED = table(
    "MV_TABLES_USED",
    owner("TBL_ID", "TBLS"),
    owner("MV_CREATION_METADATA_ID", "MV_CREATION_METADATA"),
    Column("INSERTED_COUNT", ID, nullable=False, server_default="0"),
    Column("UPDATED_COUNT", ID, nullable=False, server_default="0"),
    Column("DELETED_COUNT", ID, nullable=False, server_default="0"),
)

I_SCHEMA = table(
    "I_SCHEMA",
    key("SCHEMA_ID"),
    Column("SCHEMA_TYPE", Integer, nullable=False),
    Column("NAME", String(256), unique=True),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID")),
    Column("COMPATIBILITY", Integer, nullable=False),
    Column("VALIDATION_LEVEL", Integer, nullable=False),
    Column("CAN_EVOLVE", Flag, nullable=False),
    Column("SCHEMA_GROUP", String(256)),
    Column("DESCRIPTION", String(4000)),
)

SCHEMA_VERSION = table(
    "SCHEMA_VERSION",
    key("SCHEMA_VERSION_ID"),
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
)

STORED_PROCS = table(
    "STORED_PROCS",
    key("SP_ID"),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), nullable=False),
    Column("NAME", String(256), nullable=False),
    Column("OWNER_NAME", String(128), nullable=False),
    Column("SOURCE", LONG_TEXT, nullable=False),
    Index("UNIQUESTOREDPROC", "NAME", "DB_ID", unique=True),
)

PACKAGES = table(
    "PACKAGES",
    key("PKG_ID"),
    Column("CREATE_TIME", Integer, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), nullable=False),
    Column("NAME", String(256), nullable=False),
    Column("OWNER_NAME", String(128), nullable=False),
    Column("HEADER", LONG_TEXT, nullable=False),
    Column("BODY", LONG_TEXT, nullable=False),
    Index("UNIQUEPKG", "NAME", "DB_ID", unique=True),
)
