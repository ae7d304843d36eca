"""Every method of the union of Hive's interfaces, 2 to 4, and which of them we answer.

A method that is not offered is refused with UNKNOWN_METHOD, on which clients fall back to an
older or newer form; a MetaException in its place would stop them (docs/hive/metastore.md §1, §2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from fb303 import FacebookService
from hive_metastore import ThriftHiveMetastore
from thrift.Thrift import TType

from hms_bridge.wire.additions import METHODS, THROWS, Field, MethodAddition
from hms_bridge.wire.structs import Spec, Struct, hive, set_spec

SUCCESS = "success"

OFFERED: dict[str, tuple[str, ...]] = {
    "Service": (
        "aliveSince", "flushCache", "getCounter", "getCounters", "getCpuProfile", "getMetaConf",
        "getName", "getOption", "getOptions", "getStatus", "getStatusDetails", "getVersion",
        "get_config_value", "get_metastore_db_uuid", "reinitialize", "setMetaConf", "set_ugi",
        "shutdown",
    ),
    "Catalogs and databases": (
        "alter_database", "alter_database_req", "create_database", "create_database_req",
        "drop_database", "drop_database_req", "get_all_databases", "get_catalog", "get_catalogs",
        "get_database", "get_database_req", "get_databases", "get_databases_req",
    ),
    "Tables": (
        "alter_table", "alter_table_req", "alter_table_with_cascade",
        "alter_table_with_environment_context", "create_table", "create_table_req",
        "create_table_with_constraints", "create_table_with_environment_context", "drop_table",
        "drop_table_req", "drop_table_with_environment_context", "get_all_tables", "get_fields",
        "get_fields_req", "get_fields_with_environment_context", "get_schema", "get_schema_req",
        "get_schema_with_environment_context", "get_table", "get_table_meta",
        "get_table_names_by_filter", "get_table_objects_by_name",
        "get_table_objects_by_name_req", "get_table_req", "get_tables", "get_tables_by_type",
        "translate_table_dryrun", "truncate_table", "truncate_table_req",
    ),
    "Partitions": (
        "add_partition", "add_partition_with_environment_context", "add_partitions",
        "add_partitions_req", "alter_partition", "alter_partition_with_environment_context",
        "alter_partitions", "alter_partitions_req", "alter_partitions_with_environment_context",
        "append_partition", "append_partition_by_name",
        "append_partition_by_name_with_environment_context", "append_partition_req",
        "append_partition_with_environment_context", "drop_partition", "drop_partition_by_name",
        "drop_partition_by_name_with_environment_context", "drop_partition_req",
        "drop_partition_with_environment_context", "drop_partitions_req", "exchange_partition",
        "exchange_partitions", "fetch_partition_names_req", "get_num_partitions_by_filter",
        "get_partition",
        "get_partition_by_name", "get_partition_names", "get_partition_names_ps",
        "get_partition_names_ps_req", "get_partition_names_req", "get_partition_req",
        "get_partition_with_auth", "get_partitions", "get_partitions_by_expr",
        "get_partitions_by_filter", "get_partitions_by_filter_req", "get_partitions_by_names",
        "get_partitions_by_names_req", "get_partitions_ps", "get_partitions_ps_with_auth",
        "get_partitions_ps_with_auth_req", "get_partitions_pspec", "get_partitions_req",
        "get_partitions_spec_by_expr", "get_partitions_with_auth",
        "get_partitions_with_specs",
        "partition_name_has_valid_characters", "partition_name_to_spec",
        "partition_name_to_vals", "rename_partition", "rename_partition_req",
    ),
    "Transactions and write ids": (
        "abort_txn", "abort_txns", "add_dynamic_partitions", "add_write_ids_to_min_history",
        "allocate_table_write_ids", "commit_txn", "get_latest_txnid_in_conflict",
        "get_max_allocated_table_write_id", "get_open_txns", "get_open_txns_info",
        "get_open_txns_req", "get_valid_write_ids",
        "heartbeat", "heartbeat_txn_range", "open_txns", "repl_tbl_writeid_state",
        "seed_txn_id", "seed_write_id",
    ),
    "Locks": ("check_lock", "lock", "show_locks", "unlock"),
    "Compactions": (
        "abort_Compactions", "compact", "compact2", "find_next_compact", "find_next_compact2",
        "get_latest_committed_compaction_info", "mark_cleaned", "mark_compacted", "mark_failed",
        "mark_refused", "set_hadoop_jobid", "show_compact", "update_compactor_state",
    ),
    "Notifications": (
        "add_write_notification_log", "add_write_notification_log_in_batch",
        "fire_listener_event", "get_all_write_event_info", "get_current_notificationEventId",
        "get_next_notification", "get_notification_events_count",
    ),
    "Column statistics": (
        "delete_column_statistics_req", "delete_partition_column_statistics",
        "delete_table_column_statistics", "find_columns_with_stats", "get_aggr_stats_for",
        "get_partition_column_statistics", "get_partitions_statistics_req",
        "get_table_column_statistics", "get_table_statistics_req", "set_aggr_stats_for",
        "update_partition_column_statistics", "update_partition_column_statistics_req",
        "update_table_column_statistics", "update_table_column_statistics_req",
        "update_transaction_statistics",
    ),
    "Functions": (
        "alter_function", "create_function", "drop_function", "get_all_functions",
        "get_function", "get_functions", "get_functions_req",
    ),
    "Materialized views": (
        "get_all_materialized_view_objects_for_rewriting", "get_lock_materialization_rebuild",
        "get_materialization_invalidation_info", "get_materialized_views_for_rewriting",
        "heartbeat_lock_materialization_rebuild", "update_creation_metadata",
    ),
    "Constraints": (
        "get_all_table_constraints", "get_check_constraints", "get_default_constraints",
        "get_not_null_constraints",
    ),
    "Privileges": ("get_privilege_set", "get_role_grants_for_principal"),
    "Always empty": (
        "get_active_resource_plan", "get_all_resource_plans", "get_foreign_keys",
        "get_primary_keys", "get_runtime_stats", "get_unique_constraints", "scheduled_query_poll",
    ),
}  # fmt: skip
"""The methods that the server answers, by family. The last family answers that there is nothing:
what would create such objects is refused."""

OLDER_METHODS = (
    "add_index", "alter_index", "drop_index_by_name", "get_index_by_name", "get_index_names",
    "get_indexes",
)  # fmt: skip
"""Methods of Hive 2 and 3 that Hive 4 dropped; refused."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method's structs. ``result`` is None for a oneway method, which has no answer;
    ``exceptions`` has the declared exceptions with the result's field for each."""

    name: str
    arguments: type[Struct]
    result: type[Struct] | None
    exceptions: dict[str, str]

    @property
    def is_void(self) -> bool:
        """Whether success carries no value."""
        return self.result is not None and not _has_success(self.result)


