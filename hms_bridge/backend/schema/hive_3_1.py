"""Hive's tables as 3.1.0 has them: ours of 4.0.0, but for what is here. Found as
:mod:`versions` was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    Column,
    Dialect,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from hms_bridge.backend.schema.catalog_tables import Flag
from hms_bridge.backend.schema.metadata import ID, OPTIONS, key

NEXT_TXN_ID = "NEXT_TXN_ID"
"""The counter of transactions' ids: TXN_LOCK_TBL of 4.0, under another name."""

_RENAMED = {"TXN_LOCK_TBL": NEXT_TXN_ID, "TXN_LOCK": "NTXN_NEXT"}

_NEW_TABLES = frozenset(
    {
        "COMPACTION_METRICS_CACHE",
        "DATACONNECTORS",
        "DATACONNECTOR_PARAMS",
        "DC_PRIVS",
        "MIN_HISTORY_WRITE_ID",
        "PACKAGES",
        "REPLICATION_METRICS",
        "SCHEDULED_EXECUTIONS",
        "SCHEDULED_QUERIES",
        "STORED_PROCS",
        "TXN_WRITE_NOTIFICATION_LOG",
    }
)

_NEW_COMPACTION_COLUMNS = (
    "ENQUEUE_TIME", "ERROR_MESSAGE", "NEXT_TXN_ID", "TXN_ID", "COMMIT_TIME", "INITIATOR_ID",
    "INITIATOR_VERSION", "WORKER_VERSION", "POOL_NAME", "NUMBER_OF_BUCKETS", "ORDER_BY",
)  # fmt: skip

_NEW_COLUMNS: dict[str, frozenset[str]] = {
    "COMPACTION_QUEUE": frozenset(
        {"CQ_CLEANER_START", "CQ_RETRY_RETENTION"}
        | {f"CQ_{name}" for name in _NEW_COMPACTION_COLUMNS}
    ),
    "COMPLETED_COMPACTIONS": frozenset(f"CC_{name}" for name in _NEW_COMPACTION_COLUMNS),
    "CTLGS": frozenset({"CREATE_TIME"}),
    "DBS": frozenset(
        {"CREATE_TIME", "DB_MANAGED_LOCATION_URI", "TYPE", "DATACONNECTOR_NAME", "REMOTE_DBNAME"}
    ),
    "METASTORE_DB_PROPERTIES": frozenset({"PROPERTYCONTENT"}),
    "MV_TABLES_USED": frozenset({"INSERTED_COUNT", "UPDATED_COUNT", "DELETED_COUNT"}),
    "PARTITIONS": frozenset({"WRITE_ID"}),
    "PART_COL_STATS": frozenset({"ENGINE", "HISTOGRAM"}),
    "TAB_COL_STATS": frozenset({"ENGINE", "HISTOGRAM"}),
    "TBLS": frozenset({"WRITE_ID"}),
    "WM_RESOURCEPLAN": frozenset({"NS"}),
}

_SHORT_NAME = String(128)

_SHORTER: dict[tuple[str, str], Any] = {
    ("COMPACTION_QUEUE", "CQ_TABLE"): _SHORT_NAME,
    ("COMPLETED_COMPACTIONS", "CC_TABLE"): _SHORT_NAME,
    ("HIVE_LOCKS", "HL_TABLE"): _SHORT_NAME,
    ("TXN_COMPONENTS", "TC_TABLE"): _SHORT_NAME,
    ("WRITE_SET", "WS_TABLE"): _SHORT_NAME,
    ("PARTITION_PARAMS", "PARAM_VALUE"): String(4000),
}

_KEYS: dict[str, tuple[str, ...]] = {
    "KEY_CONSTRAINTS": ("CONSTRAINT_NAME", "POSITION"),
    "MV_TABLES_USED": (),
}

_INDEXES: dict[tuple[str, str], tuple[str, ...]] = {
    ("PARTITIONS", "UNIQUEPARTITION"): ("PART_NAME", "TBL_ID"),
    ("PART_COL_STATS", "PCS_STATS_IDX"): (
        "CAT_NAME", "DB_NAME", "TABLE_NAME", "COLUMN_NAME", "PARTITION_NAME",
    ),
    ("TAB_COL_STATS", "TAB_COL_STATS_IDX"): ("CAT_NAME", "DB_NAME", "TABLE_NAME", "COLUMN_NAME"),
    ("WM_RESOURCEPLAN", "UNIQUE_WM_RESOURCEPLAN"): ("NAME",),
    ("COMPLETED_COMPACTIONS", "COMPLETED_COMPACTIONS_RES"): (),
    ("NOTIFICATION_LOG", "NOTIFICATION_LOG_EVENT_ID"): (),
}  # fmt: skip
"""Columns of indexes that 4.0 has otherwise; none where it is new there."""

_NEW_ON_POSTGRESQL = {("SDS", "SDS_N50")}

_LOWER = frozenset(
    {
        "AUX_TABLE",
        "COMPACTION_QUEUE",
        "COMPLETED_COMPACTIONS",
        "COMPLETED_TXN_COMPONENTS",
        "HIVE_LOCKS",
        "MATERIALIZATION_REBUILD_LOCKS",
        "MIN_HISTORY_LEVEL",
        "NEXT_COMPACTION_QUEUE_ID",
        "NEXT_LOCK_ID",
        NEXT_TXN_ID,
        "NEXT_WRITE_ID",
        "REPL_TXN_MAP",
        "RUNTIME_STATS",
        "TXNS",
        "TXN_COMPONENTS",
        "TXN_TO_WRITE_ID",
        "WRITE_SET",
    }
)
"""Tables whose names PostgreSQL has in lower case (HIVE-22546), with those of their columns."""


