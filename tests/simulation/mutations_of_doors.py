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
        old="            if place not in roots or not is_inside(",
        new="            if place in roots and not is_inside(",
        test=f"{_DELETIONS}test_nothing_is_moved_from_or_to_a_place_outside_of_the_roots",
    ),
    Mutation(
        name="a link out of the warehouse is followed by a move",
        file=_RULE,
        old="not is_inside(real[place], real[roots[place]]):\n",
        new="not roots[place]:\n",
        test=f"{_DELETIONS}test_nothing_is_moved_from_or_to_a_place_outside_of_the_roots",
    ),
    Mutation(
        name="a drop archives any file that a client calls a function's",
        file="hms_bridge/service/file_work.py",
        old="            root = self._files.known_root(location)\n",
        new="            root = parent(location)\n",
        test=f"{_FUNCTIONS}test_a_drop_archives_no_file_that_only_a_client_names",
    ),
    Mutation(
        name="a drop archives what a link in the warehouse leads to",
        file="hms_bridge/service/file_work.py",
        old="root=root, context=context\n",
        new="root=parent(place.uri), context=context\n",
        test=f"{_FUNCTIONS}test_a_drop_archives_no_file_that_only_a_client_names",
    ),
    Mutation(
        name="a dump reads a directory as a file",
        file="hms_bridge/repl/dump/functions.py",
        old="            if status is not None and status.kind is FileKind.FILE:\n",
        new="            if status is not None and status.kind is not FileKind.OTHER:\n",
        test=f"{_FUNCTIONS}test_what_is_no_plain_file_stops_a_dump_by_name_and_no_drop",
    ),
    Mutation(
        name="a drop archives a directory as a function's file",
        file="hms_bridge/service/file_work.py",
        old="            if status is None or status.kind is not FileKind.FILE:\n",
        new="            if status is None:\n",
        test=f"{_FUNCTIONS}test_what_is_no_plain_file_stops_a_dump_by_name_and_no_drop",
    ),
    Mutation(
        name="an insertion names any file",
        file="hms_bridge/service/notifications.py",
        old="        own = self._own_files(given, stored.table, partition)\n",
        new="        own = given\n",
        test=f"{_HOSTILE}test_a_write_names_files_of_its_table_only",
    ),
    Mutation(
        name="a write names files of the same path on another host",
        file="hms_bridge/service/notifications.py",
        old="            if own is not None and self._is_of(file, own) and is_within(",
        new="            if own is not None and is_within(",
        test=f"{_HOSTILE}test_a_write_names_files_of_its_table_only",
    ),
    Mutation(
        name="anybody makes a query that runs as another user",
        file="hms_bridge/server/verb_classes.py",
        old="revoke_role scheduled_query_maintenance seed_txn_id",
        new="revoke_role seed_txn_id",
        test="tests/server/test_gate.py::test_each_method_has_one_class",
    ),
    Mutation(
        name="a file of Hive's metastore that asks for protection is passed over",
        file="hms_bridge/config/hive_site.py",
        old="    for site in hive_sites(path):\n",
        new="    for site in (path,):\n",
        test=f"{_PROTECTIONS}test_files_of_hives_metastore_count",
    ),
    Mutation(
        name="a property that is called final by an attribute is replaced",
        file="hms_bridge/config/hive_site.py",
        old='        if (_part(element, "final") or',
        new='        if (element.findtext("final") or',
        test="tests/config/test_settings.py::test_a_property_is_read_as_hadoop_reads_it",
    ),
    Mutation(
        name="a property without a value takes one away",
        file="hms_bridge/config/hive_site.py",
        old="in final and value is not None:\n            values[name] = value.strip()\n",
        new='in final:\n            values[name] = (value or "").strip()\n',
        test="tests/config/test_settings.py::test_a_property_is_read_as_hadoop_reads_it",
    ),
    Mutation(
        name="Spark's format talks in clear to a metastore that is to be protected",
        file="hms_bridge/spark/data_source.py",
        old="open_metastore(metastore_url, settings, is_created=False)",
        new="open_metastore(metastore_url, None, is_created=False)",
        test=f"{_PROTECTIONS}test_sparks_format_goes_by_the_same_files",
    ),
    Mutation(
        name="a secret of Spark's stands in a command line",
        file="hms_bridge/spark/request.py",
        old="        if not is_secret_name(key)\n",
        new="        if key\n",
        test="tests/spark/test_request.py::test_no_secret_stands_in_the_launchers_command_line",
    ),
    Mutation(
        name="a policy keeps a password in a URL of its settings",
        file="hms_bridge/repl/cycles/policy_text.py",
        old="        _require_no_password(key, value)\n",
        new="",
        test="tests/repl/test_policy_text.py::test_what_is_wrong_is_named",
    ),
    Mutation(
        name="a location of a client stops all dumps",
        file=_RULE,
        old="        return any(is_below(tenant.place, root) for root in self.roots.known)\n",
        new="        return bool(tenant)\n",
        test="tests/repl/test_dump_place.py::"
        "test_a_directory_that_only_a_client_names_stops_no_dump",
    ),
    Mutation(
        name="a table is put around the warehouse",
        file="hms_bridge/service/locations.py",
        old="            if is_below(root, uri):\n",
        new="            if False:\n",
        test=f"{_DELETIONS}test_nothing_is_put_around_a_warehouse",
    ),
)
