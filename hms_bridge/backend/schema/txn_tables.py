"""Hive's tables of transactions, locks, write ids and compactions. Units of their times:
docs/hive/metastore.md §13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, DateTime, ForeignKey, Index, Integer, String, Table, Text, func
from sqlalchemy.dialects import mysql

from hms_bridge.backend.schema.metadata import (
    ADDED,
    BINARY,
    ID,
    LETTER,
    ROW_ID,
    UTF8_TEXT,
    key,
    table,
)
from hms_bridge.model.txn import TxnState

_DATABASE = String(128)
_TABLE = String(256)
_PARTITION = String(767)
_NAME = String(128)
_ERROR_TEXT = Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

TXNS = table(
    "TXNS",
    Column("TXN_ID", ROW_ID, primary_key=True, autoincrement=True),
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
)
# Not by the name of Hive's since 4.1: its upgrade would find that taken. And not unique as that one
# is, which on InnoDB only makes openers wait for each other. PostgreSQL takes it only for what asks
# for a state: where it knows the table as empty, it would also look up an id by it, through all of
# it. Foreign keys do that for each row.
Index(
    "HMSB_TXN_STATE",
    TXNS.c.TXN_STATE,
    TXNS.c.TXN_ID,
    postgresql_where=TXNS.c.TXN_STATE.is_not(None),
    info=ADDED,
)

TXN_LOCK_TBL = table(
    "TXN_LOCK_TBL",
    Column("TXN_LOCK", ID, nullable=False),
)

TXN_COMPONENTS = table(
    "TXN_COMPONENTS",
    Column("TC_TXNID", ROW_ID, ForeignKey(TXNS.c.TXN_ID), nullable=False),
    Column("TC_DATABASE", _DATABASE, nullable=False),
    Column("TC_TABLE", _TABLE),
    Column("TC_PARTITION", _PARTITION),
    Column("TC_OPERATION_TYPE", LETTER, nullable=False),
    Column("TC_WRITEID", ID),
    Index("TC_TXNID_INDEX", "TC_TXNID"),
)

COMPLETED_TXN_COMPONENTS = table(
    "COMPLETED_TXN_COMPONENTS",
    Column("CTC_TXNID", ID, nullable=False),
    Column("CTC_DATABASE", _DATABASE, nullable=False),
    Column("CTC_TABLE", _TABLE),
    Column("CTC_PARTITION", _PARTITION),
    Column("CTC_TIMESTAMP", DateTime(), nullable=False, server_default=func.current_timestamp()),
    Column("CTC_WRITEID", ID),
    Column("CTC_UPDATE_DELETE", LETTER, nullable=False),
    Index("COMPLETED_TXN_COMPONENTS_INDEX", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"),
)

HIVE_LOCKS = table(
    "HIVE_LOCKS",
    key("HL_LOCK_EXT_ID"),
    key("HL_LOCK_INT_ID"),
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
    # By the type: nearly all locks are of writers that share a table, and none of them is in the
    # way of the next.
    Index("HMSB_LOCKS_OF_TYPE", "HL_DB", "HL_LOCK_TYPE", "HL_TABLE", info=ADDED),
)

NEXT_LOCK_ID = table(
    "NEXT_LOCK_ID",
    Column("NL_NEXT", ID, nullable=False),
)


def _compaction_columns(prefix: str) -> Iterator[Column[Any]]:
    """What both the queue and the history have."""
    for name, kind, is_required in (
        ("DATABASE", _DATABASE, True),
        ("TABLE", _TABLE, True),
        ("PARTITION", _PARTITION, False),
        ("STATE", LETTER, True),
        ("TYPE", LETTER, True),
        ("TBLPROPERTIES", String(2048), False),
        ("WORKER_ID", _NAME, False),
        ("ENQUEUE_TIME", ID, False),
        ("START", ID, False),
        ("RUN_AS", _NAME, False),
        ("HIGHEST_WRITE_ID", ID, False),
        ("META_INFO", BINARY, False),
        ("HADOOP_JOB_ID", String(32), False),
        ("ERROR_MESSAGE", _ERROR_TEXT, False),
        ("NEXT_TXN_ID", ID, False),
        ("TXN_ID", ID, False),
        ("COMMIT_TIME", ID, False),
        ("INITIATOR_ID", _NAME, False),
        ("INITIATOR_VERSION", _NAME, False),
        ("WORKER_VERSION", _NAME, False),
        ("POOL_NAME", _NAME, False),
        ("NUMBER_OF_BUCKETS", Integer, False),
        ("ORDER_BY", String(4000), False),
    ):
        yield Column(f"{prefix}_{name}", kind, nullable=not is_required)


COMPACTION_QUEUE = table(
    "COMPACTION_QUEUE",
    key("CQ_ID"),
    *_compaction_columns("CQ"),
    Column("CQ_CLEANER_START", ID),
    Column("CQ_RETRY_RETENTION", ID, nullable=False, server_default="0"),
    Index("HMSB_QUEUED_BY_STATE", "CQ_STATE", "CQ_ID", info=ADDED),
    # Not by the partition: SQLAlchemy finds no index of MariaDB's in which that word stands.
    Index("HMSB_QUEUED_OF_TABLE", "CQ_DATABASE", "CQ_TABLE", "CQ_STATE", info=ADDED),
    Index("HMSB_QUEUED_OF_TXN", "CQ_TXN_ID", info=ADDED),
)

COMPLETED_COMPACTIONS = table(
    "COMPLETED_COMPACTIONS",
    key("CC_ID"),
    *_compaction_columns("CC"),
    Column("CC_END", ID),
    Index("COMPLETED_COMPACTIONS_RES", "CC_DATABASE", "CC_TABLE", "CC_PARTITION"),
    Index("HMSB_COMPACTED_BY_STATE", "CC_STATE", "CC_ID", info=ADDED),
)

NEXT_COMPACTION_QUEUE_ID = table(
    "NEXT_COMPACTION_QUEUE_ID",
    Column("NCQ_NEXT", ID, nullable=False),
)

AUX_TABLE = table(
    "AUX_TABLE",
    Column("MT_KEY1", String(128), primary_key=True),
    key("MT_KEY2"),
    Column("MT_COMMENT", String(255)),
)

WRITE_SET = table(
    "WRITE_SET",
    Column("WS_DATABASE", _DATABASE, nullable=False),
    Column("WS_TABLE", _TABLE, nullable=False),
    Column("WS_PARTITION", _PARTITION),
    Column("WS_TXNID", ID, nullable=False),
    Column("WS_COMMIT_ID", ID, nullable=False),
    Column("WS_OPERATION_TYPE", LETTER, nullable=False),
    Index("HMSB_CHANGES_OF_TABLE", "WS_DATABASE", "WS_TABLE", "WS_COMMIT_ID", info=ADDED),
    Index("HMSB_CHANGES_BY_COMMIT", "WS_COMMIT_ID", info=ADDED),
)

TXN_TO_WRITE_ID = table(
    "TXN_TO_WRITE_ID",
    Column("T2W_TXNID", ID, nullable=False),
    Column("T2W_DATABASE", _DATABASE, nullable=False),
    Column("T2W_TABLE", _TABLE, nullable=False),
    Column("T2W_WRITEID", ID, nullable=False),
    Index("TBL_TO_TXN_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", unique=True),
    Index("TBL_TO_WRITE_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", unique=True),
    Index("HMSB_WRITE_IDS_OF_TXN", "T2W_TXNID", info=ADDED),
)

NEXT_WRITE_ID = table(
    "NEXT_WRITE_ID",
    Column("NWI_DATABASE", _DATABASE, nullable=False),
    Column("NWI_TABLE", _TABLE, nullable=False),
    Column("NWI_NEXT", ID, nullable=False),
    Index("NEXT_WRITE_ID_IDX", "NWI_DATABASE", "NWI_TABLE", unique=True),
)

MIN_HISTORY_LEVEL = table(
    "MIN_HISTORY_LEVEL",
    key("MHL_TXNID"),
    Column("MHL_MIN_OPEN_TXNID", ID, nullable=False),
    Index("MIN_HISTORY_LEVEL_IDX", "MHL_MIN_OPEN_TXNID"),
)

MIN_HISTORY_WRITE_ID = table(
    "MIN_HISTORY_WRITE_ID",
    Column("MH_TXNID", ROW_ID, ForeignKey(TXNS.c.TXN_ID), nullable=False),
    Column("MH_DATABASE", _DATABASE, nullable=False),
    Column("MH_TABLE", _TABLE, nullable=False),
    Column("MH_WRITEID", ID, nullable=False),
    Index("HMSB_HISTORY_OF_TXN", "MH_TXNID", info=ADDED),
)

REPL_TXN_MAP = table(
    "REPL_TXN_MAP",
    Column("RTM_REPL_POLICY", String(256), primary_key=True),
    key("RTM_SRC_TXN_ID"),
    Column("RTM_TARGET_TXN_ID", ID, nullable=False),
    Index("HMSB_REPLAYED_BY_TARGET", "RTM_TARGET_TXN_ID", info=ADDED),
)

MATERIALIZATION_REBUILD_LOCKS = table(
    "MATERIALIZATION_REBUILD_LOCKS",
    key("MRL_TXN_ID"),
    Column("MRL_DB_NAME", _DATABASE, nullable=False),
    Column("MRL_TBL_NAME", _TABLE, nullable=False),
    Column("MRL_LAST_HEARTBEAT", ID, nullable=False),
)

COMPACTION_METRICS_CACHE = table(
    "COMPACTION_METRICS_CACHE",
    Column("CMC_DATABASE", _DATABASE, nullable=False),
    Column("CMC_TABLE", _TABLE, nullable=False),
    Column("CMC_PARTITION", _PARTITION),
    Column("CMC_METRIC_TYPE", _NAME, nullable=False),
    Column("CMC_METRIC_VALUE", Integer, nullable=False),
    Column("CMC_VERSION", Integer, nullable=False),
)

SEQUENCE_TABLE = table(
    "SEQUENCE_TABLE",
    Column("SEQUENCE_NAME", String(255), primary_key=True),
    Column("NEXT_VAL", ID, nullable=False),
)

VERSION = table(
    "VERSION",
    key("VER_ID"),
    Column("SCHEMA_VERSION", String(127), nullable=False),
    Column("VERSION_COMMENT", String(255), nullable=False),
)

HMSB_LATE_WRITER = table(
    "HMSB_LATE_WRITER",
    Column("LW_TXN_ID", ID, primary_key=True, autoincrement=False),
    Column("LW_DATABASE", _DATABASE, primary_key=True),
    Column("LW_TABLE", _TABLE, primary_key=True),
    Column("LW_WRITE_ID", ID, primary_key=True, autoincrement=False),
    Column("LW_PLACE", UTF8_TEXT, nullable=False),
    Column("LW_NOTED_MS", ID, nullable=False),
)
"""Who had a write id of a table that was dropped or moved, or compacted it up to there, and may
still bring files to its place; for as long as an abort is remembered."""

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
