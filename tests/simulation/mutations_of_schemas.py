"""Mutations of upgrades of Hive's schema; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_UPGRADE = "tests/backend/test_schema_upgrade.py::"
_VALIDATION = "tests/backend/test_schema_validation.py::"
_SCHEMA = "hms_bridge/backend/schema/"

OF_SCHEMAS = (
    Mutation(
        name="a server writes on a schema that is newer than it",
        file=_SCHEMA + "install.py",
        within="_why_unusable",
        old="is_newer(version)",
        new="False",
        test="tests/backend/test_schema.py::"
        "test_a_schema_that_is_newer_than_the_program_is_refused",
    ),
    Mutation(
        name="an upgrade gives ids of forgotten transactions again",
        file=_SCHEMA + "data_steps.py",
        within="NumberTxns.statements",
        old=("f\"(SELECT COALESCE(MAX({q('TXN_LOCK')}), 1) - 1 FROM {q('TXN_LOCK_TBL')})\""),
        new="f\"(SELECT COALESCE(MIN(0), 1) FROM {q('TXN_LOCK_TBL')})\"",
        test=_UPGRADE + "test_no_transaction_id_is_given_again",
    ),
    Mutation(
        name="the version of a schema is written before its tables are looked at again",
        file=_SCHEMA + "upgrade.py",
        within="_upgrade",
        old=("if left:\n    ..."),
        new=("if False:\n    ..."),
        test=_UPGRADE + "test_what_cannot_be_repaired_keeps_the_old_version",
    ),
    Mutation(
        name="a newer schema is upgraded to an older one",
        file=_SCHEMA + "upgrade_plan.py",
        within="refuse_versions",
        old="not is_since(wanted, present)",
        new="False",
        test=_UPGRADE + "test_versions_without_a_way_are_refused",
    ),
    Mutation(
        name="a schema of an unknown version is upgraded",
        file=_SCHEMA + "upgrade_plan.py",
        within="refuse_versions",
        old="present not in SOURCES",
        new="False",
        test=_UPGRADE + "test_versions_without_a_way_are_refused",
    ),
    Mutation(
        name="a schema of 3.1.0 is made around tables of a later one",
        file=_SCHEMA + "install_3_1.py",
        within="_refuse_others",
        old=("if others:\n    ..."),
        new=("if False:\n    ..."),
        test="tests/backend/test_schema_3_1.py::"
        "test_tables_of_a_later_version_are_not_taken_for_its_own",
    ),
    Mutation(
        name="two tables of one name can be made on MySQL while its key is replaced",
        file=_SCHEMA + "steps.py",
        within="AddIndex.statements",
        old="old is not None and dialect.name in ('mysql', 'mariadb')",
        new="False",
        test=_UPGRADE + "test_a_unique_index_of_mysql_is_replaced_in_one_statement",
    ),
    Mutation(
        name="Hive's listener does not find its sequences in a schema of ours",
        file=_SCHEMA + "install.py",
        within="put_seeds",
        old="(LOG_SEQUENCE, WRITE_LOG_SEQUENCE)",
        new="()",
        test=_UPGRADE + "test_hives_listener_finds_its_sequences",
    ),
    Mutation(
        name="a catalog gets the number of the one that Hive's script made",
        file="hms_bridge/catalog/catalogs.py",
        within="insert_catalog",
        old="last",
        new="0",
        test="tests/catalog/test_first_catalog.py::"
        "test_a_catalog_follows_the_one_that_hives_script_made",
    ),
    Mutation(
        name="a counter that gave its next number already is not told",
        file=_SCHEMA + "counters.py",
        within="_singles",
        old="next_number <= greatest",
        new="next_number < greatest",
        test=_VALIDATION + "test_what_is_wrong_is_told",
    ),
)
