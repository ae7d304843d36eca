"""Mutations of what anybody who reaches a door may do; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_DELETIONS = "tests/service/test_allowed_deletions.py::"
_FUNCTIONS = "tests/repl/test_functions.py::"
_HOSTILE = "tests/service/test_hostile_clients.py::"
_PROTECTIONS = "tests/cli/test_protections.py::"
_RULE = "hms_bridge/service/deletion_rule.py"

OF_DOORS = (
    Mutation(
        name="a place outside of the roots is moved",
        file=_RULE,
        within="DeletionRule.require_movable",
        old="place not in roots or not is_inside(real[place], real[roots[place]])",
        new="place in roots and (not is_inside(real[place], real[roots[place]]))",
        test=f"{_DELETIONS}test_nothing_is_moved_from_or_to_a_place_outside_of_the_roots",
    ),
    Mutation(
        name="a link out of the warehouse is followed by a move",
        file=_RULE,
        within="DeletionRule.require_movable",
        old="is_inside(real[place], real[roots[place]])",
        new="roots[place]",
        test=f"{_DELETIONS}test_nothing_is_moved_from_or_to_a_place_outside_of_the_roots",
    ),
    Mutation(
        name="a drop archives any file that a client calls a function's",
        file="hms_bridge/service/file_work.py",
        within="FileWork.archive_copy",
        old="self._files.known_root",
        new="parent",
        test=f"{_FUNCTIONS}test_a_drop_archives_no_file_that_only_a_client_names",
    ),
    Mutation(
        name="a drop archives what a link in the warehouse leads to",
        file="hms_bridge/service/file_work.py",
        within="FileWork.archive_copy",
        old="root",
        new="parent(place.uri)",
        test=f"{_FUNCTIONS}test_a_drop_archives_no_file_that_only_a_client_names",
    ),
    Mutation(
        name="a dump reads a directory as a file",
        file="hms_bridge/repl/dump/functions.py",
        within="FunctionFiles._checksum",
        old="status.kind is FileKind.FILE",
        new="status.kind is not FileKind.OTHER",
        test=f"{_FUNCTIONS}test_what_is_no_plain_file_stops_a_dump_by_name_and_no_drop",
    ),
    Mutation(
        name="a drop archives a directory as a function's file",
        file="hms_bridge/service/file_work.py",
        within="FileWork.archive_copy",
        old="status is None or status.kind is not FileKind.FILE",
        new="status is None",
        test=f"{_FUNCTIONS}test_what_is_no_plain_file_stops_a_dump_by_name_and_no_drop",
    ),
    Mutation(
        name="an insertion names any file",
        file="hms_bridge/service/notifications.py",
        within="NotificationVerbs._inserted",
        old="self._own_files(given, stored.table, partition)",
        new="given",
        test=f"{_HOSTILE}test_a_write_names_files_of_its_table_only",
    ),
    Mutation(
        name="a write names files of the same path on another host",
        file="hms_bridge/service/notifications.py",
        within="NotificationVerbs._own_files",
        old=("own is not None and self._is_of(file, own) and is_within(file.path, own.path)"),
        new="own is not None and is_within(file.path, own.path)",
        test=f"{_HOSTILE}test_a_write_names_files_of_its_table_only",
    ),
    Mutation(
        name="anybody makes a query that runs as another user",
        file="hms_bridge/server/verb_classes.py",
        within="",
        old=(
            "'\\n        add_master_key add_token cancel_delegation_token "
            "cm_recycle create_role drop_role\\n        "
            "get_all_token_identifiers get_delegation_token get_master_keys "
            "get_token\\n        grant_privileges grant_revoke_privileges "
            "grant_revoke_role grant_role refresh_privileges\\n        "
            "remove_master_key remove_token renew_delegation_token "
            "repl_tbl_writeid_state\\n        revoke_privileges revoke_role "
            "scheduled_query_maintenance seed_txn_id seed_write_id\\n        "
            "setOption update_master_key\\n    '"
        ),
        new=(
            "'\\n        add_master_key add_token cancel_delegation_token "
            "cm_recycle create_role drop_role\\n        "
            "get_all_token_identifiers get_delegation_token get_master_keys "
            "get_token\\n        grant_privileges grant_revoke_privileges "
            "grant_revoke_role grant_role refresh_privileges\\n        "
            "remove_master_key remove_token renew_delegation_token "
            "repl_tbl_writeid_state\\n        revoke_privileges revoke_role "
            "seed_txn_id seed_write_id\\n        setOption update_master_key\\n  "
            "  '"
        ),
        test="tests/server/test_gate.py::test_each_method_has_one_class",
    ),
    Mutation(
        name="a file of Hive's metastore that asks for protection is passed over",
        file="hms_bridge/config/hive_site.py",
        within="read_hive_site",
        old="hive_sites(path)",
        new="(path,)",
        test=f"{_PROTECTIONS}test_files_of_hives_metastore_count",
    ),
    Mutation(
        name="a property that is called final by an attribute is replaced",
        file="hms_bridge/config/hive_site.py",
        within="_read_into",
        old="_part(element, 'final')",
        new="element.findtext('final')",
        test="tests/config/test_settings.py::test_a_property_is_read_as_hadoop_reads_it",
    ),
    Mutation(
        name="a property without a value takes one away",
        file="hms_bridge/config/hive_site.py",
        within="_read_into",
        old=("if name not in final and value is not None:\n    values[name] = value.strip()"),
        new=("if name not in final:\n    values[name] = (value or '').strip()"),
        test="tests/config/test_settings.py::test_a_property_is_read_as_hadoop_reads_it",
    ),
    Mutation(
        name="Spark's format talks in clear to a metastore that is to be protected",
        file="hms_bridge/spark/data_source.py",
        within="_open",
        old="settings",
        new="None",
        test=f"{_PROTECTIONS}test_sparks_format_goes_by_the_same_files",
    ),
    Mutation(
        name="a secret of Spark's stands in a command line",
        file="hms_bridge/spark/request.py",
        within="submit_arguments",
        old="not is_secret_name(key)",
        new="key",
        test="tests/spark/test_request.py::test_no_secret_stands_in_the_launchers_command_line",
    ),
    Mutation(
        name="a policy keeps a password in a URL of its settings",
        file="hms_bridge/repl/cycles/policy_text.py",
        within="_checked",
        old="_require_no_password(key, value)",
        new="",
        test="tests/repl/test_policy_text.py::test_what_is_wrong_is_named",
    ),
    Mutation(
        name="a location of a client stops all dumps",
        file=_RULE,
        within="DeletionRule._is_known",
        old="any((is_below(tenant.place, root) for root in self.roots.known))",
        new="bool(tenant)",
        test="tests/repl/test_dump_place.py::"
        "test_a_directory_that_only_a_client_names_stops_no_dump",
    ),
    Mutation(
        name="a table is put around the warehouse",
        file="hms_bridge/service/locations.py",
        within="WarehouseRoots.directory",
        old="is_below(root, uri)",
        new="False",
        test=f"{_DELETIONS}test_nothing_is_put_around_a_warehouse",
    ),
)