def offered_names() -> frozenset[str]:
    """The methods that are answered."""
    return frozenset(name for names in OFFERED.values() for name in names)


@cache
def all_names() -> tuple[str, ...]:
    """Every method of every generation, sorted."""
    published = {name for name in dir(ThriftHiveMetastore.Iface) if not name.startswith("_")}
    return tuple(sorted(published | {addition.name for addition in METHODS} | set(OLDER_METHODS)))


@cache
def method(name: str) -> Method:
    """The structs of a method. Raises KeyError for one that Hive 4 does not have."""
    addition = next((one for one in METHODS if one.name == name), None)
    if addition is not None:
        return _added_method(addition)
    for module in (ThriftHiveMetastore, FacebookService):
        arguments: Any = getattr(module, f"{name}_args", None)
        if arguments is not None:
            result: Any = getattr(module, f"{name}_result", None)
            return _method(
                name,
                hive.own_spec(arguments.thrift_spec or ()),
                None
                if result is None
                else hive.own_spec(result.thrift_spec or (), THROWS.get(name, ())),
            )
    raise KeyError(name)


def _added_method(addition: MethodAddition) -> Method:
    returns = () if addition.returns is None else (Field(0, SUCCESS, addition.returns),)
    throws = tuple(
        Field(number, field, exception)
        for number, (field, exception) in enumerate(addition.throws, start=1)
    )
    return _method(
        addition.name,
        hive.spec_of_fields(addition.arguments),
        hive.spec_of_fields(returns + throws),
    )


def _method(name: str, arguments: Spec, result: Spec | None) -> Method:
    return Method(
        name=name,
        arguments=_class(f"{name}_args", arguments),
        result=None if result is None else _class(f"{name}_result", result),
        exceptions={
            entry[3][0].__name__: entry[2]
            for entry in result or ()
            if entry and entry[0] > 0 and entry[1] == TType.STRUCT
        },
    )


def _class(name: str, spec: Spec) -> type[Struct]:
    cls: type[Struct] = type(name, (Struct,), {})
    set_spec(cls, spec)
    return cls


def _has_success(result: type[Struct]) -> bool:
    return any(entry and entry[0] == 0 for entry in result.thrift_spec)