class Tables31:
    """The tables for one kind of database, by their names of 4.0 (NEXT_TXN_ID by its own)."""

    def __init__(self, tables: Iterable[Table], dialect: Dialect) -> None:
        """``tables``: Hive's of 4.0.0, those that others refer to first."""
        self.metadata = MetaData()
        self._is_lower = dialect.name == "postgresql"
        self._is_mysql = dialect.name in ("mysql", "mariadb")
        for table in tables:
            if table.name not in _NEW_TABLES:
                self._add(table)
        self._add_given_up()

    def table(self, name: str) -> Table:
        """Raises KeyError for one that 3.1.0 has not."""
        return self.metadata.tables[self._spelled(name, name)]

    def has(self, table: Table) -> bool:
        """Whether a table of 4.0.0 is there."""
        return table.name not in _NEW_TABLES

    def column(self, column: Column[Any]) -> Column[Any]:
        """What a column of 4.0.0 is here. Raises KeyError as :meth:`table`."""
        return self.table(column.table.name).columns[self._spelled(column.table.name, column.name)]

    def _spelled(self, table: str, name: str) -> str:
        return name.lower() if self._is_lower and table in _LOWER else name

    def _add(self, table: Table) -> None:
        name = _RENAMED.get(table.name, table.name)
        gone = _NEW_COLUMNS.get(table.name, frozenset())
        columns = [
            self._column(column, name) for column in table.columns if column.name not in gone
        ]
        indexes = [
            index
            for part in (*table.indexes, *table.constraints)
            if isinstance(part, Index | UniqueConstraint) and not part.info.get("is_added")
            and (index := self._index(part, name)) is not None
        ]  # fmt: skip
        Table(self._spelled(name, name), self.metadata, *columns, *indexes, **OPTIONS)

    def _column(self, column: Column[Any], table: str) -> Column[Any]:
        name = _RENAMED.get(column.name, column.name)
        references = [
            ForeignKey(
                f"{self._spelled(target.table.name, target.table.name)}."
                f"{self._spelled(target.table.name, target.name)}"
            )
            for target in (reference.column for reference in column.foreign_keys)
        ]
        default = column.server_default
        keys = _KEYS.get(table)
        # Hive's script for PostgreSQL overlooks this one.
        is_loose = self._is_lower and (table, name) == ("DBS", "CTLG_NAME")
        kind = _SHORTER.get((table, name), column.type)
        if self._is_mysql and (table, name) == ("COLUMNS_V2", "COMMENT"):
            kind = String(256)
        return Column(
            self._spelled(table, name),
            kind,
            *references,
            primary_key=column.primary_key if keys is None else name in keys,
            nullable=is_loose or column.nullable,
            server_default=getattr(default, "arg", None),
            autoincrement=False,
        )

    def _index(self, part: Index | UniqueConstraint, table: str) -> Index | UniqueConstraint | None:
        """None for one that is new in 4.0."""
        present = tuple(column.name for column in part.columns)
        if self._is_mysql:
            present = part.info.get("mysql_columns", present)
        columns = _INDEXES.get((table, str(part.name)), present)
        if not columns or (self._is_lower and (table, part.name) in _NEW_ON_POSTGRESQL):
            return None
        name = self._spelled(table, str(part.name)) if part.name else None
        spelled = [self._spelled(table, column) for column in columns]
        if isinstance(part, Index):
            return Index(name, *spelled, unique=part.unique)
        return UniqueConstraint(*spelled, name=name)

    def _add_given_up(self) -> None:
        """Hive's indexes, which ended with Hive 3.0, and an index that another one serves since."""
        Index("PARTITIONS_N49", self.table("PARTITIONS").c.TBL_ID)
        Table(
            "IDXS",
            self.metadata,
            key("INDEX_ID"),
            Column("CREATE_TIME", ID, nullable=False),
            Column("DEFERRED_REBUILD", Flag, nullable=False),
            Column("INDEX_HANDLER_CLASS", String(4000)),
            Column("INDEX_NAME", String(128)),
            Column("INDEX_TBL_ID", ID, ForeignKey("TBLS.TBL_ID")),
            Column("LAST_ACCESS_TIME", ID, nullable=False),
            Column("ORIG_TBL_ID", ID, ForeignKey("TBLS.TBL_ID")),
            Column("SD_ID", ID, ForeignKey("SDS.SD_ID")),
            UniqueConstraint("INDEX_NAME", "ORIG_TBL_ID", name="UNIQUEINDEX"),
            Index("IDXS_N49", "ORIG_TBL_ID"),
            Index("IDXS_N50", "INDEX_TBL_ID"),
            Index("IDXS_N51", "SD_ID"),
            **OPTIONS,
        )
        Table(
            "INDEX_PARAMS",
            self.metadata,
            Column("INDEX_ID", ID, ForeignKey("IDXS.INDEX_ID"), primary_key=True),
            Column("PARAM_KEY", String(256), primary_key=True),
            Column("PARAM_VALUE", String(4000)),
            Index("INDEX_PARAMS_N49", "INDEX_ID"),
            **OPTIONS,
        )
