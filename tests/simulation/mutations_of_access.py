"""Mutations of who may reach what: protections that settings ask for, the gate of the server,
secrets; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_PROTECTIONS = "tests/cli/test_protections.py::"

OF_ACCESS = (
    Mutation(
        name="a setting that asks for protection asks for nothing",
        file="hms_bridge/config/protection.py",
        old="            if value is not None and protection.is_asked_by(value):\n",
        new="            if False:\n",
        test=_PROTECTIONS + "test_a_server_does_not_begin_where_its_port_is_to_be_protected",
    ),
    Mutation(
        name="a server begins in clear that is to be protected",
        file="hms_bridge/cli/serve.py",
        old="    require_none(settings.access.asked, Protected.PORT, is_insecure=is_insecure)\n",
        new="",
        test=_PROTECTIONS + "test_hadoops_own_files_count",
    ),
    Mutation(
        name="an insecure server passes over what its own file asks for",
        file="hms_bridge/config/protection.py",
        old="(is_insecure and protection.is_overridden)",
        new="is_insecure",
        test=_PROTECTIONS + "test_one_command_may_do_without",
    ),
    Mutation(
        name="a client talks in clear to a metastore that is to be protected",
        file="hms_bridge/connect.py",
        old="        require_none((settings or Settings()).access.asked, Protected.CLIENT)\n",
        new="",
        test=_PROTECTIONS + "test_no_client_talks_in_clear_where_it_is_not_to",
    ),
    Mutation(
        name="a database that is to be encrypted is asked in clear",
        file="hms_bridge/config/protection.py",
        old='("sqlite:", "thrift:")) and not asks_for_tls(url):',
        new='("sqlite:", "thrift:")) and False:',
        test=_PROTECTIONS + "test_a_database_is_not_asked_in_clear_where_hive_would_encrypt",
    ),
    Mutation(
        name="files of an encryption zone are archived outside of it",
        file="hms_bridge/connect.py",
        old="    require_none(settings.access.asked, Protected.ARCHIVE)\n",
        new="",
        test=_PROTECTIONS + "test_an_archive_of_an_encryption_zone_is_refused",
    ),
)
