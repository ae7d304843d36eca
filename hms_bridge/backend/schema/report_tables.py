"""What other services write down: scheduled queries, how they and replications went, what queries
met."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String

from hms_bridge.backend.schema.metadata import ID, key, table

_LONG_NAME = String(256)

SCHEDULED_QUERIES = table(
    "SCHEDULED_QUERIES",
    key("SCHEDULED_QUERY_ID"),
    Column("CLUSTER_NAMESPACE", _LONG_NAME),
    Column("ENABLED", Boolean, nullable=False),
    Column("NEXT_EXECUTION", Integer),
    Column("QUERY", String(4000)),
    Column("SCHEDULE", _LONG_NAME),
    Column("SCHEDULE_NAME", _LONG_NAME),
    Column("USER", _LONG_NAME),
    Column("ACTIVE_EXECUTION_ID", ID),
)
SCHEDULED_EXECUTIONS = table(
    "SCHEDULED_EXECUTIONS",
    key("SCHEDULED_EXECUTION_ID"),
    Column("END_TIME", Integer),
    Column("ERROR_MESSAGE", String(2000)),
    Column("EXECUTOR_QUERY_ID", _LONG_NAME),
    Column("LAST_UPDATE_TIME", Integer),
    Column(
        "SCHEDULED_QUERY_ID",
        ID,
        ForeignKey(SCHEDULED_QUERIES.c.SCHEDULED_QUERY_ID, ondelete="CASCADE"),
    ),
    Column("START_TIME", Integer),
    Column("STATE", _LONG_NAME),
    Index("IDX_SCHEDULED_EXECUTIONS_LAST_UPDATE_TIME", "LAST_UPDATE_TIME"),
    Index("IDX_SCHEDULED_EXECUTIONS_SCHEDULED_QUERY_ID", "SCHEDULED_QUERY_ID"),
)
REPLICATION_METRICS = table(
    "REPLICATION_METRICS",
    key("RM_SCHEDULED_EXECUTION_ID"),
    Column("RM_POLICY", _LONG_NAME, nullable=False),
    Column("RM_DUMP_EXECUTION_ID", ID, nullable=False),
    Column("RM_METADATA", String(4000)),
    Column("RM_PROGRESS", String(10000)),
    Column("RM_START_TIME", Integer, nullable=False),
    Column("MESSAGE_FORMAT", String(16), server_default="json-0.2"),
    Index("POLICY_IDX", "RM_POLICY"),
    Index("DUMP_IDX", "RM_DUMP_EXECUTION_ID"),
)
RUNTIME_STATS = table(
    "RUNTIME_STATS",
    key("RS_ID"),
    Column("CREATE_TIME", ID, nullable=False),
    Column("WEIGHT", ID, nullable=False),
    Column("PAYLOAD", LargeBinary),
    Index("IDX_RUNTIME_STATS_CREATE_TIME", "CREATE_TIME"),
)
