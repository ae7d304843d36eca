"""``hms-bridge schema``."""

from __future__ import annotations

import click

from hms_bridge.cli.options import database_option, format_option, settings_options
from hms_bridge.cli.output import print_record, say
from hms_bridge.config.settings import Settings


@click.group()
def schema() -> None:
    """Make or check the metastore's database schema (Hive's own tables).

    \b
    Examples:
      hms-bridge schema init --database sqlite:///metastore.db
      hms-bridge schema info --database postgresql+psycopg://hive@localhost/metastore
    """


@schema.command()
@database_option
@settings_options
def init(metastore_url: str, settings: Settings) -> None:
    """Make the tables that are missing; those that are there stay as they are.

    \b
    Example:
      hms-bridge schema init --database sqlite:///metastore.db
    """
    from hms_bridge.config.jdbc import url_without_password
    from hms_bridge.connect import install_schema

    install_schema(metastore_url, settings)
    say(f"the schema of {url_without_password(metastore_url)} is ready")


@schema.command()
@database_option
@format_option
@settings_options
def info(metastore_url: str, output_format: str, settings: Settings) -> None:  # noqa: ARG001
    """What schema a database has, and what it lacks. Exit code 1 if it cannot be used.

    \b
    Example:
      hms-bridge schema info --database sqlite:///metastore.db --format json
    """
    from hms_bridge.connect import describe_schema

    description = describe_schema(metastore_url)
    print_record(description, output_format)
    if not description["usable"]:
        raise SystemExit(1)
