"""Thrift methods that change something: what hooks are asked and hear, or why nothing."""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.model.event import EventType as E
from hms_bridge.model.hook import PointType as P

READING = (
    "get", "list_", "show_", "find_columns_", "find_package", "fetch_", "partition_name_",
    "isPartition", "validate_", "translate_", "aliveSince",
)  # fmt: skip
"""How names of methods begin that change nothing."""

_CONSTRAINTS = (
    E.ADD_PRIMARY_KEY, E.ADD_FOREIGN_KEY, E.ADD_UNIQUE, E.ADD_NOT_NULL, E.ADD_DEFAULT, E.ADD_CHECK,
)  # fmt: skip
_STATISTICS = (E.UPDATE_TABLE_STATISTICS, E.UPDATE_PARTITION_STATISTICS)
_NO_STATISTICS = (E.DELETE_TABLE_STATISTICS, E.DELETE_PARTITION_STATISTICS)
_ALTERED = (E.ALTER_PARTITION, E.ALTER_PARTITIONS)

_BY_KINDS: Mapping[tuple[E | P, ...], tuple[str, ...]] = {
    (E.CREATE_DATABASE,): ("create_database", "create_database_req"),
    (E.ALTER_DATABASE, P.END_LOAD): ("alter_database", "alter_database_req"),
    (E.DROP_DATABASE, E.DROP_TABLE, E.DROP_FUNCTION): ("drop_database", "drop_database_req"),
    (E.CREATE_TABLE, P.CHANGE_PRIVILEGES, *_CONSTRAINTS): (
        "create_table", "create_table_req", "create_table_with_constraints",
        "create_table_with_environment_context",
    ),
    (E.ALTER_TABLE,): (
        "alter_table", "alter_table_req", "alter_table_with_cascade",
        "alter_table_with_environment_context",
    ),
    (E.DROP_TABLE,): ("drop_table", "drop_table_req", "drop_table_with_environment_context"),
    (E.ALTER_TABLE, *_ALTERED): ("truncate_table", "truncate_table_req"),
    (E.ADD_PARTITION,): (
        "add_partition", "add_partition_with_environment_context", "add_partitions",
        "add_partitions_pspec", "add_partitions_req", "append_partition",
        "append_partition_by_name", "append_partition_by_name_with_environment_context",
        "append_partition_req", "append_partition_with_environment_context",
    ),
    _ALTERED: (
        "alter_partition", "alter_partition_with_environment_context", "alter_partitions",
        "alter_partitions_req", "alter_partitions_with_environment_context", "rename_partition",
        "rename_partition_req",
    ),
    (E.DROP_PARTITION,): (
        "drop_partition", "drop_partition_by_name",
        "drop_partition_by_name_with_environment_context", "drop_partition_req",
        "drop_partition_with_environment_context", "drop_partitions_req",
    ),
    (E.ADD_PARTITION, E.DROP_PARTITION): ("exchange_partition", "exchange_partitions"),
    (E.CREATE_FUNCTION,): ("create_function",),
    (E.DROP_FUNCTION,): ("drop_function",),
    (E.ADD_PRIMARY_KEY,): ("add_primary_key",),
    (E.ADD_FOREIGN_KEY,): ("add_foreign_key",),
    (E.ADD_UNIQUE,): ("add_unique_constraint",),
    (E.ADD_NOT_NULL,): ("add_not_null_constraint",),
    (E.ADD_DEFAULT,): ("add_default_constraint",),
    (E.ADD_CHECK,): ("add_check_constraint",),
    (E.DROP_CONSTRAINT,): ("drop_constraint",),
    _STATISTICS: (
        "set_aggr_stats_for", "update_table_column_statistics",
        "update_partition_column_statistics", "update_table_column_statistics_req",
        "update_partition_column_statistics_req",
    ),
    _NO_STATISTICS: (
        "delete_table_column_statistics", "delete_partition_column_statistics",
        "delete_column_statistics_req",
    ),
    (E.INSERT, E.RELOAD): ("fire_listener_event",),
    (E.OPEN_TXN,): ("open_txns",),
    (E.COMMIT_TXN, E.ABORT_TXN, E.COMMIT_COMPACTION): ("commit_txn",),
    (E.ABORT_TXN,): ("abort_txn", "abort_txns"),
    (E.ALLOC_WRITE_ID,): ("allocate_table_write_ids",),
    (E.OPEN_TXN, E.ABORT_TXN): ("repl_tbl_writeid_state",),
    (P.ACID_WRITE,): ("add_write_notification_log", "add_write_notification_log_in_batch"),
    (E.REQUEST_COMPACTION,): ("compact", "compact2"),
    (P.START_COMPACTION,): ("find_next_compact", "find_next_compact2"),
    (E.FAIL_COMPACTION,): ("mark_failed",),
    (P.STOP_COMPACTION,): ("mark_refused", "abort_Compactions"),
    (P.CLEAN_COMPACTION,): ("mark_cleaned",),
    (P.ARCHIVE_FILE,): ("cm_recycle",),
    (P.CHANGE_CATALOG, E.CREATE_DATABASE): ("create_catalog",),
    (P.CHANGE_CATALOG, E.DROP_DATABASE): ("drop_catalog",),
    (P.CHANGE_CATALOG,): ("alter_catalog",),
    (P.CHANGE_CONNECTOR,): (
        "create_dataconnector", "create_dataconnector_req", "alter_dataconnector",
        "alter_dataconnector_req", "drop_dataconnector_req",
    ),
    (P.CHANGE_FUNCTION,): ("alter_function",),
    (P.CHANGE_VIEW,): ("update_creation_metadata",),
    (P.CHANGE_MARK,): ("markPartitionForEvent",),
    (P.CHANGE_ROLE,): ("create_role", "drop_role", "grant_role", "revoke_role",
                       "grant_revoke_role"),
    (P.CHANGE_PRIVILEGES,): (
        "grant_privileges", "revoke_privileges", "grant_revoke_privileges", "refresh_privileges",
    ),
    (P.CHANGE_RESOURCE_PLAN,): (
        "create_resource_plan", "alter_resource_plan", "drop_resource_plan", "create_wm_pool",
        "alter_wm_pool", "drop_wm_pool", "create_wm_trigger", "alter_wm_trigger",
        "drop_wm_trigger", "create_or_drop_wm_trigger_to_pool_mapping",
        "create_or_update_wm_mapping", "drop_wm_mapping",
    ),
    (P.CHANGE_SCHEDULED_QUERY,): ("scheduled_query_maintenance",),
    (P.CHANGE_PROCEDURE,): (
        "create_stored_procedure", "drop_stored_procedure", "add_package", "drop_package",
    ),
    (P.CHANGE_TOKEN,): (
        "add_token", "remove_token", "add_master_key", "update_master_key", "remove_master_key",
    ),
}  # fmt: skip
WRITES: Mapping[str, tuple[E | P, ...]] = {
    name: kinds for kinds, names in _BY_KINDS.items() for name in names
}
"""By method what it may be asked and heard as."""

