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
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from hms_bridge.backend.schema.metadata import ADDED, ID, UTF8_TEXT, key, owner, table, utf8_words


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

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        """PostgreSQL gives a truth value, so that a fixed statement may have one."""
        return None if dialect.name == "postgresql" else super().result_processor(dialect, coltype)


def _parameters(
    name: str, column: str, reference: str, value: TypeEngine[str], key_length: int = 256
) -> Table:
    return table(
        name,
        owner(column, reference),
        Column("PARAM_KEY", String(key_length), primary_key=True),
        Column("PARAM_VALUE", value),
    )


CTLGS = table(
    "CTLGS",
    key("CTLG_ID"),
    Column("NAME", String(256), unique=True),
    Column("DESC", utf8_words(4000)),
    Column("LOCATION_URI", utf8_words(4000), nullable=False),
    Column("CREATE_TIME", ID),
)

DBS = table(
    "DBS",
    key("DB_ID"),
    Column("DESC", utf8_words(4000)),
    Column("DB_LOCATION_URI", utf8_words(4000), nullable=False),
    Column("NAME", String(128)),
    Column("OWNER_NAME", String(128)),
    Column("OWNER_TYPE", String(10)),
    Column("CTLG_NAME", String(256), nullable=False, server_default="hive"),
    Column("CREATE_TIME", ID),
    Column("DB_MANAGED_LOCATION_URI", utf8_words(4000)),
    Column("TYPE", String(32), nullable=False, server_default="NATIVE"),
    Column("DATACONNECTOR_NAME", String(128)),
    Column("REMOTE_DBNAME", String(128)),
    UniqueConstraint("NAME", "CTLG_NAME", name="UNIQUE_DATABASE"),
)

DATABASE_PARAMS = _parameters("DATABASE_PARAMS", "DB_ID", "DBS", utf8_words(4000), key_length=180)

SERDES = table(
    "SERDES",
    key("SERDE_ID"),
    Column("NAME", String(128)),
    Column("SLIB", utf8_words(4000)),
    Column("DESCRIPTION", utf8_words(4000)),
    Column("SERIALIZER_CLASS", utf8_words(4000)),
    Column("DESERIALIZER_CLASS", utf8_words(4000)),
    Column("SERDE_TYPE", Integer),
)

SERDE_PARAMS = _parameters("SERDE_PARAMS", "SERDE_ID", "SERDES", UTF8_TEXT)

CDS = table("CDS", key("CD_ID"))

COLUMNS_V2 = table(
    "COLUMNS_V2",
    owner("CD_ID", "CDS"),
    Column("COMMENT", utf8_words(4000)),
    Column("COLUMN_NAME", String(767), primary_key=True),
    Column("TYPE_NAME", UTF8_TEXT),
    Column("INTEGER_IDX", Integer, nullable=False),
)

SDS = table(
    "SDS",
    key("SD_ID"),
    Column("INPUT_FORMAT", utf8_words(4000)),
    Column("IS_COMPRESSED", Flag, nullable=False),
    Column("LOCATION", utf8_words(4000)),
    Column("NUM_BUCKETS", ID, nullable=False),
    Column("OUTPUT_FORMAT", utf8_words(4000)),
    Column("SERDE_ID", ID, ForeignKey("SERDES.SERDE_ID")),
    Column("CD_ID", ID, ForeignKey("CDS.CD_ID")),
    Column("IS_STOREDASSUBDIRECTORIES", Flag, nullable=False),
    Index("SDS_N49", "SERDE_ID"),
    Index("SDS_N50", "CD_ID"),
)

SD_PARAMS = _parameters("SD_PARAMS", "SD_ID", "SDS", UTF8_TEXT)

