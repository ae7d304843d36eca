"""Mutations of who may reach what: protections that settings ask for, the gate of the server,
secrets; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_PROTECTIONS = "tests/cli/test_protections.py::"
_SECRETS = "tests/cli/test_secrets.py::"
_GATE = "tests/server/test_gate.py::"

OF_ACCESS = (
    Mutation(
        name="a setting that asks for protection asks for nothing",
        file="hms_bridge/config/protection.py",
        within="asked_protections",
        old="value is not None and protection.is_asked_by(value)",
        new="False",
        test=_PROTECTIONS + "test_a_server_does_not_begin_where_its_port_is_to_be_protected",
    ),
    Mutation(
        name="a server begins in clear that is to be protected",
        file="hms_bridge/cli/serve.py",
        within="serve",
        old=("require_none(settings.access.asked, Protected.PORT, is_insecure=is_insecure)"),
        new="",
        test=_PROTECTIONS + "test_hadoops_own_files_count",
    ),
    Mutation(
        name="an insecure server passes over what its own file asks for",
        file="hms_bridge/config/protection.py",
        within="require_none",
        old="is_insecure and protection.is_overridden",
        new="is_insecure",
        test=_PROTECTIONS + "test_one_command_may_do_without",
    ),
    Mutation(
        name="a client talks in clear to a metastore that is to be protected",
        file="hms_bridge/connect.py",
        within="open_metastore",
        old=("require_none((settings or Settings()).access.asked, Protected.CLIENT)"),
        new="",
        test=_PROTECTIONS + "test_no_client_talks_in_clear_where_it_is_not_to",
    ),
    Mutation(
        name="a database that is to be encrypted is asked in clear",
        file="hms_bridge/config/protection.py",
        within="require_encrypted",
        old="asks_for_tls(url)",
        new="True",
        test=_PROTECTIONS + "test_a_database_is_not_asked_in_clear_where_hive_would_encrypt",
    ),
    Mutation(
        name="files of an encryption zone are archived outside of it",
        file="hms_bridge/connect.py",
        within="archive_root",
        old="require_none(settings.access.asked, Protected.ARCHIVE)",
        new="",
        test=_PROTECTIONS + "test_an_archive_of_an_encryption_zone_is_refused",
    ),
    Mutation(
        name="a call that is guarded is answered to everybody",
        file="hms_bridge/server/dispatch.py",
        within="Dispatcher._answer",
        old="call.verb_class is not VerbClass.OPEN",
        new="False",
        test=_GATE + "test_a_stranger_is_refused_before_its_request_is_looked_at",
    ),
    Mutation(
        name="a proxy user passes from any host",
        file="hms_bridge/server/gate.py",
        within="Gate._is_proxy",
        old="hosts is not None and hosts.has(identity.address)",
        new="hosts is not None",
        test=_GATE + "test_hosts_of_a_proxy_user_are_read_as_hadoop_reads_them",
    ),
    Mutation(
        name="the name of the server's own user opens what is trusted",
        file="hms_bridge/server/gate.py",
        within="Gate.require",
        old="verb_class is VerbClass.LOG and self._may_read_log(identity)",
        new="self._may_read_log(identity)",
        test=_GATE + "test_the_log_is_open_to_the_own_user_or_to_everybody_if_so_set",
    ),
    Mutation(
        name="who gives no name reads the log",
        file="hms_bridge/server/gate.py",
        within="Gate._may_read_log",
        old="bool(identity.user) and identity.user == self._own_user",
        new="(identity.user or self._own_user) == self._own_user",
        test=_GATE + "test_a_caller_without_a_name_counts_as_the_servers_own_user",
    ),
    Mutation(
        name="a method of which nobody thought is open",
        file="hms_bridge/server/verb_classes.py",
        within="class_of",
        old="VerbClass.TRUSTED",
        new="VerbClass.OPEN",
        test=_GATE + "test_each_method_has_one_class",
    ),
    Mutation(
        name="a client keeps the name that it gave first",
        file="hms_bridge/server/dispatch.py",
        within="Dispatcher._serve_one",
        old="name == _NAMES_USER",
        new="name == _NAMES_USER and (not guest.identity.user)",
        test=_GATE + "test_each_of_many_clients_of_one_thread_has_its_own_identity",
    ),
    Mutation(
        name="every peer is of this machine",
        file="hms_bridge/server/identity.py",
        within="identity_of",
        old="address.is_loopback or address == plain_address(own)",
        new="True",
        test=_GATE + "test_a_connection_from_another_address_is_a_strangers",
    ),
    Mutation(
        name="a port that others reach opens without a word",
        file="hms_bridge/cli/serve_parts.py",
        within="require_word",
        old="is_insecure or not is_beyond",
        new="True",
        test="tests/cli/test_serve_gate.py::test_a_port_that_others_reach_needs_a_word",
    ),
    Mutation(
        name="an error shows the password of a URL",
        file="hms_bridge/cli/ending.py",
        within="TextEnding.write_line",
        old="masked_text(text)",
        new="text",
        test=_SECRETS + "test_a_password_in_any_error_is_masked_on_the_way_out",
    ),
    Mutation(
        name="a URL that is none is shown with its password",
        file="hms_bridge/connect.py",
        within="_require_database",
        old="masked_url(url)",
        new="url",
        test=_SECRETS + "test_no_error_has_a_password",
    ),
    Mutation(
        name="the log shows the password of a URL",
        file="hms_bridge/cli/logs.py",
        within="TextFormatter.format",
        old="masked_text(super().format(record))",
        new="super().format(record)",
        test=_SECRETS + "test_no_line_of_the_log_has_a_password",
    ),
    Mutation(
        name="hooks pass on secrets of tables",
        file="changemanager/masking.py",
        within="_masked",
        old="has_properties and isinstance(inner, str) and is_secret_name(name)",
        new="False",
        test=_SECRETS + "test_hooks_pass_on_no_secret_of_a_table_and_the_log_has_it",
    ),
    Mutation(
        name="the program of a hook gets the whole environment",
        file="hms_bridge/hooks/command.py",
        within="passed_on",
        old=(
            "{name: value for name, value in environment.items() if name in "
            "_PASSED_ON or name.startswith(_PASSED_PREFIXES)}"
        ),
        new="{name: value for name, value in environment.items()}",
        test=_SECRETS + "test_the_program_of_a_hook_gets_no_secret_of_the_environment",
    ),
)