_LOCKS = "locks are no part of the catalog, and end by themselves"
_ALIVE = "a sign of life"
_QUEUE = "how far a compaction is: its start and its end are heard"
_RUNS = "an execution of a scheduled query, which stays as it is"
_COUNTERS = "counters, which a replica or a repair sets before anything is written"
_SERVER = "of the server or of one connection, and not stored"
_REPORTS = "figures of other services, which say nothing of the catalog"

REASONS: Mapping[str, str] = {
    "lock": _LOCKS,
    "unlock": _LOCKS,
    "check_lock": _LOCKS,
    "get_lock_materialization_rebuild": _LOCKS,
    "heartbeat_lock_materialization_rebuild": _LOCKS,
    "heartbeat": _ALIVE,
    "heartbeat_txn_range": _ALIVE,
    "add_dynamic_partitions": "which partitions a transaction wrote: its commit is heard",
    "add_write_ids_to_min_history": "which write ids a reader needs, until it ends",
    "update_transaction_statistics": "counts for the compaction's initiator",
    "mark_compacted": _QUEUE,
    "set_hadoop_jobid": _QUEUE,
    "update_compactor_state": _QUEUE,
    "update_compaction_metrics_data": _QUEUE,
    "remove_compaction_metrics_data": _QUEUE,
    "submit_for_cleanup": "what a failed CREATE TABLE left is put into the cleaner's queue",
    "seed_txn_id": _COUNTERS,
    "seed_write_id": _COUNTERS,
    "scheduled_query_poll": _RUNS,
    "scheduled_query_progress": _RUNS,
    "add_replication_metrics": _REPORTS,
    "add_runtime_stats": _REPORTS,
    "flushCache": _SERVER,
    "reinitialize": _SERVER,
    "setMetaConf": _SERVER,
    "set_ugi": _SERVER,
    "shutdown": _SERVER,
}
