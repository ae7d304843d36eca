"""Hive's catalog tables: catalogs, databases, tables, partitions and what describes them.

Column names, lengths and keys are those of Hive's schema 4.0.0. Foreign keys are declared as
Hive declares them, so that an order of statements that works here works on Hive's own database.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from hms_bridge.backend.schema.metadata import ID, METADATA, TABLE_OPTIONS

_UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}


class Flag(TypeDecorator[bool]):
    """A truth value: boolean on PostgreSQL, bit(1) on MySQL as Hive has it."""

    impl = Boolean
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of one dialect."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.BIT(1))
        return dialect.type_descriptor(Boolean(create_constraint=False))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> bool | None:  # noqa: ARG002
        """MySQL gives a number."""
        return None if value is None else bool(value)


def _words(length: int) -> TypeEngine[str]:
    """Text that people write, of limited length: never in a key, so UTF-8 on MySQL too."""
    return String(length).with_variant(mysql.VARCHAR(length, **_UTF8), "mysql", "mariadb")


_TEXT: TypeEngine[str] = Text().with_variant(mysql.LONGTEXT(**_UTF8), "mysql", "mariadb")
"""Text without a limit, UTF-8 on MySQL too."""


def _table(name: str, *items: Any) -> Table:
    return Table(name, METADATA, *items, **TABLE_OPTIONS)


def _owner(column: str, reference: str) -> Column[int]:
    return Column(column, ID, ForeignKey(f"{reference}.{column}"), primary_key=True)


def _parameters(
    name: str, column: str, reference: str, value: TypeEngine[str], key_length: int = 256
) -> Table:
    return _table(
        name,
        _owner(column, reference),
        Column("PARAM_KEY", String(key_length), primary_key=True),
        Column("PARAM_VALUE", value),
    )


CTLGS = _table(
    "CTLGS",
    Column("CTLG_ID", ID, primary_key=True, autoincrement=False),
    Column("NAME", String(256), unique=True),
    Column("DESC", _words(4000)),
    Column("LOCATION_URI", _words(4000), nullable=False),
    Column("CREATE_TIME", ID),
)

DBS = _table(
    "DBS",
    Column("DB_ID", ID, primary_key=True, autoincrement=False),
    Column("DESC", _words(4000)),
    Column("DB_LOCATION_URI", _words(4000), nullable=False),
    Column("NAME", String(128)),
    Column("OWNER_NAME", String(128)),
    Column("OWNER_TYPE", String(10)),
    Column("CTLG_NAME", String(256), nullable=False, server_default="hive"),
    Column("CREATE_TIME", ID),
    Column("DB_MANAGED_LOCATION_URI", _words(4000)),
    Column("TYPE", String(32), nullable=False, server_default="NATIVE"),
    Column("DATACONNECTOR_NAME", String(128)),
    Column("REMOTE_DBNAME", String(128)),
    UniqueConstraint("NAME", "CTLG_NAME", name="UNIQUE_DATABASE"),
)

DATABASE_PARAMS = _parameters("DATABASE_PARAMS", "DB_ID", "DBS", _words(4000), key_length=180)

SERDES = _table(
    "SERDES",
    Column("SERDE_ID", ID, primary_key=True, autoincrement=False),
    Column("NAME", String(128)),
    Column("SLIB", _words(4000)),
    Column("DESCRIPTION", _words(4000)),
    Column("SERIALIZER_CLASS", _words(4000)),
    Column("DESERIALIZER_CLASS", _words(4000)),
    Column("SERDE_TYPE", Integer),
)

SERDE_PARAMS = _parameters("SERDE_PARAMS", "SERDE_ID", "SERDES", _TEXT)

CDS = _table("CDS", Column("CD_ID", ID, primary_key=True, autoincrement=False))

COLUMNS_V2 = _table(
    "COLUMNS_V2",
    _owner("CD_ID", "CDS"),
    Column("COMMENT", _words(4000)),
    Column("COLUMN_NAME", String(767), primary_key=True),
    Column("TYPE_NAME", _TEXT),
    Column("INTEGER_IDX", Integer, nullable=False),
)

SDS = _table(
    "SDS",
    Column("SD_ID", ID, primary_key=True, autoincrement=False),
    Column("INPUT_FORMAT", _words(4000)),
    Column("IS_COMPRESSED", Flag, nullable=False),
    Column("LOCATION", _words(4000)),
    Column("NUM_BUCKETS", ID, nullable=False),
    Column("OUTPUT_FORMAT", _words(4000)),
    Column("SERDE_ID", ID, ForeignKey("SERDES.SERDE_ID"), index=True),
    Column("CD_ID", ID, ForeignKey("CDS.CD_ID"), index=True),
    Column("IS_STOREDASSUBDIRECTORIES", Flag, nullable=False),
)

SD_PARAMS = _parameters("SD_PARAMS", "SD_ID", "SDS", _TEXT)

BUCKETING_COLS = _table(
    "BUCKETING_COLS",
    _owner("SD_ID", "SDS"),
    Column("BUCKET_COL_NAME", String(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SORT_COLS = _table(
    "SORT_COLS",
    _owner("SD_ID", "SDS"),
    Column("COLUMN_NAME", String(767)),
    Column("ORDER", ID, nullable=False),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_COL_NAMES = _table(
    "SKEWED_COL_NAMES",
    _owner("SD_ID", "SDS"),
    Column("SKEWED_COL_NAME", String(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_STRING_LIST = _table(
    "SKEWED_STRING_LIST", Column("STRING_LIST_ID", ID, primary_key=True, autoincrement=False)
)

SKEWED_STRING_LIST_VALUES = _table(
    "SKEWED_STRING_LIST_VALUES",
    _owner("STRING_LIST_ID", "SKEWED_STRING_LIST"),
    Column("STRING_LIST_VALUE", _words(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_VALUES = _table(
    "SKEWED_VALUES",
    Column("SD_ID_OID", ID, ForeignKey("SDS.SD_ID"), primary_key=True),
    Column(
        "STRING_LIST_ID_EID", ID, ForeignKey("SKEWED_STRING_LIST.STRING_LIST_ID"), nullable=False
    ),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_COL_VALUE_LOC_MAP = _table(
    "SKEWED_COL_VALUE_LOC_MAP",
    _owner("SD_ID", "SDS"),
    Column(
        "STRING_LIST_ID_KID",
        ID,
        ForeignKey("SKEWED_STRING_LIST.STRING_LIST_ID"),
        primary_key=True,
    ),
    Column("LOCATION", _words(4000)),
)

TBLS = _table(
    "TBLS",
    Column("TBL_ID", ID, primary_key=True, autoincrement=False),
    Column("CREATE_TIME", ID, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID"), index=True),
    Column("LAST_ACCESS_TIME", ID, nullable=False),
    Column("OWNER", String(767)),
    Column("OWNER_TYPE", String(10)),
    Column("RETENTION", ID, nullable=False),
    Column("SD_ID", ID, ForeignKey("SDS.SD_ID"), index=True),
    Column("TBL_NAME", String(256)),
    Column("TBL_TYPE", String(128)),
    Column("VIEW_EXPANDED_TEXT", _TEXT),
    Column("VIEW_ORIGINAL_TEXT", _TEXT),
    Column("IS_REWRITE_ENABLED", Flag, nullable=False),
    Column("WRITE_ID", ID, server_default="0"),
    UniqueConstraint("TBL_NAME", "DB_ID", name="UNIQUETABLE"),
)

TABLE_PARAMS = _parameters("TABLE_PARAMS", "TBL_ID", "TBLS", _TEXT)

PARTITION_KEYS = _table(
    "PARTITION_KEYS",
    _owner("TBL_ID", "TBLS"),
    Column("PKEY_COMMENT", _words(4000)),
    Column("PKEY_NAME", String(128), primary_key=True),
    Column("PKEY_TYPE", String(767), nullable=False),
    Column("INTEGER_IDX", ID, nullable=False),
)

PARTITIONS = _table(
    "PARTITIONS",
    Column("PART_ID", ID, primary_key=True, autoincrement=False),
    Column("CREATE_TIME", ID, nullable=False),
    Column("LAST_ACCESS_TIME", ID, nullable=False),
    Column("PART_NAME", String(767)),
    Column("SD_ID", ID, ForeignKey("SDS.SD_ID"), index=True),
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID"), index=True),
    Column("WRITE_ID", ID, server_default="0"),
    UniqueConstraint("PART_NAME", "TBL_ID", name="UNIQUEPARTITION"),
)

PARTITION_PARAMS = _parameters("PARTITION_PARAMS", "PART_ID", "PARTITIONS", _TEXT)

PARTITION_KEY_VALS = _table(
    "PARTITION_KEY_VALS",
    _owner("PART_ID", "PARTITIONS"),
    Column("PART_KEY_VAL", _words(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)


_UNTIL_4_1 = {"until": "4.1.0"}
"""Names that Hive keeps beside the id up to 4.0 only."""


def _statistics_columns() -> tuple[Column[Any], ...]:
    return (
        Column("COLUMN_NAME", String(767)),
        Column("COLUMN_TYPE", String(128)),
        Column("LONG_LOW_VALUE", ID),
        Column("LONG_HIGH_VALUE", ID),
        Column("DOUBLE_LOW_VALUE", Double),
        Column("DOUBLE_HIGH_VALUE", Double),
        Column("BIG_DECIMAL_LOW_VALUE", String(4000)),
        Column("BIG_DECIMAL_HIGH_VALUE", String(4000)),
        Column("NUM_NULLS", ID, nullable=False),
        Column("NUM_DISTINCTS", ID),
        Column("BIT_VECTOR", LargeBinary),
        Column("AVG_COL_LEN", Double),
        Column("MAX_COL_LEN", ID),
        Column("NUM_TRUES", ID),
        Column("NUM_FALSES", ID),
        Column("LAST_ANALYZED", ID, nullable=False),
        Column("ENGINE", String(128), nullable=False),
        Column("HISTOGRAM", LargeBinary),
    )


TAB_COL_STATS = _table(
    "TAB_COL_STATS",
    Column("CS_ID", ID, primary_key=True, autoincrement=False),
    Column("CAT_NAME", String(256), info=_UNTIL_4_1),
    Column("DB_NAME", String(128), info=_UNTIL_4_1),
    Column("TABLE_NAME", String(256), info=_UNTIL_4_1),
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID"), nullable=False, index=True),
    *_statistics_columns(),
)

PART_COL_STATS = _table(
    "PART_COL_STATS",
    Column("CS_ID", ID, primary_key=True, autoincrement=False),
    Column("CAT_NAME", String(256), info=_UNTIL_4_1),
    Column("DB_NAME", String(128), info=_UNTIL_4_1),
    Column("TABLE_NAME", String(256), info=_UNTIL_4_1),
    Column("PARTITION_NAME", String(767), info=_UNTIL_4_1),
    Column("PART_ID", ID, ForeignKey("PARTITIONS.PART_ID"), nullable=False, index=True),
    *_statistics_columns(),
)

Index(
    "TAB_COL_STATS_IDX",
    TAB_COL_STATS.c.DB_NAME,
    TAB_COL_STATS.c.TABLE_NAME,
    TAB_COL_STATS.c.COLUMN_NAME,
    TAB_COL_STATS.c.CAT_NAME,
)
