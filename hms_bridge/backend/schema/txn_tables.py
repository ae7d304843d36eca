"""Hive's tables of transactions, locks, write ids and compactions. Units of their times:
docs/hive/metastore.md §13."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, DateTime, ForeignKey, Index, Integer, String, Table, Text, func
from sqlalchemy.dialects import mysql

from hms_bridge.backend.schema.metadata import (
    BINARY,
    GENERATED_ID,
    ID,
    LETTER,
    METADATA,
    TABLE_OPTIONS,
)
from hms_bridge.model.txn import TxnState

_DATABASE = String(128)
_TABLE = String(256)
_PARTITION = String(767)
_NAME = String(128)
_ERROR_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

TXNS = Table(
    "TXNS",
    METADATA,
    Column("TXN_ID", GENERATED_ID, primary_key=True, autoincrement=True),
    Column("TXN_STATE", LETTER, nullable=False),
    Column("TXN_STARTED", ID, nullable=False),
    Column("TXN_LAST_HEARTBEAT", ID, nullable=False),
    Column("TXN_USER", _NAME, nullable=False),
    Column("TXN_HOST", _NAME, nullable=False),
    Column("TXN_AGENT_INFO", _NAME),
    Column("TXN_META_INFO", _NAME),
    Column("TXN_HEARTBEAT_COUNT", Integer),
    Column("TXN_TYPE", Integer),
    # Without AUTOINCREMENT SQLite gives the id of a deleted last row again.
    sqlite_autoincrement=True,
    **TABLE_OPTIONS,
)
# Hive has it since 4.1, and unique, which on InnoDB only makes openers wait for each other.
Index("TXN_STATE_IDX", TXNS.c.TXN_STATE, TXNS.c.TXN_ID)

TXN_LOCK_TBL = Table("TXN_LOCK_TBL", METADATA, Column("TXN_LOCK", ID, nullable=False),
                     **TABLE_OPTIONS)  # fmt: skip

TXN_COMPONENTS = Table(
    "TXN_COMPONENTS",
    METADATA,
    Column("TC_TXNID", GENERATED_ID, ForeignKey(TXNS.c.TXN_ID), nullable=False),
    Column("TC_DATABASE", _DATABASE, nullable=False),
    Column("TC_TABLE", _TABLE),
    Column("TC_PARTITION", _PARTITION),
    Column("TC_OPERATION_TYPE", LETTER, nullable=False),
    Column("TC_WRITEID", ID),
    Index("TC_TXNID_INDEX", "TC_TXNID"),
    **TABLE_OPTIONS,
)

COMPLETED_TXN_COMPONENTS = Table(
    "COMPLETED_TXN_COMPONENTS",
    METADATA,
    Column("CTC_TXNID", ID, nullable=False),
    Column("CTC_DATABASE", _DATABASE, nullable=False),
    Column("CTC_TABLE", _TABLE),
    Column("CTC_PARTITION", _PARTITION),
    Column("CTC_TIMESTAMP", DateTime(), nullable=False, server_default=func.current_timestamp()),
    Column("CTC_WRITEID", ID),
    Column("CTC_UPDATE_DELETE", LETTER, nullable=False),
    Index("COMPLETED_TXN_COMPONENTS_INDEX", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"),
    **TABLE_OPTIONS,
)

HIVE_LOCKS = Table(
    "HIVE_LOCKS",
    METADATA,
    Column("HL_LOCK_EXT_ID", ID, primary_key=True, autoincrement=False),
    Column("HL_LOCK_INT_ID", ID, primary_key=True, autoincrement=False),
    Column("HL_TXNID", ID, nullable=False),
    Column("HL_DB", _DATABASE, nullable=False),
    Column("HL_TABLE", _TABLE),
    Column("HL_PARTITION", _PARTITION),
    Column("HL_LOCK_STATE", LETTER, nullable=False),
    Column("HL_LOCK_TYPE", LETTER, nullable=False),
    Column("HL_LAST_HEARTBEAT", ID, nullable=False),
    Column("HL_ACQUIRED_AT", ID),
    Column("HL_USER", _NAME, nullable=False),
    Column("HL_HOST", _NAME, nullable=False),
    Column("HL_HEARTBEAT_COUNT", Integer),
    Column("HL_AGENT_INFO", _NAME),
    Column("HL_BLOCKEDBY_EXT_ID", ID),
    Column("HL_BLOCKEDBY_INT_ID", ID),
    Index("HL_TXNID_INDEX", "HL_TXNID"),
    **TABLE_OPTIONS,
)

NEXT_LOCK_ID = Table("NEXT_LOCK_ID", METADATA, Column("NL_NEXT", ID, nullable=False),
                     **TABLE_OPTIONS)  # fmt: skip

COMPACTION_QUEUE = Table(
    "COMPACTION_QUEUE",
    METADATA,
    Column("CQ_ID", ID, primary_key=True, autoincrement=False),
    Column("CQ_DATABASE", _DATABASE, nullable=False),
    Column("CQ_TABLE", _TABLE, nullable=False),
    Column("CQ_PARTITION", _PARTITION),
    Column("CQ_STATE", LETTER, nullable=False),
    Column("CQ_TYPE", LETTER, nullable=False),
    Column("CQ_TBLPROPERTIES", String(2048)),
    Column("CQ_WORKER_ID", _NAME),
    Column("CQ_ENQUEUE_TIME", ID),
    Column("CQ_START", ID),
    Column("CQ_RUN_AS", _NAME),
    Column("CQ_HIGHEST_WRITE_ID", ID),
    Column("CQ_META_INFO", BINARY),
    Column("CQ_HADOOP_JOB_ID", String(32)),
    Column("CQ_ERROR_MESSAGE", _ERROR_TEXT),
    Column("CQ_NEXT_TXN_ID", ID),
    Column("CQ_TXN_ID", ID),
    Column("CQ_COMMIT_TIME", ID),
    Column("CQ_INITIATOR_ID", _NAME),
    Column("CQ_INITIATOR_VERSION", _NAME),
    Column("CQ_WORKER_VERSION", _NAME),
    Column("CQ_CLEANER_START", ID),
    Column("CQ_RETRY_RETENTION", ID, nullable=False, server_default="0"),
    Column("CQ_POOL_NAME", _NAME),
    Column("CQ_NUMBER_OF_BUCKETS", Integer),
    Column("CQ_ORDER_BY", String(4000)),
    **TABLE_OPTIONS,
)

COMPLETED_COMPACTIONS = Table(
    "COMPLETED_COMPACTIONS",
    METADATA,
    Column("CC_ID", ID, primary_key=True, autoincrement=False),
    Column("CC_DATABASE", _DATABASE, nullable=False),
    Column("CC_TABLE", _TABLE, nullable=False),
    Column("CC_PARTITION", _PARTITION),
    Column("CC_STATE", LETTER, nullable=False),
    Column("CC_TYPE", LETTER, nullable=False),
    Column("CC_TBLPROPERTIES", String(2048)),
    Column("CC_WORKER_ID", _NAME),
    Column("CC_ENQUEUE_TIME", ID),
    Column("CC_START", ID),
    Column("CC_END", ID),
    Column("CC_RUN_AS", _NAME),
    Column("CC_HIGHEST_WRITE_ID", ID),
    Column("CC_META_INFO", BINARY),
    Column("CC_HADOOP_JOB_ID", String(32)),
    Column("CC_ERROR_MESSAGE", _ERROR_TEXT),
    Column("CC_NEXT_TXN_ID", ID),
    Column("CC_TXN_ID", ID),
    Column("CC_COMMIT_TIME", ID),
    Column("CC_INITIATOR_ID", _NAME),
    Column("CC_INITIATOR_VERSION", _NAME),
    Column("CC_WORKER_VERSION", _NAME),
    Column("CC_POOL_NAME", _NAME),
    Column("CC_NUMBER_OF_BUCKETS", Integer),
    Column("CC_ORDER_BY", String(4000)),
    Index("COMPLETED_COMPACTIONS_RES", "CC_DATABASE", "CC_TABLE", "CC_PARTITION"),
    **TABLE_OPTIONS,
)

NEXT_COMPACTION_QUEUE_ID = Table("NEXT_COMPACTION_QUEUE_ID", METADATA,
                                 Column("NCQ_NEXT", ID, nullable=False),
                                 **TABLE_OPTIONS)  # fmt: skip

AUX_TABLE = Table(
    "AUX_TABLE",
    METADATA,
    Column("MT_KEY1", String(128), primary_key=True),
    Column("MT_KEY2", ID, primary_key=True, autoincrement=False),
    Column("MT_COMMENT", String(255)),
    **TABLE_OPTIONS,
)

WRITE_SET = Table(
    "WRITE_SET",
    METADATA,
    Column("WS_DATABASE", _DATABASE, nullable=False),
    Column("WS_TABLE", _TABLE, nullable=False),
    Column("WS_PARTITION", _PARTITION),
    Column("WS_TXNID", ID, nullable=False),
    Column("WS_COMMIT_ID", ID, nullable=False),
    Column("WS_OPERATION_TYPE", LETTER, nullable=False),
    **TABLE_OPTIONS,
)

TXN_TO_WRITE_ID = Table(
    "TXN_TO_WRITE_ID",
    METADATA,
    Column("T2W_TXNID", ID, nullable=False),
    Column("T2W_DATABASE", _DATABASE, nullable=False),
    Column("T2W_TABLE", _TABLE, nullable=False),
    Column("T2W_WRITEID", ID, nullable=False),
    Index("TBL_TO_TXN_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", unique=True),
    Index("TBL_TO_WRITE_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", unique=True),
    **TABLE_OPTIONS,
)

NEXT_WRITE_ID = Table(
    "NEXT_WRITE_ID",
    METADATA,
    Column("NWI_DATABASE", _DATABASE, nullable=False),
    Column("NWI_TABLE", _TABLE, nullable=False),
    Column("NWI_NEXT", ID, nullable=False),
    Index("NEXT_WRITE_ID_IDX", "NWI_DATABASE", "NWI_TABLE", unique=True),
    **TABLE_OPTIONS,
)

MIN_HISTORY_LEVEL = Table(
    "MIN_HISTORY_LEVEL",
    METADATA,
    Column("MHL_TXNID", ID, primary_key=True, autoincrement=False),
    Column("MHL_MIN_OPEN_TXNID", ID, nullable=False),
    Index("MIN_HISTORY_LEVEL_IDX", "MHL_MIN_OPEN_TXNID"),
    **TABLE_OPTIONS,
)

MIN_HISTORY_WRITE_ID = Table(
    "MIN_HISTORY_WRITE_ID",
    METADATA,
    Column("MH_TXNID", GENERATED_ID, ForeignKey(TXNS.c.TXN_ID), nullable=False),
    Column("MH_DATABASE", _DATABASE, nullable=False),
    Column("MH_TABLE", _TABLE, nullable=False),
    Column("MH_WRITEID", ID, nullable=False),
    **TABLE_OPTIONS,
)

REPL_TXN_MAP = Table(
    "REPL_TXN_MAP",
    METADATA,
    Column("RTM_REPL_POLICY", String(256), primary_key=True),
    Column("RTM_SRC_TXN_ID", ID, primary_key=True, autoincrement=False),
    Column("RTM_TARGET_TXN_ID", ID, nullable=False),
    **TABLE_OPTIONS,
)

MATERIALIZATION_REBUILD_LOCKS = Table(
    "MATERIALIZATION_REBUILD_LOCKS",
    METADATA,
    Column("MRL_TXN_ID", ID, primary_key=True, autoincrement=False),
    Column("MRL_DB_NAME", _DATABASE, nullable=False),
    Column("MRL_TBL_NAME", _TABLE, nullable=False),
    Column("MRL_LAST_HEARTBEAT", ID, nullable=False),
    **TABLE_OPTIONS,
)

COMPACTION_METRICS_CACHE = Table(
    "COMPACTION_METRICS_CACHE",
    METADATA,
    Column("CMC_DATABASE", _DATABASE, nullable=False),
    Column("CMC_TABLE", _TABLE, nullable=False),
    Column("CMC_PARTITION", _PARTITION),
    Column("CMC_METRIC_TYPE", _NAME, nullable=False),
    Column("CMC_METRIC_VALUE", Integer, nullable=False),
    Column("CMC_VERSION", Integer, nullable=False),
    **TABLE_OPTIONS,
)

SEQUENCE_TABLE = Table(
    "SEQUENCE_TABLE",
    METADATA,
    Column("SEQUENCE_NAME", String(255), primary_key=True),
    Column("NEXT_VAL", ID, nullable=False),
    **TABLE_OPTIONS,
)

VERSION = Table(
    "VERSION",
    METADATA,
    Column("VER_ID", ID, primary_key=True, autoincrement=False),
    Column("SCHEMA_VERSION", String(127), nullable=False),
    Column("VERSION_COMMENT", String(255), nullable=False),
    **TABLE_OPTIONS,
)

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    # MAX(TXN_ID) is never NULL, and the first id is 1.
    (
        TXNS,
        {
            "TXN_ID": 0,
            "TXN_STATE": TxnState.COMMITTED.value,
            "TXN_STARTED": 0,
            "TXN_LAST_HEARTBEAT": 0,
            "TXN_USER": "",
            "TXN_HOST": "",
        },
    ),
    (TXN_LOCK_TBL, {"TXN_LOCK": 1}),
    (NEXT_LOCK_ID, {"NL_NEXT": 1}),
    (NEXT_COMPACTION_QUEUE_ID, {"NCQ_NEXT": 1}),
)
"""Rows without which the transaction tables do not work; put in where a table is empty."""
