"""``hms-bridge schema``."""

from __future__ import annotations

import click

from changemanager.masking import masked_url
from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, print_rows, say
from hms_bridge.config.settings import Settings

_looking_option = click.option(
    "--dry-run",
    is_flag=True,
    expose_value=False,
    help="As without it: this verb only looks, and changes nothing.",
)


@click.group()
def schema() -> None:
    """Make, upgrade or check the metastore's database schema (Hive's own tables).

    All of its verbs take --dry-run; 'validate' and 'info' never change anything.

    \b
    Examples:
      hms-bridge schema init --database sqlite:///metastore.db
      hms-bridge schema upgrade --to 4.2.0 --dry-run --database postgresql://hive@localhost/metastore
      hms-bridge schema validate --database postgresql+psycopg://hive@localhost/metastore
    """


@schema.command()
@click.option(
    "--schema-version",
    "version",
    metavar="VERSION",
    help="Which of Hive's versions an empty database gets: 3.1.0, 4.0.0 (if none is named), 4.1.0, "
    "4.2.0.",
)
@dry_run_option
@database_option
@settings_options
def init(metastore_url: str, settings: Settings, version: str | None, is_dry_run: bool) -> None:
    """Make the tables that are missing; those that are there stay as they are, but for names of
    partitions, which MariaDB and MySQL then compare exactly (Hive's script takes p=A for p=a).

    A Hive starts on the version that it is of: 3.1 on 3.1.0, 4.0.1 on 4.0.0, 4.2 on 4.2.0.
    hms-bridge works on all from 4.0.0 on; 3.1.0 gets Hive's tables only, and is upgraded before.

    \b
    Example:
      hms-bridge schema init --database sqlite:///metastore.db
      hms-bridge schema init --schema-version 4.2.0 --database postgresql://hive@localhost/metastore
    """
    from hms_bridge.connect import install_schema, opened_database, planned_database
    from hms_bridge.service.schema import is_for_others, make_version, tables_to_make

    if is_dry_run:
        with planned_database(metastore_url) as database:
            plan = tables_to_make(database, version)
        print_rows(tuple({"table": table} for table in plan.tables), ("table",), "table")
        if plan.indices:
            say(f"indices would be added to Hive's tables: {', '.join(plan.indices)}")
        if plan.loose_columns:
            say(f"would be compared exactly: {', '.join(plan.loose_columns)}")
        say(f"schema {plan.version}: {len(plan.tables)} tables would be made; nothing was changed")
        return
    if version is not None:
        with opened_database(metastore_url, is_made=True) as database:
            make_version(database, version)
    ready = f"the schema of {masked_url(metastore_url)} is ready"
    if version is not None and is_for_others(version):
        say(f"{ready} for a Hive 3.1; hms-bridge needs 'hms-bridge schema upgrade' before it works")
        return
    install_schema(metastore_url, settings)
    say(ready)


@schema.command()
@click.option(
    "--to",
    "version",
    metavar="VERSION",
    required=True,
    help="4.0.0, 4.1.0 or 4.2.0: that of the Hive that is to work on the database. 3.1.0 only "
    "repairs one of 3.1.0.",
)
@dry_run_option
@database_option
@format_option
@settings_options
def upgrade(
    metastore_url: str,
    settings: Settings,  # noqa: ARG001
    output_format: str,
    version: str,
    is_dry_run: bool,
) -> None:
    """Make a later version of Hive's tables, from 3.1.0 on; to the same version: repair them.

    Stop every metastore on the database before, Hive's and ours, and have a backup: there is no
    way back. On PostgreSQL and SQLite all of it is done or nothing. MySQL keeps each step; after
    an end in the middle the same command does the rest. Tables of ours stay as they are:
    'hms-bridge schema init' makes those that lack.

    \b
    Example:
      hms-bridge schema upgrade --to 4.2.0 --dry-run --database postgresql://hive@localhost/metastore
    """
    from hms_bridge.connect import opened_database
    from hms_bridge.service.schema import upgrade as upgraded

    with opened_database(metastore_url) as database:
        done = upgraded(database, version, is_dry_run=is_dry_run)
    print_rows(tuple({"step": step} for step in done.steps), ("step",), output_format)
    if done.others:
        say(
            f"note: {done.others} other connections to the database were open; a metastore that "
            "runs meanwhile fails, or works on tables that are half changed: stop it first"
        )
    if done.ours:
        say(f"{done.ours} tables of ours (HMSB_…) are left as they are")
    ending = "would be made; nothing was changed" if is_dry_run else "made"
    say(f"from {done.present} to {done.wanted}: {len(done.steps)} steps {ending}")


@schema.command()
@_looking_option
@database_option
@format_option
@settings_options
def validate(metastore_url: str, output_format: str, settings: Settings) -> None:  # noqa: ARG001
    """What is wrong in a metastore's database, and what to do. Exit code 1 if anything is.

    Looks at version, tables, columns, keys and indexes; then at counters that are behind what they
    number, locations without a file system, tables without storage: what Hive's 'schematool
    -validate' looks at, and more. It changes nothing.

    \b
    Example:
      hms-bridge schema validate --database postgresql://hive@localhost/metastore
    """
    from hms_bridge.connect import opened_database
    from hms_bridge.service.schema import schema_problems

    with opened_database(metastore_url) as database:
        problems = schema_problems(database)
    if problems or output_format != "table":
        print_rows(problems, ("problem", "remedy"), output_format)
    else:
        say("nothing is wrong")
    if problems:
        raise SystemExit(1)


@schema.command()
@_looking_option
@database_option
@format_option
@settings_options
def info(metastore_url: str, output_format: str, settings: Settings) -> None:  # noqa: ARG001
    """What schema a database has, and what it lacks. Exit code 1 if it cannot be used.

    It changes nothing.

    \b
    Example:
      hms-bridge schema info --database sqlite:///metastore.db --format json
    """
    from hms_bridge.connect import describe_schema

    description = describe_schema(metastore_url)
    if description["version"] is None and output_format == "table":
        say(str(description["next step"]))
        raise SystemExit(1)
    print_record(description, output_format)
    if not description["usable"]:
        raise SystemExit(1)
