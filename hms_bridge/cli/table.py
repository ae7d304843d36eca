"""``hms-bridge table``."""

from __future__ import annotations

import getpass
import socket
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    given_table,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, say
from hms_bridge.cli.progress import working
from hms_bridge.config.settings import Settings
from hms_bridge.errors import AcidFormatError, ConfigError, MetaError
from hms_bridge.model.catalog import Column, Database
from hms_bridge.model.counted import counted
from hms_bridge.model.valid_ids import ValidWriteIdList

if TYPE_CHECKING:
    from hms_bridge.adoption.plan import AdoptionPlan

_WRITE_IDS = "db.t:9:9223372036854775807::3"


@click.group()
def table() -> None:
    """Table directories that Hive left behind.

    \b
    Example:
      hms-bridge table adopt /warehouse/sales.db/orders --name sales.orders
    """


def _directory(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Not the one that this was started in, which an empty text would mean."""
    if not value:
        raise click.UsageError("'' names no directory; give the table's own")
    return value


@table.command()
@click.argument("directory", metavar="DIR", callback=_directory)
@click.option("--name", "table_name", required=True, help="database.table to register it as.")
@click.option(
    "--valid-write-ids",
    "valid_write_ids",
    metavar="TEXT",
    help=f"Hive's write-id list of the table, as {_WRITE_IDS} "
    "(high watermark, lowest open, open ids, aborted ids).",
)
@click.option(
    "--open-as-aborted",
    "is_open_aborted",
    is_flag=True,
    help="Open ids of that list never committed: forget their rows.",
)
@click.option(
    "--partition-type",
    "partition_types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help="Type of a partition column; string without it. May be repeated.",
)
@click.option(
    "--columns",
    "columns_text",
    metavar="LIST",
    help="The table's own columns, as 'id int,name varchar(10)', if no file tells them.",
)
@click.option("--clustered-by", "bucket_columns", help="Bucket columns, comma-separated.")
@click.option("--buckets", "bucket_count", type=click.IntRange(min=1), help="How many buckets.")
@dry_run_option
@metastore_option
@format_option
@settings_options
def adopt(
    directory: str,
    table_name: str,
    valid_write_ids: str | None,
    is_open_aborted: bool,
    partition_types: tuple[str, ...],
    columns_text: str | None,
    bucket_columns: str | None,
    bucket_count: int | None,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Register DIR as a full ACID table: columns from its files, write ids from names.

    The files stay where they are and as they are. A database that does not exist is made. With
    aborted ids in --valid-write-ids, a major compaction is queued that drops their rows.

    \b
    Examples:
      hms-bridge table adopt /warehouse/sales.db/orders --name sales.orders --dry-run
      hms-bridge table adopt /wh/s.db/o --name s.o --partition-type day=date
      hms-bridge table adopt /wh/s.db/o --name s.o --valid-write-ids 's.o:9:9223372036854775807::3'
    """
    from hms_bridge.adoption.adopt import describe
    from hms_bridge.adoption.look import look
    from hms_bridge.adoption.plan import AdoptionRequest
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import absolute_location

    name = given_table(table_name)
    types = dict(_pair(text) for text in partition_types)
    if bool(bucket_columns) != bool(bucket_count):
        raise click.UsageError("--clustered-by and --buckets go together")
    request = AdoptionRequest(
        database_name=name.database,
        table_name=name.table,
        location=absolute_location(directory, settings.hadoop),
        partition_types=types,
        bucket_columns=tuple(c.strip().lower() for c in (bucket_columns or "").split(",") if c),
        bucket_count=bucket_count or -1,
        columns=_columns(columns_text),
        valid_write_ids=_write_ids(valid_write_ids),
        is_open_aborted=is_open_aborted,
        owner=getpass.getuser(),
    )
    with working(f"looking at {directory}"):
        plan = look(request, file_systems(settings))
    for warning in plan.warnings:
        say(f"note: {warning}")
    _check_names(plan)
    is_database_new = _carry_out(plan, metastore_url, settings, is_dry_run=is_dry_run)
    print_record(describe(plan), output_format)
    _say_what_else(plan, is_database_new=is_database_new, is_dry_run=is_dry_run)
    say("would be adopted" if is_dry_run else f"{name} adopted")


def _carry_out(
    plan: AdoptionPlan, metastore_url: str, settings: Settings, *, is_dry_run: bool
) -> bool:
    """Adopt, or only look whether that is possible; whether the database is a new one."""
    from hms_bridge.adoption.adopt import adopt as adopt_table
    from hms_bridge.adoption.adopt import check_target
    from hms_bridge.connect import connected, is_set_up

    if is_dry_run and not is_set_up(metastore_url):
        say("note: there is no metastore yet; it would be made")
        return plan.table.database_name != "default"
    with (
        working("adopting"),
        connected(metastore_url, settings, is_created=not is_dry_run) as metastore,
    ):
        if is_dry_run:
            target = check_target(plan, metastore)
        else:
            user, host = getpass.getuser(), socket.gethostname()
            target = adopt_table(plan, metastore, user=user, host=host)
    return target.is_database_new


def _say_what_else(plan: AdoptionPlan, *, is_database_new: bool, is_dry_run: bool) -> None:
    if is_database_new:
        became = "would be made" if is_dry_run else "was not there; it was made"
        say(f"note: database {plan.table.database_name} {became}")
    if plan.to_compact:
        count = counted(len(plan.to_compact), "major compaction")
        became = "would be queued" if is_dry_run else "queued"
        say(f"note: {count} {became}, because of the aborted writes: a cleaner deletes their files")


def _check_names(plan: AdoptionPlan) -> None:
    """What a metastore would refuse after the write ids are set, or garble in their text."""
    from hms_bridge.catalog.limits import check_database, check_partition, check_table
    from hms_bridge.model.partition_name import partition_name

    table = plan.table
    if ":" in table.full_name or not table.full_name.isprintable():
        raise click.UsageError(f"--name {table.full_name}: no table can have that name")
    check_database(Database(name=table.database_name))
    check_table(table)
    for partition in plan.partitions:
        check_partition(partition, partition_name(table.partition_columns, partition.values))


def _pair(text: str) -> tuple[str, str]:
    column, separator, kind = text.partition("=")
    if not separator or not column or not kind:
        raise click.UsageError(f"--partition-type takes COLUMN=TYPE, not '{text}'")
    return column.strip().lower(), kind.strip().lower()


def _columns(text: str | None) -> tuple[Column, ...]:
    if not text:
        return ()
    from hms_bridge.orc.hive_types import hive_type_text, parse_column_list

    try:
        row = parse_column_list(text)
    except AcidFormatError as error:
        raise click.UsageError(
            f"--columns takes names and types, as 'id int,name varchar(10)', not '{text}': {error}"
        ) from error
    return tuple(
        Column(name=name.lower(), type=hive_type_text(child))
        for name, child in zip(row.names, row.children, strict=True)
    )


def _write_ids(text: str | None) -> ValidWriteIdList | None:
    """An empty text would see everything."""
    if text is None:
        return None
    if not 2 <= text.count(":") <= 4:
        raise ConfigError(
            f"--valid-write-ids: '{text}' is no write-id list; write it as {_WRITE_IDS} "
            "(table, high watermark, lowest open, open ids, aborted ids)"
        )
    try:
        return ValidWriteIdList.parse(text)
    except MetaError as error:
        raise ConfigError(f"--valid-write-ids: {error}") from error
