"""Mutations of roles, privileges and what else clients keep in a metastore; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_ROLES = "tests/server/test_roles.py::"
_PRIVILEGES = "tests/server/test_privileges.py::"
_SCHEDULES = "tests/server/test_schedules.py::"
_RECYCLING = "tests/server/test_recycling.py::"
_PLANS = "tests/server/test_resource_plans.py::"
_CATALOGS = "tests/server/test_catalogs.py::"

OF_RIGHTS = (
    Mutation(
        name="an execution that is not there holds its scheduled query for ever",
        file="hms_bridge/service/schedules.py",
        within="_end_silent",
        old="schedules.free_unexecuted(unit.connection)",
        new="",
        test=_SCHEDULES + "test_an_execution_that_is_not_there_holds_no_query",
    ),
    Mutation(
        name="two resource plans of a namespace are active",
        file="hms_bridge/service/resource_plans.py",
        within="_switched",
        old="active.status is PlanStatus.ACTIVE",
        new="False",
        test=_PLANS + "test_one_plan_is_active_and_only_disabled_ones_are_edited",
    ),
    Mutation(
        name="the active resource plan is edited",
        file="hms_bridge/service/resource_plans.py",
        within="_edit",
        old="_require_disabled(plan)",
        new="",
        test=_PLANS + "test_one_plan_is_active_and_only_disabled_ones_are_edited",
    ),
    Mutation(
        name="a database over a data connector becomes one of the warehouse",
        file="hms_bridge/server/database_calls.py",
        within="_require_native",
        old="kind == _REMOTE or connector",
        new="False",
        test="tests/server/test_connectors.py::test_no_database_is_made_over_one",
    ),
    Mutation(
        name="any directory is archived for whoever asks",
        file="hms_bridge/service/recycling.py",
        within="_look",
        old="(None, False)",
        new="(ArchiveContext(cause=ArchiveCause.REQUEST), False)",
        test=_RECYCLING + "test_what_is_no_tables_is_not_archived",
    ),
    Mutation(
        name="a client removes files of a replication source that has no archive",
        file="hms_bridge/service/recycling.py",
        within="RecycleVerbs.recycle_directory",
        old="is_source",
        new="False",
        test=_RECYCLING + "test_without_an_archive_files_of_a_replication_source_must_stay",
    ),
    Mutation(
        name="a scheduled query is given out while it is executed",
        file="hms_bridge/catalog/schedules.py",
        within="first_due",
        old=(
            "(_in(namespace), _Q.ENABLED.is_(True), "
            "_Q.ACTIVE_EXECUTION_ID.is_(None), _Q.NEXT_EXECUTION <= now_seconds)"
        ),
        new=("(_in(namespace), _Q.ENABLED.is_(True), _Q.NEXT_EXECUTION <= now_seconds)"),
        test=_SCHEDULES + "test_a_query_is_given_out_once_at_a_time",
    ),
    Mutation(
        name="an execution of which nothing is heard holds its scheduled query for ever",
        file="hms_bridge/service/schedules.py",
        within="_end_silent",
        old="schedules.silent_since(unit.connection, before)",
        new="()",
        test=_SCHEDULES + "test_an_execution_that_is_silent_times_out",
    ),
    Mutation(
        name="an execution that timed out finishes after all",
        file="hms_bridge/service/schedules.py",
        within="_progress",
        old="progress.state not in _MAY_FOLLOW.get(old, ())",
        new="False",
        test=_SCHEDULES + "test_an_execution_that_is_silent_times_out",
    ),
    Mutation(
        name="an unreadable schedule stops all others",
        file="hms_bridge/service/schedules.py",
        within="_following",
        old="InvalidObjectError",
        new="ZeroDivisionError",
        test=_SCHEDULES + "test_a_schedule_that_nobody_can_read_stops_no_other",
    ),
    Mutation(
        name="a refusal shows a token",
        file="hms_bridge/catalog/limits.py",
        within="check_token",
        old=(
            "f'a token, its identifier or a key has {len(secret)} characters; "
            "at most {TOKEN_LENGTH_MAX} fit'"
        ),
        new=("f'{secret} has {len(secret)} characters; at most {TOKEN_LENGTH_MAX} fit'"),
        test="tests/server/test_tokens.py::test_they_are_bounded_and_not_shown_in_refusals",
    ),
    Mutation(
        name="databases of one name in two catalogs share a directory",
        file="hms_bridge/service/locations.py",
        within="WarehouseRoots.database_location",
        old="catalog is not None and database.catalog_name != DEFAULT_CATALOG",
        new="False",
        test=_CATALOGS + "test_databases_of_one_name_are_apart",
    ),
    Mutation(
        name="a catalog is dropped over what its default database has",
        file="hms_bridge/service/catalogs.py",
        within="_delete",
        old="databases.content_of(unit.connection, stored) is not None",
        new="False",
        test=_CATALOGS + "test_a_catalog_is_dropped_when_it_is_empty",
    ),
    Mutation(
        name="a role is granted to a role that it has",
        file="hms_bridge/service/roles.py",
        within="_grant_role",
        old="principal.name in {name} | above",
        new="principal.name == name",
        test=_ROLES + "test_roles_of_roles_make_no_circle",
    ),
    Mutation(
        name="a role that is made again has what the dropped one had",
        file="hms_bridge/service/roles.py",
        within="_drop_role",
        old=("privileges.delete_all_of(unit.connection, Principal(name, PrincipalType.ROLE))"),
        new="",
        test=_PRIVILEGES + "test_a_set_has_groups_and_roles_of_roles",
    ),
    Mutation(
        name="replacing one authorization's privileges takes those of another",
        file="hms_bridge/catalog/privileges.py",
        within="written_by",
        old=("[] if authorizer is None else [level.table.c.AUTHORIZER == authorizer]"),
        new="[]",
        test=_PRIVILEGES + "test_what_an_authorizer_wrote_is_replaced",
    ),
    Mutation(
        name="a privilege is granted twice by one grantor",
        file="hms_bridge/service/privileges.py",
        within="_insert",
        old="_key(single) in taken",
        new="False",
        test=_PRIVILEGES + "test_what_is_granted_is_listed_and_revoked",
    ),
)
