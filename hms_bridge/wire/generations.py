"""Which releases of Hive have a method in their interface: those that a client may be of.

As their own jars say (``ThriftHiveMetastore.Iface``), which integration/cases/test_generations.py
asks again.
"""

from __future__ import annotations

from collections.abc import Mapping

ASKED = ("2.3.10", "3.1.3", "4.0.1", "4.2.0")
"""Those whose jars were asked."""

RELEASES = tuple(version.rpartition(".")[0] for version in ASKED)


def _names(of_release: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {release: frozenset(names.split()) for release, names in of_release.items()}


NEW = _names(
    {
        "3.1": """
            add_check_constraint add_default_constraint add_not_null_constraint add_runtime_stats
            add_schema_version add_serde add_unique_constraint allocate_table_write_ids
            alter_catalog alter_ischema alter_resource_plan alter_wm_pool alter_wm_trigger
            cm_recycle create_catalog create_ischema create_or_drop_wm_trigger_to_pool_mapping
            create_or_update_wm_mapping create_resource_plan create_wm_pool create_wm_trigger
            drop_catalog drop_ischema drop_resource_plan drop_schema_version drop_wm_mapping
            drop_wm_pool drop_wm_trigger get_active_resource_plan get_all_resource_plans
            get_catalog get_catalogs get_check_constraints get_default_constraints get_ischema
            get_lock_materialization_rebuild get_materialization_invalidation_info
            get_materialized_views_for_rewriting get_metastore_db_uuid get_not_null_constraints
            get_notification_events_count get_resource_plan get_runtime_stats
            get_schema_all_versions get_schema_latest_version get_schema_version
            get_schemas_by_cols get_serde get_triggers_for_resourceplan get_unique_constraints
            get_valid_write_ids heartbeat_lock_materialization_rebuild map_schema_version_to_serde
            refresh_privileges repl_tbl_writeid_state set_schema_version_state truncate_table
            update_creation_metadata validate_resource_plan
        """,
        "4.0": """
            abort_Compactions add_package add_replication_metrics add_write_ids_to_min_history
            add_write_notification_log add_write_notification_log_in_batch alter_database_req
            alter_dataconnector_req alter_partitions_req alter_table_req append_partition_req
            create_database_req create_dataconnector_req create_stored_procedure create_table_req
            drop_database_req drop_dataconnector_req drop_package drop_partition_req
            drop_stored_procedure drop_table_req fetch_partition_names_req find_columns_with_stats
            find_next_compact find_next_compact2 find_package
            get_all_materialized_view_objects_for_rewriting get_all_packages
            get_all_stored_procedures get_all_table_constraints get_all_write_event_info
            get_database_req get_dataconnector_req get_dataconnectors get_fields_req
            get_latest_committed_compaction_info get_latest_txnid_in_conflict
            get_max_allocated_table_write_id get_open_txns_req get_partition_names_ps_req
            get_partition_names_req get_partition_req get_partitions_by_filter_req
            get_partitions_by_names_req get_partitions_ps_with_auth_req get_partitions_req
            get_partitions_spec_by_expr get_partitions_with_specs get_properties
            get_replication_metrics get_scheduled_query get_schema_req get_stored_procedure
            get_tables_ext mark_cleaned mark_compacted mark_failed mark_refused
            remove_compaction_metrics_data rename_partition_req scheduled_query_maintenance
            scheduled_query_poll scheduled_query_progress seed_txn_id seed_write_id
            set_hadoop_jobid set_properties submit_for_cleanup translate_table_dryrun
            truncate_table_req update_compaction_metrics_data update_compactor_state
            update_partition_column_statistics_req update_table_column_statistics_req
            update_transaction_statistics
        """,
        "4.2": """
            delete_column_statistics_req get_databases_req get_functions_req
            get_replayed_txns_for_policy
        """,
    }
)
"""What a release has, and none before it. All other methods are of the first one."""

GONE = _names(
    {
        "3.1": """
            add_index alter_index drop_index_by_name get_index_by_name get_index_names get_indexes
        """,
        "4.0": "get_table get_table_objects_by_name",
    }
)
"""What a release has no more."""

UNRELEASED = ("alter_dataconnector", "create_dataconnector", "drop_dataconnector")
"""In betas of 4.0, and in the bindings that were made of one; each got a form with a request."""


def releases_of(method: str) -> tuple[str, ...]:
    """Those that have a method of Hive's interface, ascending; of RELEASES."""
    if method in UNRELEASED:
        return ()
    new = next((release for release, names in NEW.items() if method in names), RELEASES[0])
    gone = next((release for release, names in GONE.items() if method in names), None)
    end = len(RELEASES) if gone is None else RELEASES.index(gone)
    return RELEASES[RELEASES.index(new) : end]