BUCKETING_COLS = table(
    "BUCKETING_COLS",
    owner("SD_ID", "SDS"),
    Column("BUCKET_COL_NAME", String(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SORT_COLS = table(
    "SORT_COLS",
    owner("SD_ID", "SDS"),
    Column("COLUMN_NAME", String(767)),
    Column("ORDER", ID, nullable=False),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_COL_NAMES = table(
    "SKEWED_COL_NAMES",
    owner("SD_ID", "SDS"),
    Column("SKEWED_COL_NAME", String(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_STRING_LIST = table("SKEWED_STRING_LIST", key("STRING_LIST_ID"))

SKEWED_STRING_LIST_VALUES = table(
    "SKEWED_STRING_LIST_VALUES",
    owner("STRING_LIST_ID", "SKEWED_STRING_LIST"),
    Column("STRING_LIST_VALUE", utf8_words(256)),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_VALUES = table(
    "SKEWED_VALUES",
    Column("SD_ID_OID", ID, ForeignKey("SDS.SD_ID"), primary_key=True),
    Column(
        "STRING_LIST_ID_EID", ID, ForeignKey("SKEWED_STRING_LIST.STRING_LIST_ID"), nullable=False
    ),
    Column("INTEGER_IDX", ID, primary_key=True),
)

SKEWED_COL_VALUE_LOC_MAP = table(
    "SKEWED_COL_VALUE_LOC_MAP",
    owner("SD_ID", "SDS"),
    Column(
        "STRING_LIST_ID_KID",
        ID,
        ForeignKey("SKEWED_STRING_LIST.STRING_LIST_ID"),
        primary_key=True,
    ),
    Column("LOCATION", utf8_words(4000)),
)

TBLS = table(
    "TBLS",
    key("TBL_ID"),
    Column("CREATE_TIME", ID, nullable=False),
    Column("DB_ID", ID, ForeignKey("DBS.DB_ID")),
    Column("LAST_ACCESS_TIME", ID, nullable=False),
    Column("OWNER", String(767)),
    Column("OWNER_TYPE", String(10)),
    Column("RETENTION", ID, nullable=False),
    Column("SD_ID", ID, ForeignKey("SDS.SD_ID")),
    Column("TBL_NAME", String(256)),
    Column("TBL_TYPE", String(128)),
    Column("VIEW_EXPANDED_TEXT", UTF8_TEXT),
    Column("VIEW_ORIGINAL_TEXT", UTF8_TEXT),
    Column("IS_REWRITE_ENABLED", Flag, nullable=False),
    Column("WRITE_ID", ID, server_default="0"),
    UniqueConstraint("TBL_NAME", "DB_ID", name="UNIQUETABLE"),
    Index("TBLS_N49", "DB_ID"),
    Index("TBLS_N50", "SD_ID"),
)

TABLE_PARAMS = _parameters("TABLE_PARAMS", "TBL_ID", "TBLS", UTF8_TEXT)

PARTITION_KEYS = table(
    "PARTITION_KEYS",
    owner("TBL_ID", "TBLS"),
    Column("PKEY_COMMENT", utf8_words(4000)),
    Column("PKEY_NAME", String(128), primary_key=True),
    Column("PKEY_TYPE", String(767), nullable=False),
    Column("INTEGER_IDX", ID, nullable=False),
)

PARTITIONS = table(
    "PARTITIONS",
    key("PART_ID"),
    Column("CREATE_TIME", ID, nullable=False),
    Column("LAST_ACCESS_TIME", ID, nullable=False),
    Column("PART_NAME", String(767)),
    Column("SD_ID", ID, ForeignKey("SDS.SD_ID")),
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID")),
    Column("WRITE_ID", ID, server_default="0"),
    UniqueConstraint("TBL_ID", "PART_NAME", name="UNIQUEPARTITION"),
    Index("PARTITIONS_N50", "SD_ID"),
)

Index(
    "HMSB_PARTITIONS_BY_NAME",
    PARTITIONS.c.TBL_ID,
    PARTITIONS.c.PART_NAME,
    PARTITIONS.c.PART_ID,
    postgresql_ops={"PART_NAME": "varchar_pattern_ops"},
    info=ADDED | {"dialect": "postgresql"},
).ddl_if(dialect="postgresql")
"""Names by their bytes, by which those with the same beginning are together. Elsewhere Hive's own
index has them so; PostgreSQL has them in the order of the database's language. With the id, so that
it is not taken for Hive's own, which is unique."""

PARTITION_PARAMS = _parameters("PARTITION_PARAMS", "PART_ID", "PARTITIONS", UTF8_TEXT)

PARTITION_KEY_VALS = table(
    "PARTITION_KEY_VALS",
    owner("PART_ID", "PARTITIONS"),
    Column("PART_KEY_VAL", utf8_words(256)),
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


TAB_COL_STATS = table(
    "TAB_COL_STATS",
    key("CS_ID"),
    Column("CAT_NAME", String(256), info=_UNTIL_4_1),
    Column("DB_NAME", String(128), info=_UNTIL_4_1),
    Column("TABLE_NAME", String(256), info=_UNTIL_4_1),
    Column("TBL_ID", ID, ForeignKey("TBLS.TBL_ID"), nullable=False),
    *_statistics_columns(),
    Index("TAB_COL_STATS_N49", "TBL_ID"),
)

PART_COL_STATS = table(
    "PART_COL_STATS",
    key("CS_ID"),
    Column("CAT_NAME", String(256), info=_UNTIL_4_1),
    Column("DB_NAME", String(128), info=_UNTIL_4_1),
    Column("TABLE_NAME", String(256), info=_UNTIL_4_1),
    Column("PARTITION_NAME", String(767), info=_UNTIL_4_1),
    Column("PART_ID", ID, ForeignKey("PARTITIONS.PART_ID"), nullable=False),
    *_statistics_columns(),
    Index("PART_COL_STATS_N49", "PART_ID"),
)

Index(
    "TAB_COL_STATS_IDX",
    TAB_COL_STATS.c.DB_NAME,
    TAB_COL_STATS.c.TABLE_NAME,
    TAB_COL_STATS.c.COLUMN_NAME,
    TAB_COL_STATS.c.CAT_NAME,
)

Index(
    "PCS_STATS_IDX",
    PART_COL_STATS.c.DB_NAME,
    PART_COL_STATS.c.TABLE_NAME,
    PART_COL_STATS.c.COLUMN_NAME,
    PART_COL_STATS.c.PARTITION_NAME,
    PART_COL_STATS.c.CAT_NAME,
)
